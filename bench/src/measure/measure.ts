/**
 * The size and shape of source folders, counted from their text. Tests, contract suites and folders named `testing` are no source here. Imports of types count as imports.
 */
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cyclesOf } from './cycles.ts';
import { countActorlessWords, type WordCounts } from './words.ts';

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

/** Imports of one source by another, as `from → to`. */
type Edge = Readonly<{ from: string; to: string }>;

const edgesOf = (sources: readonly Source[]): readonly Edge[] =>
  sources.flatMap(({ path, imports }) => imports.map((to) => ({ from: path, to })));

/** A folder, or a file that lies beside the folders: each of those is a node of its own. */
const placeOf = (path: string): string => (dirname(path) === LIBRARY ? path : dirname(path));

/** Between folders: an import of a file in another place joins the two places. */
function foldersOf(edges: readonly Edge[]): ReadonlyMap<string, readonly string[]> {
  const between = new Map<string, readonly string[]>();
  for (const { from, to } of edges) {
    const [source, target] = [placeOf(from), placeOf(to)];
    between.set(source, [...(between.get(source) ?? []), ...(source === target ? [] : [target])]);
  }
  return between;
}

const SMALL_LINES = 45;

/** Sources under 45 lines that one other source imports: what is read together could stand together. */
function smallAndLone(sources: readonly Source[]): readonly string[] {
  const importers = new Map<string, Set<string>>();
  for (const { from, to } of edgesOf(sources)) importers.set(to, (importers.get(to) ?? new Set()).add(from));
  return sources
    .filter(({ path, text }) => importers.get(path)?.size === 1 && text.split('\n').length - 1 < SMALL_LINES)
    .map(({ path }) => path);
}

type Cycles = Readonly<{
  files: readonly (readonly string[])[];
  folders: readonly (readonly string[])[];
  /** The imports from folder to folder that the cycles of folders are made of. */
  imports: readonly Edge[];
}>;

function cyclesIn(sources: readonly Source[]): Cycles {
  const edges = edgesOf(sources);
  const folders = cyclesOf(foldersOf(edges));
  const imports = edges.filter(({ from, to }) => {
    const [source, target] = [dirname(from), dirname(to)];
    return source !== target && folders.some((cycle) => cycle.includes(source) && cycle.includes(target));
  });
  return {
    files: cyclesOf(new Map(sources.map(({ path, imports: to }) => [path, to]))),
    folders,
    imports,
  };
}

export type Measured = Readonly<{
  rows: readonly Counted[];
  cycles: Cycles;
  /** Of the library's barrel, types included. */
  rootNames: number;
  /** Sources of the library under 45 lines that one other source imports. */
  small: readonly string[];
  words: Readonly<{ comments: WordCounts; documents: WordCounts }>;
}>;

/** `wanted`: folders from the root of the repository; none means every folder of the library. */
export async function measure(wanted: readonly string[]): Promise<Measured> {
  const library = await sourcesOf(LIBRARY);
  const all = [...new Set(library.map(({ path }) => dirname(path)))];
  const folders = (wanted.length > 0 ? wanted : all).map((folder) => folder.replace(/\/$/, ''));
  const others = await Promise.all(
    folders.filter((folder) => !`${folder}/`.startsWith(`${LIBRARY}/`)).map(sourcesOf),
  );
  return {
    rows: folders.map((folder) => counted(folder, [...library, ...others.flat()])),
    cycles: cyclesIn(library),
    rootNames: namesOf(library, `${LIBRARY}/index.ts`),
    small: smallAndLone(library),
    words: await countActorlessWords(ROOT),
  };
}
