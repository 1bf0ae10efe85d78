/**
 * The property over a number of random schedules, in a thread of its own: the test runner watches every promise of its
 * own thread, which takes longer than to run them.
 */
import { parentPort, Worker, workerData } from 'node:worker_threads';
import fc from 'fast-check';
import type { Place } from './mortal.ts';
import { asBuilt, play } from './play.ts';
import { schedules } from './schedule.ts';

type Task = Readonly<{ seed: number; numRuns: number; places: readonly Place[] }>;

export type Proof = Readonly<{
  /** What broke, with the seed and the smallest schedule that was found. */
  failure?: string;
  /** Deaths at each place. */
  deaths: readonly number[];
}>;

/** Half of it on each of two cores. */
export async function prove({ seed, numRuns, places }: Task): Promise<Proof> {
  const half = Math.ceil(numRuns / 2);
  const [one, two] = await Promise.all([
    inThread({ seed, numRuns: half, places }),
    inThread({ seed: seed + 1, numRuns: numRuns - half, places }),
  ]);
  const failure = one.failure ?? two.failure;
  const deaths = places.map((_, index) => (one.deaths[index] ?? 0) + (two.deaths[index] ?? 0));
  return { deaths, ...(failure !== undefined && { failure }) };
}

function inThread(task: Task): Promise<Proof> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: task });
    worker.once('message', resolve).once('error', reject);
    worker.once('exit', (code) => reject(new Error(`the thread ended with ${code}`)));
  });
}

async function proveHere({ seed, numRuns, places }: Task): Promise<Proof> {
  const deaths = places.map(() => 0);
  const died = (place: Place): void => {
    const index = places.indexOf(place);
    deaths[index] = (deaths[index] ?? 0) + 1;
  };
  const property = fc.asyncProperty(schedules, async (schedule) => {
    const violations = await play(asBuilt, schedule, { places, died });
    if (violations.length > 0)
      throw new Error(violations.map(({ invariant, text }) => `${invariant}: ${text}`).join('\n'));
  });
  const details = await fc.check(property, { seed, numRuns });
  return { deaths, ...(details.failed && { failure: fc.defaultReportMessage(details) ?? 'no report' }) };
}

if (parentPort !== null) parentPort.postMessage(await proveHere(workerData as Task));
