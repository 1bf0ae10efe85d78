/** An API as protobufjs's JSON describes it, and how a name in it is found. Pure. */

/** They name no message: most fields are of one, and looking for them in every scope is what takes time. */
const SCALARS: ReadonlySet<string> = new Set(
  'double float int32 uint32 sint32 fixed32 sfixed32 int64 uint64 sint64 fixed64 sfixed64 bool string bytes'.split(
    ' ',
  ),
);

export type Described = Readonly<{
  nested?: Readonly<Record<string, Described>>;
  fields?: Readonly<Record<string, Readonly<{ type: string }>>>;
  methods?: Readonly<Record<string, DescribedMethod>>;
}>;

export type DescribedMethod = Readonly<{
  requestType: string;
  responseType: string;
  requestStream?: boolean;
  responseStream?: boolean;
}>;

/** By full name. */
export type Names = Pick<ReadonlyMap<string, Described>, 'get' | 'has'>;

/** Looked for when asked for: an API has hundreds of names, and a message refers to a few. */
export function namesOf(all: Described): Names {
  const get = (name: string): Described | undefined =>
    name.split('.').reduce<Described | undefined>((at, key) => own(at?.nested, key), all);
  return { get, has: (name) => get(name) !== undefined };
}

/** A name may be that of something that every object has. */
const own = (nested: Described['nested'], key: string): Described | undefined =>
  nested !== undefined && Object.hasOwn(nested, key) ? nested[key] : undefined;

export type Service = Readonly<{ name: string; methods: Readonly<Record<string, DescribedMethod>> }>;

/** Messages hold none, and most of a description is within messages. */
export function servicesOf({ nested = {} }: Described, scope = ''): readonly Service[] {
  return Object.entries(nested).flatMap(([key, inner]) => {
    const name = scoped(scope, key);
    if (inner.methods !== undefined) return [{ name, methods: inner.methods }];
    return inner.fields === undefined ? servicesOf(inner, name) : [];
  });
}

/**
 * As protobuf looks for it: in the scope that names it, then in those around it; a leading dot means the outermost.
 * Undefined for what is not described here: scalars, and types that protobufjs knows by itself.
 */
export function find(names: Names, type: string, from: string): string | undefined {
  if (SCALARS.has(type)) return undefined;
  if (type.startsWith('.')) return names.has(type.slice(1)) ? type.slice(1) : undefined;
  for (let scope = from; ; scope = scope.slice(0, Math.max(scope.lastIndexOf('.'), 0))) {
    const name = scoped(scope, type);
    if (names.has(name)) return name;
    if (scope === '') return undefined;
  }
}

export const scoped = (scope: string, key: string): string => (scope === '' ? key : `${scope}.${key}`);
