/**
 * A query as it was asked, read from the wire: where it looks, what it filters, its full order with the fields
 * that the service adds, its cursors and bounds. Anything that is not handled here is refused by name.
 */
import { invalidArgument, unimplemented } from '../grpc-server.ts';
import type { Order } from './entries.ts';
import { type FieldPath, formatFieldPath, isName, NAME, parseFieldPath } from './field-path.ts';
import { type Filter, parseFilter, type WireFilter } from './filters.ts';
import { checkCollectionId, parseParent } from './names.ts';
import { compareStrings } from './order.ts';
import { checkValue, type Value, type WireValue } from './values.ts';

type WireField = Readonly<{ fieldPath: string }> | null;
type WireCursor = Readonly<{ values: readonly WireValue[]; before: boolean }> | null;
export type WireQuery = Readonly<{
  select: Readonly<{ fields: readonly WireField[] }> | null;
  from: readonly Readonly<{ collectionId: string; allDescendants: boolean }>[];
  where: WireFilter | null;
  orderBy: readonly Readonly<{ field: WireField; direction: string | number }>[];
  startAt: WireCursor;
  endAt: WireCursor;
  offset: number;
  limit: Readonly<{ value: number }> | null;
  findNearest?: unknown;
}>;

export type Scope = Readonly<{
  /** The parent's path below `/documents`: empty for the root. */
  parent: string;
  /** Empty: every collection directly below the parent, or anywhere below it with allDescendants. */
  collectionId: string;
  allDescendants: boolean;
}>;
export type Cursor = Readonly<{ values: readonly Value[]; before: boolean }>;

export type Query = Readonly<{
  scope: Scope;
  filter: Filter | undefined;
  /** Complete: ends with `__name__`, so no two documents are equal. */
  orders: readonly Order[];
  start: Cursor | undefined;
  end: Cursor | undefined;
  offset: number;
  limit: number;
  /** Undefined: all fields. */
  select: readonly FieldPath[] | undefined;
}>;

/** Throws INVALID_ARGUMENT for what is not allowed, UNIMPLEMENTED for what this server does not do. */
export function parseQuery(wire: WireQuery, parent: string, database: string): Query {
  if (wire.findNearest !== undefined && wire.findNearest !== null) {
    throw unimplemented('find_nearest is not implemented');
  }
  const filter = wire.where === null ? undefined : parseFilter(wire.where);
  const orders = completeOrders(wire.orderBy.map(parseOrder), filter);
  if (wire.offset < 0) throw invalidArgument(`offset is ${wire.offset}; it may not be negative`);
  const limit = wire.limit?.value ?? Number.POSITIVE_INFINITY;
  if (limit < 0) throw invalidArgument(`limit is ${limit}; it may not be negative`);
  return {
    scope: parseScope(wire, parent, database),
    filter,
    orders,
    start: parseCursor(wire.startAt, orders, 'start_at'),
    end: parseCursor(wire.endAt, orders, 'end_at'),
    offset: wire.offset,
    limit,
    select: parseSelect(wire.select),
  };
}

function parseScope(wire: WireQuery, parent: string, database: string): Scope {
  const [from] = wire.from;
  if (from === undefined) throw unimplemented('a query without "from" is not implemented');
  if (wire.from.length > 1) throw unimplemented('a query over several collections is not implemented');
  const { collectionId, allDescendants } = from;
  if (collectionId !== '') checkCollectionId(collectionId);
  return { parent: parseParent(parent, database).join('/'), collectionId, allDescendants };
}

function parseOrder({ field, direction }: WireQuery['orderBy'][number]): Order {
  const path = parseField(field, 'order_by');
  if (direction === 'DESCENDING') return { path, sign: -1 };
  if (direction === 'ASCENDING' || direction === 'DIRECTION_UNSPECIFIED') return { path, sign: 1 };
  throw invalidArgument(`the direction ${direction} of ${formatFieldPath(path)} is not known`);
}

/** Adds the fields of inequalities by name, then `__name__`, in the direction of the last order given. */
function completeOrders(asked: readonly Order[], filter: Filter | undefined): readonly Order[] {
  const sign = asked.at(-1)?.sign ?? 1;
  const known = new Set(asked.map(({ path }) => formatFieldPath(path)));
  if (known.size < asked.length) throw invalidArgument('order_by names a field twice');
  const added = new Map<string, Order>();
  for (const path of filter?.inequalities ?? []) {
    const key = formatFieldPath(path);
    if (!known.has(key) && !isName(path)) added.set(key, { path, sign });
  }
  const implied = [...added].sort(([a], [b]) => compareStrings(a, b)).map(([, order]) => order);
  const last: readonly Order[] = known.has(NAME) ? [] : [{ path: [NAME], sign }];
  const orders = [...asked, ...implied, ...last];
  if (orders.slice(0, -1).some(({ path }) => isName(path))) {
    throw invalidArgument('nothing may be ordered, or be under an inequality, after order_by __name__');
  }
  return orders;
}

function parseCursor(wire: WireCursor, orders: readonly Order[], where: string): Cursor | undefined {
  if (wire === null) return undefined;
  if (wire.values.length > orders.length) {
    throw invalidArgument(`${where} has ${wire.values.length} values for ${orders.length} orders`);
  }
  const values = wire.values.map((value, i) => checkValue(value, `${where}[${i}]`));
  for (const [i, value] of values.entries()) {
    const order = orders[i];
    if (order !== undefined && isName(order.path) && value.valueType !== 'referenceValue') {
      throw invalidArgument(`${where}: the position in __name__ must be a reference to a document`);
    }
  }
  return { values, before: wire.before };
}

function parseSelect(wire: WireQuery['select']): readonly FieldPath[] | undefined {
  if (wire === null || wire.fields.length === 0) return undefined;
  return wire.fields.map((field) => parseField(field, 'select'));
}

function parseField(field: WireField, where: string): FieldPath {
  if (field === null) throw invalidArgument(`${where} must name its field`);
  return parseFieldPath(field.fieldPath);
}
