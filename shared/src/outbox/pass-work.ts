/**
 * How the work of a pass runs: several at once, each within its time, and none failing the others.
 */
import { forEachAtMost } from '../async/pool.ts';
import { withSignal } from '../async/time-limit.ts';
import type { Clock } from '../clock.ts';
import { codeOf, textOf } from '../errors.ts';
import type { Log } from '../log.ts';

export type PassContext = Readonly<{
  signal: AbortSignal;
  /** Time of the monotonic clock at which the pass ends; a publish that is in flight is waited for. Default: none. */
  deadline?: number;
}>;

/** Streams, and rows without order, at work at once. */
const CONCURRENCY = 8;

export const inParallel = (
  jobs: readonly ((() => Promise<unknown>) | undefined)[],
  isOver?: () => boolean,
): Promise<void> =>
  forEachAtMost(
    CONCURRENCY,
    jobs.filter((job) => job !== undefined),
    (job) => job(),
    isOver,
  );

/** Runs `work` with a signal that is aborted with the pass's, at its deadline, or after `limitMs`. */
export const withinPass = <Result>(
  clock: Clock,
  { signal, deadline = Infinity }: PassContext,
  limitMs: number,
  work: (limited: AbortSignal) => Promise<Result>,
): Promise<Result> => withSignal(clock, Math.min(limitMs, deadline - clock.monotonic()), signal, work);

/** Undefined where `work` rejects, which is logged and counted: the next pass tries again. */
export async function attempt<Result>(
  log: Log,
  fields: Readonly<Record<string, string>>,
  failed: (error: unknown) => void,
  work: () => Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    failed(error);
    const failure = { code: codeOf(error), error: textOf(error) };
    log.warn('outbox: not relayed; the next pass tries again', { ...fields, ...failure });
    return undefined;
  }
}
