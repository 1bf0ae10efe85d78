/**
 * The filters of a query, turned into one predicate over documents, with what the planner has to know of them.
 * A filter that is not known, or that the service would refuse, is refused by name.
 */
import { invalidArgument } from '../grpc-server.ts';
import { type Doc, fieldOf } from './doc.ts';
import { type FieldPath, formatFieldPath, isName, parseFieldPath } from './field-path.ts';
import { parseOperator, parseUnaryOperator, type Test } from './operators.ts';
import { checkValue, type Value, type WireValue } from './values.ts';

type WireField = Readonly<{ fieldPath: string }> | null;
export type WireFilter = Readonly<{
  filterType?: string;
  compositeFilter?: Readonly<{ op: string | number; filters: readonly WireFilter[] }>;
  fieldFilter?: Readonly<{ field: WireField; op: string | number; value: WireValue }>;
  unaryFilter?: Readonly<{ op: string | number; operandType?: string; field?: WireField }>;
}>;

export type Filter = Readonly<{
  matches(doc: Doc): boolean;
  /** Field paths that must equal a value in every match: two queries that differ here share no document. */
  equalities: ReadonlyMap<string, Value>;
  /** Fields under an inequality: a query is ordered by them even if it does not say so. */
  inequalities: readonly FieldPath[];
  /** How many alternatives the filter has in disjunctive normal form. */
  alternatives: number;
  /** At most how many filters on the elements of an array hold together in one alternative. */
  arrayFilters: number;
  /** The operators in it, for the rules on which go together. */
  operators: readonly string[];
}>;

/** Alternatives in disjunctive normal form (https://firebase.google.com/docs/firestore/query-data/queries). */
const MAX_ALTERNATIVES = 30;
const NEGATIVE: ReadonlySet<string> = new Set(['NOT_EQUAL', 'NOT_IN', 'IS_NOT_NULL', 'IS_NOT_NAN']);
const ON_ELEMENTS: ReadonlySet<string> = new Set(['ARRAY_CONTAINS', 'ARRAY_CONTAINS_ANY']);
/** Filters on array elements in one disjunction (the same page). */
const MAX_ARRAY_FILTERS = 1;
const DISJUNCTIVE: ReadonlySet<string> = new Set(['OR', 'IN', 'ARRAY_CONTAINS_ANY']);

/** Throws INVALID_ARGUMENT for a filter that is not known or not allowed. */
export function parseFilter(wire: WireFilter): Filter {
  const filter = parse(wire);
  if (filter.alternatives > MAX_ALTERNATIVES) {
    throw invalidArgument(
      `the filter has ${filter.alternatives} alternatives in disjunctive normal form; at most ${MAX_ALTERNATIVES} are allowed`,
    );
  }
  if (filter.arrayFilters > MAX_ARRAY_FILTERS) {
    throw invalidArgument(
      `a query may have one of ${[...ON_ELEMENTS].join(', ')} in each disjunction; this one has ${filter.arrayFilters}`,
    );
  }
  const negative = filter.operators.filter((op) => NEGATIVE.has(op));
  if (negative.length > 1) {
    throw invalidArgument(
      `a query may have one of ${[...NEGATIVE].join(', ')}; this one has ${negative.join(', ')}`,
    );
  }
  const disjunctive = filter.operators.find((op) => DISJUNCTIVE.has(op));
  if (negative[0] === 'NOT_IN' && disjunctive !== undefined) {
    throw invalidArgument(`NOT_IN may not be combined with ${disjunctive}`);
  }
  return filter;
}

function parse(wire: WireFilter): Filter {
  if (wire.filterType === 'compositeFilter' && wire.compositeFilter !== undefined) {
    return parseComposite(wire.compositeFilter.op, wire.compositeFilter.filters.map(parse));
  }
  if (wire.filterType === 'fieldFilter' && wire.fieldFilter !== undefined) {
    const { field, op, value } = wire.fieldFilter;
    const path = parseField(field);
    const operand = checkOperand(value, op, path);
    return fieldFilter(path, parseOperator(op, operand, formatFieldPath(path)), operand);
  }
  if (wire.filterType === 'unaryFilter' && wire.unaryFilter !== undefined) {
    const path = parseField(wire.unaryFilter.field);
    return fieldFilter(path, parseUnaryOperator(wire.unaryFilter.op, formatFieldPath(path)), undefined);
  }
  throw invalidArgument(`the filter type ${wire.filterType ?? '(not set)'} is not known`);
}

function parseField(field: WireField | undefined): FieldPath {
  if (field === null || field === undefined) throw invalidArgument('a filter must name its field');
  return parseFieldPath(field.fieldPath);
}

function checkOperand(wire: WireValue, op: string | number, path: FieldPath): Value {
  const where = `the filter on ${formatFieldPath(path)}`;
  const value = checkOperandShape(wire, where);
  if (!isName(path)) return value;
  const isList = op === 'IN' || op === 'NOT_IN';
  const names = isList && value.valueType === 'arrayValue' ? value.arrayValue.values : [value];
  if (names.some((name) => name.valueType !== 'referenceValue')) {
    throw invalidArgument(`${where}: __name__ compares with references to documents only`);
  }
  return value;
}

/** A list of alternatives may hold arrays, though a stored array may not. */
function checkOperandShape(wire: WireValue, where: string): Value {
  if (wire?.valueType !== 'arrayValue' || !('arrayValue' in wire)) return checkValue(wire, where);
  const values = wire.arrayValue.values.map((value, i) => checkValue(value, `${where}[${i}]`));
  return { valueType: 'arrayValue', arrayValue: { values } };
}

function fieldFilter(path: FieldPath, test: Test, operand: Value | undefined): Filter {
  const isEqual = test.operator === 'EQUAL' && operand !== undefined;
  return {
    matches(doc) {
      const value = fieldOf(doc, path);
      return value !== undefined && test.holds(value);
    },
    equalities: new Map(isEqual ? [[formatFieldPath(path), operand]] : []),
    inequalities: test.isInequality ? [path] : [],
    alternatives: test.alternatives,
    arrayFilters: ON_ELEMENTS.has(test.operator) ? 1 : 0,
    operators: [test.operator],
  };
}

function parseComposite(op: string | number, filters: readonly Filter[]): Filter {
  if (filters.length === 0) throw invalidArgument('a composite filter must have filters');
  const [first] = filters;
  if (first !== undefined && filters.length === 1 && (op === 'AND' || op === 'OR')) return first;
  const common = { inequalities: filters.flatMap((filter) => filter.inequalities) };
  const operators = filters.flatMap((filter) => filter.operators);
  if (op === 'AND') {
    return {
      ...common,
      matches: (doc) => filters.every((filter) => filter.matches(doc)),
      equalities: new Map(filters.flatMap((filter) => [...filter.equalities])),
      alternatives: filters.reduce((product, filter) => product * filter.alternatives, 1),
      arrayFilters: filters.reduce((sum, filter) => sum + filter.arrayFilters, 0),
      operators,
    };
  }
  if (op === 'OR') {
    return {
      ...common,
      matches: (doc) => filters.some((filter) => filter.matches(doc)),
      equalities: new Map(),
      alternatives: filters.reduce((sum, filter) => sum + filter.alternatives, 0),
      arrayFilters: Math.max(...filters.map((filter) => filter.arrayFilters)),
      operators: [...operators, 'OR'],
    };
  }
  throw invalidArgument(`the composite operator ${op} is not known`);
}
