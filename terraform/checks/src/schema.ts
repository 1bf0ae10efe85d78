/**
 * The schema of the google provider, as far as the modules use it: a committed file that is generated from public
 * bindings of one provider version, and a hand-written overlay of the few arguments that later versions added.
 *
 * Names, nesting and what is required are in it; what values an argument accepts is not.
 */
import { readFileSync } from 'node:fs';

/** As Terraform writes types in JSON: `"string"`, `["list", "string"]`, `["object", {…}]`. */
export type ValueType =
  | string
  | readonly ['list' | 'set' | 'map', ValueType]
  | readonly ['object', Readonly<Record<string, ValueType>>];

export type Attribute = Readonly<{
  type: ValueType;
  /** `computed`: an output that no configuration may set. */
  use: 'required' | 'optional' | 'computed';
}>;

export type NestedBlock = Readonly<{
  nesting: 'list' | 'set' | 'single';
  /** Absent: any number. */
  max?: 1;
  required?: true;
  block: Block;
}>;

export type Block = Readonly<{
  attributes: Readonly<Record<string, Attribute>>;
  blocks: Readonly<Record<string, NestedBlock>>;
}>;

export type ProviderSchema = Readonly<{
  resources: Readonly<Record<string, Block>>;
  data: Readonly<Record<string, Block>>;
}>;

/** What the overlay says of one type: more attributes and blocks at a path of nested blocks. */
type Addition = Readonly<{
  type: string;
  path: readonly string[];
  since: string;
  /** A type that the generated schema leaves out. */
  isType?: true;
  attributes?: Readonly<Record<string, Attribute>>;
  blocks?: Readonly<Record<string, NestedBlock>>;
}>;

export function loadSchema(): ProviderSchema {
  const generated = read('google-6.50.0.json') as ProviderSchema;
  const { additions } = read('overlay.json') as Readonly<{ additions: readonly Addition[] }>;
  const resources: Record<string, Block> = { ...generated.resources };
  for (const addition of additions) {
    const block = addition.isType === true ? { attributes: {}, blocks: {} } : resources[addition.type];
    if (block === undefined)
      throw new Error(`the overlay adds to ${addition.type}, which the schema does not have`);
    resources[addition.type] = extended(block, addition.path, addition);
  }
  return { ...generated, resources };
}

function extended(block: Block, path: readonly string[], addition: Addition): Block {
  const [name, ...rest] = path;
  if (name === undefined) {
    return {
      attributes: { ...block.attributes, ...addition.attributes },
      blocks: { ...block.blocks, ...addition.blocks },
    };
  }
  const nested = block.blocks[name];
  if (nested === undefined)
    throw new Error(`the overlay names the block ${name} of ${addition.type}, which is not there`);
  const inner = extended(nested.block, rest, addition);
  return { ...block, blocks: { ...block.blocks, [name]: { ...nested, block: inner } } };
}

const read = (file: string): unknown =>
  JSON.parse(readFileSync(new URL(`../schema/${file}`, import.meta.url), 'utf8'));
