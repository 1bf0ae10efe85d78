/**
 * How often comments and documents leave their actor unnamed, by the words that do so: counted in the comments of
 * every TypeScript file of the repository and in every Markdown file but the changelog, which quotes.
 */
import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';

const WORDS = ['whoever', 'somebody', 'nobody'] as const;
const BLOCK_OR_LINE = /\/\*[\s\S]*?\*\/|(?:^|\s)\/\/.*$/gm;

export type WordCounts = Readonly<Record<(typeof WORDS)[number], number>>;

/** What comments of a source say, one after another. */
export const commentsOf = (text: string): string =>
  [...text.matchAll(BLOCK_OR_LINE)].map(([comment]) => comment).join('\n');

const EMPTY: WordCounts = { whoever: 0, somebody: 0, nobody: 0 };

/** Whole words, in either case; no part of a longer name. */
export function countWords(text: string): WordCounts {
  const count = (word: string): number => [...text.matchAll(new RegExp(`\\b${word}\\b`, 'gi'))].length;
  return { whoever: count('whoever'), somebody: count('somebody'), nobody: count('nobody') };
}

const add = (left: WordCounts, right: WordCounts): WordCounts => ({
  whoever: left.whoever + right.whoever,
  somebody: left.somebody + right.somebody,
  nobody: left.nobody + right.nobody,
});

const isForeign = (name: string): boolean => ['node_modules', 'dist', '.git'].includes(name);

async function countIn(root: string, pattern: string, read: (text: string) => string): Promise<WordCounts> {
  let total = EMPTY;
  for await (const path of glob(pattern, { cwd: root, exclude: isForeign })) {
    if (path === 'CHANGELOG.md') continue;
    total = add(total, countWords(read(await readFile(join(root, path), 'utf8'))));
  }
  return total;
}

/** Of the repository at `root`. */
export async function countActorlessWords(
  root: string,
): Promise<Readonly<{ comments: WordCounts; documents: WordCounts }>> {
  return {
    comments: await countIn(root, '**/*.ts', commentsOf),
    documents: await countIn(root, '**/*.md', (text) => text),
  };
}
