/**
 * Runs the units of the suite, several at a time, each by node:test's own `run()` in a process of its own. Hands on
 * the events of a unit when that has ended, so that the lines of two units never mix.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { run } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Unit } from './lanes.ts';
import { MARK } from './leaks.ts';
import { USAGE } from './usage.ts';

/** The part of node:test's events that is read here. */
export type TestEvent = Readonly<{
  type: string;
  data: Readonly<{
    name?: string;
    nesting?: number;
    testId?: number;
    parentId?: number;
    file?: string;
    message?: string;
    skip?: string | boolean;
    todo?: string | boolean;
    success?: boolean;
    details?: Readonly<{ duration_ms: number; type?: string; error?: Readonly<{ failureType?: string }> }>;
    counts?: Readonly<Record<string, number>>;
  }>;
}>;

export type Ran = Readonly<{ unit: Unit; events: readonly TestEvent[]; seconds: number; cpuSeconds: number }>;

export type Running = Readonly<{
  root: string;
  /** Processes at a time that start others, and beside them processes that do not. Each lends a hand at the end. */
  slots: Readonly<{ waiting: number; working: number }>;
  /** For one test. */
  testTimeoutMs: number;
  /** Begins the mark of each process. */
  mark: string;
  ended(ran: Ran): void;
}>;

const TOGETHER = fileURLToPath(new URL('./together.ts', import.meta.url));
const USAGE_FILE = new URL('./usage.ts', import.meta.url).href;
/** A file has many tests, and may share the processors with other work: only what hangs is stopped by this. */
const UNIT_TIMEOUTS = 6;

export async function runUnits(all: readonly Unit[], running: Running): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'suite-'));
  const waiting = all.filter(({ lane }) => lane === 'children').values();
  const working = all.filter(({ lane }) => lane !== 'children').values();
  const work = async (...queues: readonly Iterable<Unit>[]): Promise<void> => {
    for (const queue of queues) for (const unit of queue) running.ended(await runUnit(unit, running, folder));
  };
  const { slots } = running;
  const workers = [
    ...Array.from({ length: slots.waiting }, () => work(waiting, working)),
    ...Array.from({ length: slots.working }, () => work(working, waiting)),
  ];
  try {
    await Promise.all(workers);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runUnit(unit: Unit, running: Running, folder: string): Promise<Ran> {
  const files = unit.files.map((file) => join(running.root, file));
  const usage = join(folder, relative('/', files[0] ?? '').replaceAll('/', '-'));
  const started = performance.now();
  const stream = run({
    cwd: running.root,
    files: unit.lane === 'together' ? [TOGETHER] : files,
    argv: unit.lane === 'together' ? files : [],
    execArgv: [`--test-timeout=${running.testTimeoutMs}`, '--import', USAGE_FILE],
    env: { ...process.env, [USAGE]: usage, [MARK]: `${running.mark}${unit.files.join(' ')}` },
    timeout: UNIT_TIMEOUTS * running.testTimeoutMs,
  });
  const events: TestEvent[] = [];
  for await (const event of stream as AsyncIterable<TestEvent>) events.push(event);
  return { unit, events, seconds: (performance.now() - started) / 1_000, cpuSeconds: readUsage(usage) };
}

function readUsage(file: string): number {
  try {
    return Number(readFileSync(file, 'utf8'));
  } catch {
    // The process did not come to its end by itself.
    return 0;
  }
}
