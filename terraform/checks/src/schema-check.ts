/**
 * Does every resource say what the provider's schema knows? Types, nested blocks, arguments, what is required and how
 * often a block may be there. Values are not looked at.
 */
import { blocksOf, isObject, type JsonObject, listOf, type Module, objectOf } from './module.ts';
import type { Block, ProviderSchema } from './schema.ts';

const META = new Set([
  'count',
  'for_each',
  'depends_on',
  'provider',
  'lifecycle',
  'connection',
  'provisioner',
  'dynamic',
]);

/** A line for each problem. */
export function checkSchema(module: Module, schema: ProviderSchema): readonly string[] {
  return module.resources.flatMap(({ kind, type, name, body }) => {
    const at = `${module.name}: ${kind === 'data' ? 'data.' : ''}${type}.${name}`;
    if (type === 'terraform_data') return [];
    const block = (kind === 'data' ? schema.data : schema.resources)[type];
    return block === undefined
      ? [`${at}: there is no such type${nearest(type, Object.keys(schema.resources))}`]
      : [...checkBlock(at, block, body)];
  });
}

function* checkBlock(at: string, block: Block, body: JsonObject): Generator<string> {
  const dynamic = Object.keys(objectOf(body['dynamic']));
  const given = new Set([...Object.keys(body).filter((name) => !META.has(name)), ...dynamic]);
  const known = [...Object.keys(block.attributes), ...Object.keys(block.blocks)];
  for (const name of given) {
    const attribute = block.attributes[name];
    const nested = block.blocks[name];
    if (attribute === undefined && nested === undefined) {
      yield `${at}: there is no argument or block "${name}"${nearest(name, known)}`;
    } else if (attribute !== undefined && attribute.use === 'computed') {
      yield `${at}: "${name}" is an output and cannot be set`;
    } else if (attribute !== undefined && dynamic.includes(name)) {
      yield `${at}: "${name}" is an argument, not a block`;
    } else if (nested !== undefined) {
      const written = listOf(body[name]);
      if (written.some((item) => !isObject(item))) yield `${at}: "${name}" is a block, not an argument`;
      if (nested.max === 1 && written.length > 1)
        yield `${at}: one block "${name}" at most, ${written.length} given`;
      for (const item of blocksOf(body, name)) yield* checkBlock(`${at}.${name}`, nested.block, item);
    }
  }
  for (const [name, { use }] of Object.entries(block.attributes)) {
    if (use === 'required' && !given.has(name)) yield `${at}: the argument "${name}" is required`;
  }
  for (const [name, { required }] of Object.entries(block.blocks)) {
    if (required === true && !given.has(name)) yield `${at}: the block "${name}" is required`;
  }
}

/** A known word that differs by few letters. */
function nearest(word: string, known: readonly string[]): string {
  const [best] = known.map((name) => [distance(word, name), name] as const).toSorted(([a], [b]) => a - b);
  return best !== undefined && best[0] <= 3 ? `; did you mean ${best[1]}?` : '';
}

/** Levenshtein's. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of a.split('').entries()) {
    const next = [i + 1];
    for (const [j, other] of b.split('').entries()) {
      next.push(
        Math.min((next[j] ?? 0) + 1, (row[j + 1] ?? 0) + 1, (row[j] ?? 0) + (letter === other ? 0 : 1)),
      );
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
