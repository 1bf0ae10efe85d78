/**
 * The size and shape of source folders, counted from their text. Tests, contract suites and folders named `testing` are no source here. Imports of types count as imports.
 */
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cyclesOf } from './cycles.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const LIBRARY = 'shared/src';

type Source = Readonly<{ path: string; text: string; imports: readonly string[] }>;

type Counted = Readonly<{
  folder: string;
  files: number;
  lines: number;
  /** Without empty lines and comments. */
  code: number;
  /** Of the file that has the most of them. */
  mostCode: number;
  exportedFunctions: number;
  imports: number;
}>;

const isSource = (file: string): boolean =>
  file.endsWith('.ts') && !/\.test\.ts$|contract\.ts$|(^|\/)testing\//.test(file);

async function sourcesOf(folder: string): Promise<readonly Source[]> {
  const files = (await readdir(join(ROOT, folder), { recursive: true })).filter(isSource).toSorted();
  return Promise.all(
    files.map(async (file) => {
      const path = join(folder, file);
      const text = await readFile(join(ROOT, path), 'utf8');
      const imports = [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map(([, to = '']) =>
        relative(ROOT, resolve(ROOT, dirname(path), to)),
      );
      return { path, text, imports };
    }),
  );
}

const codeLinesOf = (text: string): number =>
  text
    .replaceAll(/\/\*[\s\S]*?\*\//g, '')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.trim().startsWith('//')).length;

/** `export function`, and constants that are one. */
const exportedFunctionsOf = (text: string): number =>
  [
    ...text.matchAll(
      /^export (?:async )?function|^export const \w+(?::[^=]+)? =\s*(?:async )?(?:<[^>]*>)?\(/gm,
    ),
  ].length;

function counted(folder: string, sources: readonly Source[]): Counted {
  const own = sources.filter(({ path }) => path.startsWith(`${folder}/`));
  const sum = (of: (source: Source) => number): number =>
    own.reduce((total, source) => total + of(source), 0);
  return {
    folder,
    files: own.length,
    lines: sum(({ text }) => text.split('\n').length - 1),
    code: sum(({ text }) => codeLinesOf(text)),
    mostCode: Math.max(0, ...own.map(({ text }) => codeLinesOf(text))),
    exportedFunctions: sum(({ text }) => exportedFunctionsOf(text)),
    imports: sum(({ imports }) => imports.filter((to) => to.startsWith(`${folder}/`)).length),
  };
}

/** Of the barrel at `path`, types included. */
function namesOf(sources: readonly Source[], path: string): number {
  const text = sources.find((source) => source.path === path)?.text ?? '';
  const lists = [...text.matchAll(/export (?:type )?\{([^}]*)\}/g)].map(([, list = '']) => list);
  return lists.flatMap((list) => list.split(',')).filter((name) => name.trim() !== '').length;
}

export type Measured = Readonly<{
  rows: readonly Counted[];
  cycles: Readonly<{ files: readonly (readonly string[])[]; folders: readonly (readonly string[])[] }>;
  /** Of the library's barrel, types included. */
  rootNames: number;
}>;

/** `wanted`: folders from the root of the repository; none means every folder of the library. */
export async function measure(wanted: readonly string[]): Promise<Measured> {
  const library = await sourcesOf(LIBRARY);
  const all = [...new Set(library.map(({ path }) => dirname(path)))];
  const folders = (wanted.length > 0 ? wanted : all).map((folder) => folder.replace(/\/$/, ''));
  const others = await Promise.all(
    folders.filter((folder) => !`${folder}/`.startsWith(`${LIBRARY}/`)).map(sourcesOf),
  );
  // What lies beside the folders (errors, clock, handler) is used by all of them and uses none.
  const between = new Map<string, readonly string[]>();
  for (const { path, imports } of library) {
    const from = dirname(path);
    const to = imports.map((file) => dirname(file)).filter((folder) => folder !== from && folder !== LIBRARY);
    if (from !== LIBRARY) between.set(from, [...(between.get(from) ?? []), ...to]);
  }
  return {
    rows: folders.map((folder) => counted(folder, [...library, ...others.flat()])),
    cycles: {
      files: cyclesOf(new Map(library.map(({ path, imports }) => [path, imports]))),
      folders: cyclesOf(between),
    },
    rootNames: namesOf(library, `${LIBRARY}/index.ts`),
  };
}
