/** Publishers of one key in several processes at once, and what they got: no number twice. */
import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Reported } from './publisher.ts';
import type { WayName } from './ways.ts';

export type Publishing = Readonly<{
  port: number;
  way: WayName;
  processes: number;
  /** In each process. */
  publishers: number;
  windowMs: number;
}>;

export type Published = Readonly<{
  perSecond: number;
  count: number;
  failed: number;
  failure?: string;
  unanswered: number;
}>;

const PUBLISHER = fileURLToPath(new URL('./publisher.ts', import.meta.url));
const FLAGS = ['--conditions=source', '--max-semi-space-size=16'];

/** Throws where a number was given twice, or where one is missing though every publish was answered and none failed. */
export async function publishing({
  port,
  way,
  processes,
  publishers,
  windowMs,
}: Publishing): Promise<Published> {
  const key = randomUUID();
  const args = [way, port, key, publishers, windowMs].map(String);
  const children = Array.from({ length: processes }, () => fork(PUBLISHER, args, { execArgv: FLAGS }));
  try {
    await Promise.all(children.map(said));
    const reports = children.map(said);
    for (const child of children) child.send('begin');
    const all = (await Promise.all(reports)) as readonly Reported[];
    const sum = (count: (report: Reported) => number): number =>
      all.reduce((total, report) => total + count(report), 0);
    const [failed, unanswered] = [sum((report) => report.failed), sum((report) => report.unanswered)];
    const numbers = all.flatMap((report) => report.numbers);
    check(way, numbers, failed + unanswered === 0);
    const failure = all.find((report) => report.failure !== undefined)?.failure;
    return {
      perSecond: (sum(({ inTime }) => inTime) / windowMs) * 1_000,
      count: numbers.length,
      failed,
      unanswered,
      ...(failure !== undefined && { failure }),
    };
  } finally {
    await Promise.all(children.map(end));
  }
}

/** A publish that failed may have its number all the same, so a hole means something only where none did. */
export function check(way: string, numbers: readonly number[], areAll: boolean): void {
  const sorted = numbers.toSorted((left, right) => left - right);
  for (const [index, number] of sorted.entries()) {
    if (!Number.isSafeInteger(number) || number < 1) throw new Error(`${way}: ${number} is no number`);
    if (number === sorted[index - 1]) throw new Error(`${way}: ${number} was given twice`);
    if (areAll && number !== index + 1) throw new Error(`${way}: ${index + 1} was not given`);
  }
}

async function said(child: ChildProcess): Promise<unknown> {
  const over = new AbortController();
  const { signal } = over;
  try {
    const gone = once(child, 'exit', { signal }).then(() => {
      throw new Error('a publisher ended before it had reported');
    });
    const [message] = (await Promise.race([once(child, 'message', { signal }), gone])) as unknown[];
    return message;
  } finally {
    over.abort();
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  if (child.connected) child.disconnect();
  await gone;
}
