/**
 * The property over a number of random schedules, in threads of its own: the test runner watches every promise of its own
 * thread, which takes longer than to run them.
 */
import { parentPort, Worker, workerData } from 'node:worker_threads';
import fc from 'fast-check';
import { asBuilt, play } from './play.ts';
import { schedules, type Site, sites } from './schedule.ts';

type Task = Readonly<{ seed: number; numRuns: number }>;

export type Proof = Readonly<{
  /** What broke, with the seed and the smallest schedule that was found. */
  failure?: string;
  /** Deaths at each site, in their order. */
  deaths: readonly number[];
}>;

/** Half of it on each of two cores. */
export async function prove({ seed, numRuns }: Task): Promise<Proof> {
  const half = Math.ceil(numRuns / 2);
  const [one, two] = await Promise.all([
    inThread({ seed, numRuns: half }),
    inThread({ seed: seed + 1, numRuns: numRuns - half }),
  ]);
  const failure = one.failure ?? two.failure;
  const deaths = sites.map((_, index) => (one.deaths[index] ?? 0) + (two.deaths[index] ?? 0));
  return { deaths, ...(failure !== undefined && { failure }) };
}

function inThread(task: Task): Promise<Proof> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: task });
    worker.once('message', resolve).once('error', reject);
    worker.once('exit', (code) => reject(new Error(`the thread ended with ${code}`)));
  });
}

async function proveHere({ seed, numRuns }: Task): Promise<Proof> {
  const counts = new Map<Site, number>();
  const died = (site: Site): void => void counts.set(site, (counts.get(site) ?? 0) + 1);
  const property = fc.asyncProperty(schedules, async (schedule) => {
    const broken = await play(asBuilt, schedule, died);
    if (broken.length > 0)
      throw new Error(broken.map(({ invariant, text }) => `${invariant}: ${text}`).join('\n'));
  });
  const details = await fc.check(property, { seed, numRuns });
  const deaths = sites.map((site) => counts.get(site) ?? 0);
  return { deaths, ...(details.failed && { failure: fc.defaultReportMessage(details) ?? 'no report' }) };
}

if (parentPort !== null) parentPort.postMessage(await proveHere(workerData as Task));
