/**
 * The port under the sequencer: one counter per key.
 */
export type NumberRequest = Readonly<{
  /** Minted before the first attempt: the same request always gets the same numbers. */
  id: string;
  /** How many numbers. */
  count: number;
  /** The identity of the counter, if this request is what creates it. */
  epoch: string;
}>;

export type NumberRange = Readonly<{ first: number; epoch: string }>;

export type CounterStore = Readonly<{
  /**
   * Takes `count` numbers that follow each other, in one transaction, and resolves once it is committed.
   *
   * A request that was applied answers the same range when it comes again, as long as not more than
   * `REMEMBERED_REQUESTS` others have come since: a commit whose reply was lost leaks no number.
   * Rejects with TransientError `SEQUENCE_CONTENTION` when other transactions won each time and nothing was taken,
   * with `STORE_UNAVAILABLE` when the outcome is unknown.
   */
  take(key: string, request: NumberRequest): Promise<NumberRange>;
}>;

/**
 * More than the requests that can be in flight at once: a process has one for each key. A list of the last 2 leaked
 * numbers in a model with 8 concurrent requests, a list of 50 leaked none.
 */
const REMEMBERED_REQUESTS = 50;

export type Counter = Readonly<{
  epoch: string;
  next: number;
  requests: readonly Readonly<{ id: string; first: number }>[];
}>;

/** What a request does to a counter; `counter` is undefined when nothing is to be written. Pure. */
export function taken(
  counter: Counter | undefined,
  request: NumberRequest,
): Readonly<{ range: NumberRange; counter: Counter | undefined }> {
  const { epoch, next, requests } = counter ?? { epoch: request.epoch, next: 1, requests: [] };
  const before = requests.find(({ id }) => id === request.id);
  if (before !== undefined) return { range: { first: before.first, epoch }, counter: undefined };
  return {
    range: { first: next, epoch },
    counter: {
      epoch,
      next: next + request.count,
      requests: [...requests, { id: request.id, first: next }].slice(-REMEMBERED_REQUESTS),
    },
  };
}
