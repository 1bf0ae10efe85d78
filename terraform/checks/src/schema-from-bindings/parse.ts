/**
 * The schema of one resource or data source, read out of the bindings that @cdktf/provider-google publishes: the
 * classes of `index.js` name every attribute and nested block as Terraform does, and the interfaces of `index.d.ts`
 * say which of them a configuration may or must set. Plain text work: nothing of the bindings is run.
 */
import type { Attribute, Block, NestedBlock, ValueType } from '../schema.ts';

type Argument = Readonly<{ name: string; isRequired: boolean; isRepeatable: boolean; isBlock: boolean }>;
type Nested = Readonly<{ name: string; of: string; isSet: boolean }>;
type Class = Readonly<{ values: readonly (readonly [string, ValueType])[]; nested: readonly Nested[] }>;
type Bindings = Readonly<{
  interfaces: ReadonlyMap<string, readonly Argument[]>;
  classes: ReadonlyMap<string, Class>;
}>;

const VALUE_TYPES: Readonly<Record<string, ValueType>> = {
  getStringAttribute: 'string',
  getNumberAttribute: 'number',
  getBooleanAttribute: 'bool',
  getListAttribute: ['list', 'string'],
  getNumberListAttribute: ['list', 'number'],
  getStringMapAttribute: ['map', 'string'],
  getNumberMapAttribute: ['map', 'number'],
  getBooleanMapAttribute: ['map', 'bool'],
  getAnyMapAttribute: ['map', 'string'],
};

/** Throws where the text is not what such bindings look like. */
export function blockFrom(declarations: string, code: string): Block {
  const bindings: Bindings = { interfaces: interfacesIn(declarations), classes: classesIn(code) };
  const top = [...bindings.interfaces.keys()].find(
    (name) => name.endsWith('Config') && isTop(declarations, name),
  );
  const main =
    /exports\.\w+ = (\w+);\s*\/\/ =+\s*\/\/ STATIC|class (\w+) extends cdktf\.Terraform(?:Resource|DataSource)/;
  const found = main.exec(code);
  const name = found?.[2] ?? found?.[1];
  if (top === undefined || name === undefined)
    throw new Error('not the bindings of a resource or data source');
  return blockOf(bindings, bindings.interfaces.get(top) ?? [], name);
}

const isTop = (declarations: string, name: string): boolean =>
  declarations.includes(`interface ${name} extends cdktf.TerraformMetaArguments`);

function blockOf(bindings: Bindings, given: readonly Argument[], className: string): Block {
  const attributes: Record<string, Attribute> = {};
  const blocks: Record<string, NestedBlock> = {};
  const arguments_ = new Map(given.map((argument) => [argument.name, argument]));
  const parsed = bindings.classes.get(className);
  if (parsed === undefined && given.length > 0) throw new Error(`no class ${className}`);
  for (const [name, type] of parsed?.values ?? []) {
    const argument = arguments_.get(name);
    attributes[name] = { type, use: argument === undefined ? 'computed' : useOf(argument) };
  }
  for (const { name, of, isSet } of parsed?.nested ?? []) {
    const argument = arguments_.get(name);
    const inner = blockOf(bindings, bindings.interfaces.get(of) ?? [], `${of}OutputReference`);
    if (argument?.isBlock === true) {
      const nesting = name === 'timeouts' ? 'single' : isSet ? 'set' : 'list';
      blocks[name] = {
        nesting,
        ...(!argument.isRepeatable && nesting !== 'single' && { max: 1 }),
        ...(argument.isRequired && { required: true }),
        block: inner,
      };
    } else {
      const type: ValueType = [isSet ? 'set' : 'list', objectOf(inner)];
      attributes[name] = { type, use: argument === undefined ? 'computed' : useOf(argument) };
    }
  }
  const unknown = given.filter(({ name }) => !(name in attributes) && !(name in blocks));
  if (unknown.length > 0)
    throw new Error(`${className} does not have ${unknown.map(({ name }) => name).join(', ')}`);
  return { attributes, blocks };
}

const useOf = ({ isRequired }: Argument): 'required' | 'optional' => (isRequired ? 'required' : 'optional');

const objectOf = (block: Block): ValueType => [
  'object',
  {
    ...Object.fromEntries(Object.entries(block.attributes).map(([name, { type }]) => [name, type])),
    ...Object.fromEntries(
      Object.entries(block.blocks).map(([name, { block: inner, nesting }]) => [
        name,
        [nesting === 'set' ? 'set' : 'list', objectOf(inner)] as const,
      ]),
    ),
  },
];

function interfacesIn(declarations: string): Map<string, readonly Argument[]> {
  const found = new Map<string, readonly Argument[]>();
  for (const [, name = '', body = ''] of declarations.matchAll(
    /^export interface (\w+)[^{]*\{([\s\S]*?)\n\}/gm,
  )) {
    const members = body.matchAll(/\/\*\*([\s\S]*?)\*\/\s*readonly (\w+)(\??): ([^;]+);/g);
    found.set(
      name,
      [...members].map(([, doc = '', , optional, type = '']) => {
        const name = /\{@link [^#\s]+#(\w+) /.exec(doc)?.[1];
        if (name === undefined) throw new Error(`a member without a link to its documentation: ${type}`);
        const isBlock = doc.includes(`* ${name} block`);
        return { name, isRequired: optional === '', isRepeatable: type.includes('[]'), isBlock };
      }),
    );
  }
  return found;
}

function classesIn(code: string): Map<string, Class> {
  const found = new Map<string, Class>();
  for (const [, name = '', body = ''] of code.matchAll(/^class (\w+) extends [\w.]+ \{\n([\s\S]*?)^\}/gm)) {
    const values = new Map<string, ValueType>();
    for (const [, set, getter = '', attribute = ''] of body.matchAll(
      /return (cdktf\.(?:Token\.as\w+\(cdktf\.)?Fn\.tolist\()?this\.(get\w+Attribute)\('(\w+)'\)/g,
    )) {
      const type = VALUE_TYPES[getter];
      if (type === undefined)
        throw new Error(`${name}.${attribute} is read with ${getter}, which is not known here`);
      values.set(attribute, set === undefined || typeof type === 'string' ? type : ['set', 'string']);
    }
    const nested = [
      ...body.matchAll(/= new (\w+?)(?:List|OutputReference|Map)\(this, "(\w+)"(?:, (true|false))?\)/g),
    ].map(([, of = '', name = '', isSet]) => ({ name, of, isSet: isSet === 'true' }));
    found.set(name, { values: [...values], nested });
  }
  return found;
}
