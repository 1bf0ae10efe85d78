/**
 * A property over random schedules. A failure names its seed and the smallest schedule that fast-check shrank it to.
 *
 * In threads of its own, because the test runner follows every promise of its own thread, which takes longer than to run
 * the schedules.
 */
import { parentPort, Worker, workerData } from 'node:worker_threads';
import fc from 'fast-check';
import { newTally } from './places.ts';

/** The same `seed` draws the same schedules. */
export type Runs = Readonly<{ seed: number; numRuns: number }>;

type Violation<Invariant extends string = string> = Readonly<{ invariant: Invariant; text: string }>;

export type Searched = Readonly<{
  /** What broke, for people. */
  failure?: string;
  /** How often a process died, by place. */
  deaths: Readonly<Record<string, number>>;
}>;

/** Plays one schedule, reports each death, and says what broke. */
export type Play<Schedule> = (
  schedule: Schedule,
  died: (place: string) => void,
) => Promise<readonly Violation[]>;

export async function search<Schedule>(
  schedules: fc.Arbitrary<Schedule>,
  play: Play<Schedule>,
  { seed, numRuns }: Runs,
): Promise<Searched> {
  const tally = newTally();
  const property = fc.asyncProperty(schedules, async (schedule) => {
    const violations = await play(schedule, tally.add);
    if (violations.length > 0)
      throw new Error(violations.map(({ invariant, text }) => `${invariant}: ${text}`).join('\n'));
  });
  const details = await fc.check(property, { seed, numRuns });
  const deaths = Object.fromEntries(tally.places().map((place) => [place, tally.of(place)]));
  if (!details.failed) return { deaths };
  return { deaths, failure: `${fc.defaultReportMessage(details)}\n\n${String(details.errorInstance)}` };
}

/**
 * Runs the task's schedules in two threads, each with half of them and the second with the next seed. The first failure
 * ends both, so that the deaths are whole only where nothing failed. `module` is the URL of a module that calls `asThread`.
 */
export async function searchInThreads<Task extends Runs>(module: string, task: Task): Promise<Searched> {
  const half = Math.ceil(task.numRuns / 2);
  const threads = [
    inThread(module, { ...task, numRuns: half }),
    inThread(module, { ...task, seed: task.seed + 1, numRuns: task.numRuns - half }),
  ];
  const found = await Promise.all(
    threads.map(async ({ searched }) => {
      const one = await searched;
      if (one.failure !== undefined) for (const { stop } of threads) stop();
      return one;
    }),
  );
  const deaths: Record<string, number> = {};
  for (const [place, count] of found.flatMap((one) => Object.entries(one.deaths)))
    deaths[place] = (deaths[place] ?? 0) + count;
  const failure = found.find((one) => one.failure !== undefined)?.failure;
  return { deaths, ...(failure !== undefined && { failure }) };
}

/** In the module that the threads load: does nothing in the thread that started them. */
export async function asThread<Task extends Runs>(run: (task: Task) => Promise<Searched>): Promise<void> {
  if (parentPort !== null) parentPort.postMessage(await run(workerData as Task));
}

/** `stop` ends it at once, as a search that found nothing. */
function inThread<Task extends Runs>(
  module: string,
  task: Task,
): Readonly<{ searched: Promise<Searched>; stop(): void }> {
  const worker = new Worker(new URL(module), { workerData: task });
  let stopped = false;
  const searched = new Promise<Searched>((resolve, reject) => {
    worker.once('message', resolve).once('error', reject);
    worker.once('exit', (code) =>
      stopped ? resolve({ deaths: {} }) : reject(new Error(`the thread ended with ${code}`)),
    );
  });
  const stop = (): void => {
    stopped = true;
    void worker.terminate();
  };
  return { searched, stop };
}
