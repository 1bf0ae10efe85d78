/**
 * The part of a description that some messages need: themselves, what their fields refer to, and so on. Pure; what is
 * passed in is not changed.
 */
import { type Described, find, type Names, scoped } from './described.ts';

/** `types` by their full names. */
export function leanTypes(all: Described, names: Names, types: readonly string[]): Described {
  const kept = new Set<string>();
  const waiting = [...types];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (kept.has(name)) continue;
    kept.add(name);
    for (const { type } of Object.values(names.get(name)?.fields ?? {})) {
      const found = find(names, type, name);
      if (found !== undefined) waiting.push(found);
    }
  }
  return { ...alone(all), nested: keptOf(all, '', kept) };
}

function keptOf(
  { nested = {} }: Described,
  scope: string,
  kept: ReadonlySet<string>,
): Record<string, Described> {
  const lean: Record<string, Described> = {};
  for (const [key, inner] of Object.entries(nested)) {
    const name = scoped(scope, key);
    const within = keptOf(inner, name, kept);
    if (!kept.has(name) && Object.keys(within).length === 0) continue;
    // A message that is only the scope of one that is kept keeps its own fields out.
    const own = kept.has(name) ? alone(inner) : inner.fields === undefined ? {} : { fields: {} };
    lean[key] = { ...own, ...(Object.keys(within).length > 0 && { nested: within }) };
  }
  return lean;
}

/** Everything but what is nested in it. */
function alone(described: Described): Described {
  return Object.fromEntries(Object.entries(described).filter(([key]) => key !== 'nested'));
}
