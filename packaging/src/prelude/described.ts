/** An API as protobufjs's JSON describes it, and how a name in it is found. Pure. */

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
export type Names = ReadonlyMap<string, Described>;

export function namesOf(all: Described): Names {
  return new Map(within(all, ''));
}

function* within({ nested = {} }: Described, scope: string): Generator<readonly [string, Described]> {
  for (const [key, inner] of Object.entries(nested)) {
    const name = scoped(scope, key);
    yield [name, inner];
    yield* within(inner, name);
  }
}

/**
 * As protobuf looks for it: in the scope that names it, then in those around it; a leading dot means the outermost.
 * Undefined for what is not described here: scalars, and types that protobufjs knows by itself.
 */
export function find(names: Names, type: string, from: string): string | undefined {
  if (type.startsWith('.')) return names.has(type.slice(1)) ? type.slice(1) : undefined;
  for (let scope = from; ; scope = scope.slice(0, Math.max(scope.lastIndexOf('.'), 0))) {
    const name = scoped(scope, type);
    if (names.has(name)) return name;
    if (scope === '') return undefined;
  }
}

export const scoped = (scope: string, key: string): string => (scope === '' ? key : `${scope}.${key}`);
