/**
 * The operators of field filters: what each says of one value. A missing field never gets here: it matches
 * no filter at all. Negative operators do not match null, and ranges match values of their own type only.
 */
import { invalidArgument } from '../grpc-server.ts';
import { compareValues, equalValues, rankOf } from './order.ts';
import type { Value } from './values.ts';

export type Test = Readonly<{
  operator: string;
  holds(value: Value): boolean;
  isInequality: boolean;
  alternatives: number;
}>;

/** Values in a NOT_IN filter (google.firestore.v1.StructuredQuery.FieldFilter.Operator). */
const MAX_NOT_IN = 10;

const isNull = (value: Value): boolean => value.valueType === 'nullValue';
const isNaNValue = (value: Value): boolean =>
  value.valueType === 'doubleValue' && Number.isNaN(value.doubleValue);

/** Throws INVALID_ARGUMENT for an operator that is not known or an operand that does not fit it. */
export function parseOperator(operator: string | number, operand: Value, where: string): Test {
  const test = (holds: Test['holds'], isInequality = false, alternatives = 1): Test => ({
    operator: String(operator),
    holds,
    isInequality,
    alternatives,
  });
  const rank = rankOf(operand);
  const range = (fits: (order: number) => boolean): Test =>
    // NaN sorts before all numbers, and is in no range of them.
    test(
      (value) =>
        rankOf(value) === rank &&
        !isNaNValue(value) &&
        !isNaNValue(operand) &&
        fits(compareValues(value, operand)),
      true,
    );

  switch (operator) {
    case 'LESS_THAN':
      return range((order) => order < 0);
    case 'LESS_THAN_OR_EQUAL':
      return range((order) => order <= 0);
    case 'GREATER_THAN':
      return range((order) => order > 0);
    case 'GREATER_THAN_OR_EQUAL':
      return range((order) => order >= 0);
    case 'EQUAL':
      return test((value) => equalValues(value, operand));
    case 'NOT_EQUAL':
      return test((value) => !isNull(value) && !equalValues(value, operand), true);
    case 'IN': {
      const list = listOf(operand, operator, where);
      const found = list.filter(canBeFound);
      return test((value) => isOneOf(value, found), false, list.length);
    }
    case 'NOT_IN': {
      const list = listOf(operand, operator, where);
      if (list.length > MAX_NOT_IN) {
        throw invalidArgument(
          `NOT_IN on ${where} has ${list.length} values; at most ${MAX_NOT_IN} are allowed`,
        );
      }
      const hasNull = list.some(isNull);
      return test((value) => !hasNull && !isNull(value) && !isOneOf(value, list), true);
    }
    case 'ARRAY_CONTAINS':
      return test((value) => elementsOf(value).some((element) => equalValues(element, operand)));
    case 'ARRAY_CONTAINS_ANY': {
      const list = listOf(operand, operator, where);
      const found = list.filter(canBeFound);
      return test(
        (value) => elementsOf(value).some((element) => isOneOf(element, found)),
        false,
        list.length,
      );
    }
    default:
      throw invalidArgument(`the filter operator ${operator} on ${where} is not known`);
  }
}

export function parseUnaryOperator(operator: string | number, where: string): Test {
  const test = (holds: Test['holds'], isInequality: boolean): Test => ({
    operator: String(operator),
    holds,
    isInequality,
    alternatives: 1,
  });
  switch (operator) {
    case 'IS_NULL':
      return test(isNull, false);
    case 'IS_NAN':
      return test(isNaNValue, false);
    case 'IS_NOT_NULL':
      return test((value) => !isNull(value), true);
    case 'IS_NOT_NAN':
      return test((value) => !isNull(value) && !isNaNValue(value), true);
    default:
      throw invalidArgument(`the unary operator ${operator} on ${where} is not known`);
  }
}

/** In a list of alternatives null and NaN find nothing, not even themselves; deeper in a value they do. */
const canBeFound = (value: Value): boolean => !isNull(value) && !isNaNValue(value);

const isOneOf = (value: Value, list: readonly Value[]): boolean =>
  list.some((candidate) => equalValues(candidate, value));

const elementsOf = (value: Value): readonly Value[] =>
  value.valueType === 'arrayValue' ? value.arrayValue.values : [];

function listOf(operand: Value, operator: string, where: string): readonly Value[] {
  const values = elementsOf(operand);
  if (values.length === 0)
    throw invalidArgument(`${operator} on ${where} needs a list of at least one value`);
  return values;
}
