/** A seed from the text of a file in YAML or JSON, which is YAML as well. */
import { isMap, isScalar, LineCounter, parseDocument } from 'yaml';
import { type Path, SeedError } from './named.ts';
import { type Seed, seedFrom, type SeedDescription } from './seed.ts';

/** Throws an error of one line that names the file, the line and the place. */
export function parseSeed(text: string, file: string): Seed {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, prettyErrors: false });
  const lineAt = (offset: number): string => `${file}:${lineCounter.linePos(offset).line}`;
  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined) throw new SeedError(lineAt(problem.pos[0]), problem.message);

  const placeOf = (path: Path): string => {
    if (path.length === 0) return file;
    return `${lineAt(offsetOf(path))}: ${path.join('.')}`;
  };
  /** Of the key, for what has one. */
  function offsetOf(path: Path): number {
    const parent = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
    if (isMap(parent)) {
      const key = parent.items.find(
        ({ key }) => isScalar(key) && String(key.value) === String(path.at(-1)),
      )?.key;
      if (isScalar(key) && key.range) return key.range[0];
    }
    const node = document.getIn(path, true) as Readonly<{ range?: readonly number[] | null }> | undefined;
    return node?.range?.[0] ?? 0;
  }
  let description: unknown;
  try {
    description = document.toJS() ?? {};
  } catch (error) {
    // Aliases of aliases that would become more than the memory holds.
    throw new SeedError(file, error instanceof Error ? error.message : String(error));
  }
  return seedFrom(description as SeedDescription, placeOf);
}
