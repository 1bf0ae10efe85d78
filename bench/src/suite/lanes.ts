/**
 * Which test files share a process. The rule looks at what a file reaches through its imports, never at its name:
 *
 * - `children`: it can start other processes. It has a process of its own, and mostly waits for them.
 * - `sockets`: it can open sockets or threads, or it changes its process when it is loaded (a variable of the
 *   environment, the length of stack traces, hooks, a search before the first test). A process of its own.
 * - `together`: everything else. Some twenty such files share a process, which saves its start.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { importReader, type Reached } from './imports.ts';

export type Lane = 'children' | 'sockets' | 'together';

/** What one process runs. */
export type Unit = Readonly<{ lane: Lane; files: readonly string[] }>;

const CHILDREN = /^node:(?:child_process|cluster)$/;
const SOCKETS =
  /^(?:node:(?:net|tls|https?|http2|dgram|worker_threads|inspector(?:\/promises)?)|@google-cloud\/.+|@grpc\/.+|google-.+|ioredis)$/;
/** At the beginning of a line, thus when the file is loaded. */
const AT_LOAD =
  /^(?:process\.|globalThis\.|Error\.|await |(?:const|let) .*= await |before(?:Each)?\(|after(?:Each)?\()/m;
const HOOKS_OF_A_TEST = /^(?:before|after)(?:Each)?\(/gm;
/** A process takes at most so many files, so that the processors have equal shares. */
const TOGETHER = 20;

/** The lane of one file, by what it reaches and by the text of its sources. */
export function laneOf(reached: Reached, read: (file: string) => string): Lane {
  const modules = [...reached.modules];
  if (modules.some((name) => CHILDREN.test(name))) return 'children';
  if (modules.some((name) => SOCKETS.test(name))) return 'sockets';
  const changes = reached.sources.some((file) => {
    // Hooks of the test file itself belong to its suite; those of a file that several load would be the first one's.
    const text = file.endsWith('.test.ts') ? read(file).replaceAll(HOOKS_OF_A_TEST, '') : read(file);
    return AT_LOAD.test(text);
  });
  return changes ? 'sockets' : 'together';
}

/** Every file in exactly one unit: first those that wait longest for others. */
export function units(root: string, files: readonly string[]): readonly Unit[] {
  const reachedFrom = importReader();
  const texts = new Map<string, string>();
  const read = (file: string): string => {
    const text = texts.get(file) ?? readFileSync(file, 'utf8');
    texts.set(file, text);
    return text;
  };
  const lanes = Map.groupBy(files, (file) => laneOf(reachedFrom(join(root, file)), read));
  const alone = (lane: Lane): Unit[] => (lanes.get(lane) ?? []).map((file) => ({ lane, files: [file] }));
  return [...alone('children'), ...alone('sockets'), ...shared(lanes.get('together') ?? [])];
}

function shared(files: readonly string[]): readonly Unit[] {
  const count = Math.ceil(files.length / TOGETHER);
  return Array.from({ length: count }, (_, unit) => ({
    lane: 'together',
    files: files.filter((_file, index) => index % count === unit),
  }));
}
