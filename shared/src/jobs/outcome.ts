/**
 * What a job's handler is given and answers, and what becomes of the job then.
 *
 * The outcomes are those of a message handler: `ack()` is done, `retry()` and whatever is thrown is another run after a
 * pause, `deadLetter()` and a PermanentError is dead at once. What is not the job's own fault (a store that is down, a
 * permission that is missing) uses up none of its attempts.
 */
import type { Duration } from '../duration.ts';
import { toMilliseconds } from '../duration.ts';
import { codeOf, countsAsAttempt, PermanentError, textOf, TransientError } from '../errors.ts';
import type { Log } from '../log.ts';
import type { OutgoingMessage } from '../message.ts';
import { checkOptions, isObject, listOf } from '../options.ts';
import { isOutcome, type Outcome, outcomeOf } from '../outcome.ts';
import { type Backoff, backoffMs } from './decide.ts';
import type { Completion, Job, JobError, NewJob } from './job.ts';
import type { Ending } from './job-store.ts';

export type JobContext<Tx> = Readonly<{
  /** Aborted when the lease is lost, `runTimeout` is over, the job is cancelled or the process ends. Compares the clock at each use. */
  signal: AbortSignal;
  /** Grows with each run of the job: a guard for writes elsewhere. Throws TransientError `LEASE_LOST` once the lease is over. */
  readonly fencingToken: string;
  log: Log;
  /** Wall clock, milliseconds since the epoch. */
  now(): number;
  /** A failure of this run is the end of the job. */
  isLastTry: boolean;
  /**
   * The store's transaction, begun with the first call. What is written through it, the completion, its messages and its next
   * jobs are one commit, refused if the job was taken from this run: one effect. Any outcome but `ack` rolls it back.
   */
  transaction(): Promise<Tx>;
}>;

/** `ack` of a job may enqueue the next ones. */
export type JobOutcome = Outcome | CompleteOutcome;
type CompleteOutcome = Extract<Outcome, { kind: 'ack' }> & Readonly<{ enqueue?: readonly NewJob[] }>;

export type JobHandler<Tx = unknown> = (job: Job, context: JobContext<Tx>) => Promise<JobOutcome>;

/**
 * An `ack` whose messages and next jobs are committed with the completion: all of it or nothing. Throws ConfigError for
 * what are no lists.
 *
 * @example
 * return complete({ enqueue: [{ role: 'export', kind: 'pdf', payload: { scene: 42 } }] });
 */
export function complete(
  what: Readonly<{ publish?: readonly OutgoingMessage[]; enqueue?: readonly NewJob[] }>,
): JobOutcome {
  const list = listOf(isObject);
  checkOptions<typeof what>(what, { publish: list, enqueue: list });
  return { kind: 'ack', reason: 'handled', ...what };
}

export type Ended = Readonly<
  { kind: 'complete'; completion: Completion } | { kind: 'ending'; ending: Ending }
>;

/** What the outcome makes of the job. `random` is from 0 to 1. */
export function endOf(outcome: JobOutcome, { attempt }: Job, backoff: Backoff, random: number): Ended {
  switch (outcome.kind) {
    case 'ack': {
      const { publish = [], enqueue = [] } = outcome as CompleteOutcome;
      if (publish.length === 0 && enqueue.length === 0) return { kind: 'ending', ending: { kind: 'done' } };
      return { kind: 'complete', completion: { publish, enqueue } };
    }
    case 'deadLetter':
      return { kind: 'ending', ending: { kind: 'dead', error: jobError(outcome.error) } };
    case 'retry': {
      const { error, after } = outcome;
      const counts = countsAsAttempt(error);
      const delayMs = askedMs(error, after) ?? backoffMs(attempt, backoff, random);
      return { kind: 'ending', ending: { kind: 'failed', error: jobError(error), delayMs, counts } };
    }
  }
}

function askedMs(error: unknown, after: Duration | undefined): number | undefined {
  if (after !== undefined) return toMilliseconds(after, 'after');
  return error instanceof TransientError ? error.retryAfterMs : undefined;
}

/** The outcome of a handler that may throw, or answer anything. */
export async function outcomeOfRun(run: () => Promise<unknown>): Promise<JobOutcome> {
  try {
    const outcome: unknown = await run();
    if (isOutcome(outcome)) return outcome;
    const text = `the handler answered with ${outcome === null ? 'null' : typeof outcome}; accepted: an outcome, for example ack()`;
    return outcomeOf(new TransientError('NO_OUTCOME', text));
  } catch (error) {
    return outcomeOf(error);
  }
}

const TEXT_CHARACTERS = 2_000;

/** Short, and without what no database takes as a text. */
export const jobError = (error: unknown): JobError => ({
  code: codeOf(error).slice(0, 100),
  text: textOf(error).toWellFormed().replaceAll('\0', '').slice(0, TEXT_CHARACTERS).toWellFormed(),
});

/** What a refusal of the database makes of the job: an error that can never go away ends it. */
export const endOfRefusal = (error: unknown, job: Job, backoff: Backoff, random: number): Ending => {
  if (error instanceof PermanentError) return { kind: 'dead', error: jobError(error) };
  const delayMs = backoffMs(job.attempt, backoff, random);
  return { kind: 'failed', error: jobError(error), delayMs, counts: countsAsAttempt(error) };
};
