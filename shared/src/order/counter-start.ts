/**
 * Where a stream begins for a consumer that comes later than the stream: at the publisher's counter.
 *
 * The counter says which numbers were not handed out yet when the key was first seen. Those are certain to come, and
 * are waited for as `gaps.policy` says. Of those below nobody knows which were published before the subscription
 * existed. So what comes of them runs in order, what has not come `gaps.timeout` after the first of them is given up,
 * and what comes later still is a dead letter (`LATE_ARRIVAL`). Beginning at the counter itself would acknowledge the
 * backlog as stale, with the very message that made the key known; beginning at the first message that comes would do
 * so with those that it overtook.
 *
 * A crash before the key is written changes nothing: the next delivery asks the counter again.
 */
import { TransientError } from '../errors.ts';
import { freshKey, type KeyState } from './key-state.ts';
import type { Ports } from './options.ts';
import type { KeyRef } from './order-store.ts';

/**
 * As `start` of `inOrder` and its sweep. A stream that begins with 1 is not delayed; any other begins `gaps.timeout`
 * after its first message, once it is clear what of the older ones comes. A sweep is what ends that time.
 */
export type CounterStart = Readonly<{
  /**
   * The counter of a key as it is now, strongly consistent; undefined where there is none. Rejects with TransientError
   * when it cannot be read.
   */
  read(key: string): Promise<Readonly<{ next: number; epoch: string }> | undefined>;
}>;

/**
 * What a key that nobody has written yet starts from. Rejects with TransientError `COUNTER_MISSING` where the start is
 * a counter that is not there: beginning anywhere would be a guess.
 */
export async function firstState({ start, counter, maxAhead }: Ports, ref: KeyRef): Promise<KeyState> {
  if (counter === undefined) return freshKey(start);
  const found = await counter.read(ref.key);
  if (found === undefined) {
    throw new TransientError(
      'COUNTER_MISSING',
      `sequenceKey ${JSON.stringify(ref.key.slice(0, 60))} has no counter, at which its stream is to begin; accepted: a counter under the configured collection and scope, or a number as start`,
    );
  }
  const { next, epoch } = found;
  // As far back as `maxAhead` allows while as much is left ahead. What is older still is late, and never stale.
  const last = Math.max(0, next - 1 - Math.ceil(maxAhead / 2));
  return {
    ...freshKey(last + 1),
    epoch,
    ...(next > 1 && { opening: next }),
    ...(last > 0 && { skipped: [{ from: 1, to: last }] }),
  };
}

/** Whether a missing number may have been published before this consumer began. */
export const isOpening = ({ opening }: KeyState, number: number): boolean =>
  opening !== undefined && number < opening;

/** Whether nothing of the stream has run yet, nor been given up but what was too old from the start. */
export const hasNotBegun = (state: KeyState): boolean => state.ring.length === 0;
