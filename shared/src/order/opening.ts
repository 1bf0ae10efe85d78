/**
 * Where a stream begins for a consumer that comes later than the stream: at the publisher's counter.
 *
 * The counter says which numbers were not handed out yet when the stream was first seen. Those are certain to come, and
 * are waited for as `onGap` says. Of those below it is unknown which were published before the subscription existed. So
 * what comes of them runs in order, what has not come `gap.timeout` after the first of them is skipped, and what comes
 * later still is a dead letter (`LATE_ARRIVAL`). Beginning at the counter itself would acknowledge the backlog as
 * stale, with the very message that made the stream known; beginning at the first message that comes would do so with
 * those that it overtook.
 *
 * A crash before the stream is written changes nothing: the next delivery asks the counter again.
 */
import { identifierHash } from '../hash.ts';
import { TransientError } from '../errors.ts';
import type { StreamPolicy } from './options.ts';
import { freshStream, type StreamState } from './stream-state.ts';
import type { StreamRef } from './stream-store.ts';

/**
 * What a stream that no commit has written yet starts from. Rejects with TransientError `COUNTER_MISSING` where the
 * start is a counter that is not there: beginning anywhere would be a guess.
 */
export async function firstState(
  { start, counter, maxAhead }: Pick<StreamPolicy, 'start' | 'counter' | 'maxAhead'>,
  ref: StreamRef,
): Promise<StreamState> {
  if (counter === undefined) return freshStream(start);
  const found = await counter.read(ref.key);
  if (found === undefined) {
    throw new TransientError(
      'COUNTER_MISSING',
      `sequenceKey ${identifierHash(ref.key)} has no counter, at which its stream is to begin; accepted: a counter under the configured collection and scope, or a number as start`,
    );
  }
  const { next, epoch } = found;
  // As far back as `maxAhead` allows while as much is left ahead. What is older still is late, and never stale.
  const last = Math.max(0, next - 1 - Math.ceil(maxAhead / 2));
  return {
    ...freshStream(last + 1),
    epoch,
    ...(next > 1 && { opening: next }),
    ...(last > 0 && { skipped: [{ from: 1, to: last }] }),
  };
}

/** Whether a missing number may have been published before this consumer began. */
export const isOpening = ({ opening }: StreamState, number: number): boolean =>
  opening !== undefined && number < opening;

/** Whether nothing of the stream has run yet, nor been skipped but what was too old from the start. */
export const hasNotBegun = (state: StreamState): boolean => state.recentHashes.length === 0;
