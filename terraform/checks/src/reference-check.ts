/**
 * Is everything that an expression names declared, and is everything that is declared named somewhere? Variables,
 * locals, resources with their attributes, modules with their outputs; and do calls of modules give what the called
 * one declares, and all that it requires?
 */
import { join, relative } from 'node:path';
import { type Json, type Module, textOf } from './module.ts';
import type { ProviderSchema } from './schema.ts';
import { TERRAFORM_FOLDER } from './terraform.ts';

const CALL_META = new Set(['source', 'version', 'count', 'for_each', 'depends_on', 'providers']);

/** A line for each problem. `modules` by the names that `readModules` gives. */
export function checkReferences(
  module: Module,
  modules: ReadonlyMap<string, Module>,
  schema: ProviderSchema,
  terraform: string = TERRAFORM_FOLDER,
): readonly string[] {
  const texts = [...expressions(everything(module))];
  const problems: string[] = [];
  const named = { var: new Set<string>(), local: new Set<string>() };
  const report = (text: string): void => void problems.push(`${module.name}: ${text}`);
  const called = (name: string): Module | undefined => {
    const source = module.calls.get(name)?.['source'];
    return typeof source !== 'string'
      ? undefined
      : modules.get(relative(terraform, join(module.folder, source)));
  };

  for (const text of texts) {
    for (const [, root = '', name = '', next] of text.matchAll(
      /(?<![\w."/-])(var|local|module|data\.\w+|google_\w+)\.(\w+)(?:\[[^\]]*\])?(?:\.(\w+))?/g,
    )) {
      if (root === 'var') {
        named.var.add(name);
        if (!module.variables.has(name)) report(`var.${name} is not declared`);
      } else if (root === 'local') {
        named.local.add(name);
        if (!module.locals.has(name)) report(`local.${name} is not declared`);
      } else if (root === 'module') {
        if (!module.calls.has(name)) report(`module.${name} is not there`);
        else if (next !== undefined && called(name)?.outputs.has(next) === false) {
          report(`module.${name} has no output ${next}`);
        }
      } else {
        const [kind, type] = root.startsWith('data.')
          ? (['data', root.slice(5)] as const)
          : (['resource', root] as const);
        if (!module.resources.some((own) => own.kind === kind && own.type === type && own.name === name)) {
          report(`${root}.${name} is not there`);
        } else if (next !== undefined) {
          const block = (kind === 'data' ? schema.data : schema.resources)[type];
          if (block !== undefined && !(next in block.attributes) && !(next in block.blocks)) {
            report(`${root}.${name} has no attribute ${next}`);
          }
        }
      }
    }
  }
  for (const name of module.variables.keys()) {
    // The policy's variables are there to be judged; all others for something.
    if (!named.var.has(name)) report(`the variable ${name} is used nowhere`);
  }
  for (const name of module.locals.keys())
    if (!named.local.has(name)) report(`local.${name} is used nowhere`);
  for (const [name, call] of module.calls) {
    const target = called(name);
    if (target === undefined) {
      report(`module.${name}: there is no module at ${textOf(call['source'])}`);
      continue;
    }
    for (const argument of Object.keys(call)) {
      if (!CALL_META.has(argument) && !target.variables.has(argument)) {
        report(`module.${name}: ${target.name} has no variable ${argument}`);
      }
    }
    for (const [variable, { default: standard }] of target.variables) {
      if (standard === undefined && !(variable in call)) report(`module.${name}: ${variable} is required`);
    }
  }
  return [...new Set(problems)];
}

const everything = (module: Module): Json => [
  ...module.resources.map(({ body }) => body),
  ...module.variables.values(),
  ...module.outputs.values(),
  ...module.locals.values(),
  ...module.calls.values(),
];

/** Every text with an expression in it, names of `${…}` objects included. */
function* expressions(value: Json): Generator<string> {
  if (typeof value === 'string') {
    if (value.includes('${')) for (const inner of interpolations(value)) yield inner;
  } else if (Array.isArray(value)) {
    for (const item of value as readonly Json[]) yield* expressions(item);
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, item] of Object.entries(value)) {
      yield* expressions(name);
      yield* expressions(item);
    }
  }
}

/** What stands between `${` and its brace; the texts in it that hold no expression themselves are left out. */
function* interpolations(text: string): Generator<string> {
  for (let from = text.indexOf('${'); from !== -1; from = text.indexOf('${', from)) {
    let depth = 1;
    let at = from + 2;
    while (at < text.length && depth > 0) {
      if (text[at] === '{') depth += 1;
      if (text[at] === '}') depth -= 1;
      at += 1;
    }
    yield text.slice(from + 2, at - 1).replaceAll(TEXTS, (_, inner: string) => namesIn(inner));
    from = at;
  }
}

/** From its own opening quote on: what stands between two texts is none. */
const TEXTS = /"((?:\$\{[^}]*\}|\\.|[^"\\])*)"/g;

const namesIn = (text: string): string =>
  `" ${[...text.matchAll(/\$\{([^}]*)\}/g)].map(([, inner]) => inner).join(' ')} "`;
