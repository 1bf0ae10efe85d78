/**
 * The sweeps of a function as one request: bounded by the same limit as a delivery, and ended with it. They run beside
 * each other, and one that fails does not keep the others from theirs; what they did not get to stays due.
 */
import {
  type Clock,
  contextFor,
  type Log,
  type Sweep,
  type SweepContext,
  toMilliseconds,
} from 'pubsub-guarantees';
import type { Config } from './config.ts';

export type Sweeps = Readonly<
  Partial<Record<'order' | 'schedules' | 'payloads' | 'outbox' | 'sagas', Sweep>>
>;

/** What each sweep did, under its name. Rejects, once all have ended, when one has failed. */
export async function runSweeps(
  sweeps: Sweeps,
  config: Pick<Config, 'consumer' | 'timeout'>,
  clock: Clock,
  log: Log,
  stop?: AbortSignal,
): Promise<Readonly<Record<string, object>>> {
  const sweep = async (context: SweepContext): Promise<Readonly<Record<string, object>>> => {
    const entries = Object.entries(sweeps);
    const results = await Promise.allSettled(entries.map(async ([, each]) => each(context)));
    const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
    if (failures.length > 0) throw failures[0];
    return Object.fromEntries(
      results.flatMap((result, index) =>
        result.status === 'fulfilled' ? [[entries[index]?.[0] ?? '', result.value]] : [],
      ),
    );
  };
  return withinLimit(config, clock, log, sweep, stop);
}

/** Runs what is no delivery within the time limit of one: the context's signal is aborted at its end, or with `stop`. */
export async function withinLimit<Result>(
  config: Pick<Config, 'consumer' | 'timeout'>,
  clock: Clock,
  log: Log,
  work: (context: SweepContext) => Promise<Result>,
  stop?: AbortSignal,
): Promise<Result> {
  const limitMs = toMilliseconds(config.timeout);
  const over = new AbortController();
  const cancel = clock.after(limitMs, () => over.abort());
  const context = contextFor(clock, {
    consumer: config.consumer,
    deadline: clock.monotonic() + limitMs,
    signal: stop === undefined ? over.signal : AbortSignal.any([over.signal, stop]),
    log,
  });
  try {
    return await work(context);
  } finally {
    cancel();
  }
}
