/**
 * A folder of `.tf` files as data: blocks and arguments as hcl2json writes them, expressions as texts with `${…}`.
 */
import { parse } from '@cdktf/hcl2json';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export type JsonObject = Readonly<{ [name: string]: Json }>;

export type Resource = Readonly<{ kind: 'resource' | 'data'; type: string; name: string; body: JsonObject }>;

export type Module = Readonly<{
  /** As in messages. */
  name: string;
  folder: string;
  resources: readonly Resource[];
  variables: ReadonlyMap<string, JsonObject>;
  outputs: ReadonlyMap<string, JsonObject>;
  locals: ReadonlyMap<string, Json>;
  calls: ReadonlyMap<string, JsonObject>;
}>;

/** Rejects for text that is not HCL. */
export async function readModule(folder: string, name: string): Promise<Module> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.tf')).toSorted();
  const parsed = await Promise.all(
    files.map(async (file) => (await parse(file, await readFile(join(folder, file), 'utf8'))) as JsonObject),
  );
  const named = (kind: string): Map<string, JsonObject> =>
    new Map(
      parsed.flatMap((file) =>
        Object.entries(objectOf(file[kind])).map(([key, value]) => [key, body(value)]),
      ),
    );
  const resources = (['resource', 'data'] as const).flatMap((kind) =>
    parsed.flatMap((file) =>
      Object.entries(objectOf(file[kind])).flatMap(([type, byName]) =>
        Object.entries(objectOf(byName)).map(([own, value]) => ({
          kind,
          type,
          name: own,
          body: body(value),
        })),
      ),
    ),
  );
  const locals = parsed.flatMap((file) =>
    listOf(file['locals']).flatMap((block) => Object.entries(objectOf(block))),
  );
  return {
    name,
    folder,
    resources,
    variables: named('variable'),
    outputs: named('output'),
    locals: new Map(locals),
    calls: named('module'),
  };
}

/** All modules and examples under the `terraform` folder, by `modules/NAME` and `examples/NAME`. */
export async function readModules(terraform: string): Promise<ReadonlyMap<string, Module>> {
  const modules = new Map<string, Module>();
  for (const part of ['modules', 'examples']) {
    for (const name of (await readdir(join(terraform, part))).toSorted()) {
      modules.set(`${part}/${name}`, await readModule(join(terraform, part, name), `${part}/${name}`));
    }
  }
  return modules;
}

const body = (value: Json): JsonObject => objectOf(listOf(value)[0]);

/** A text as it is, and everything else as JSON. */
export const textOf = (value: Json | undefined): string =>
  typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const objectOf = (value: Json | undefined): JsonObject => (isObject(value) ? value : {});

export const listOf = (value: Json | undefined): readonly Json[] =>
  value === undefined || value === null ? [] : Array.isArray(value) ? value : [value as Json];

/** Blocks of this name, those made by `dynamic` included. */
export function blocksOf(of: JsonObject, name: string): readonly JsonObject[] {
  const dynamic = listOf(objectOf(of['dynamic'])[name]).flatMap((block) =>
    listOf(objectOf(block)['content']),
  );
  return [...listOf(of[name]), ...dynamic].map(objectOf);
}
