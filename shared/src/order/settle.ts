/**
 * Counts numbers as done that ran without being stored, and says what becomes of the key then: left to deliveries in hand
 * whose turn is next, drained, or let go of.
 *
 * A delivery is acknowledged only after a commit, its own or one that was read, that shows its number as done, skipped or
 * held. A crash leaves the lease to expire.
 */
import { leaseLost, textOf } from '../errors.ts';
import type { Context, Handler } from '../handler.ts';
import { type Outcome, retry } from '../outcome.ts';
import { drain } from './drain.ts';
import { discard } from './hold.ts';
import { asking, handOver } from './hand-over.ts';
import { freshKey } from './key-state.ts';
import { type Lease, reread, settledWithin } from './lease.ts';
import { settledAlone, takenAgain } from './settle-alone.ts';
import type { Ports } from './options.ts';
import type { KeyRef } from './order-store.ts';
import type { Arrival } from './place.ts';
import { SETTLE_LIMIT, type SettleOptions, settling, type Stretch } from './settling.ts';

type IsSafe = (number: number) => boolean;

/**
 * Counts the stretch as done, or given up and its dead letter published. Then the key is left to those in hand whose turn
 * is next, or drained, or let go of. Answers which numbers are safe; `counted` is told so before a drain, which may take
 * half of the delivery's time: only the one whose context it runs in must wait for it.
 */
export async function settle(
  ports: Ports,
  { ref, context }: Readonly<{ ref: KeyRef; context: Context }>,
  first: Lease,
  whole: Stretch,
  next: Handler,
  {
    counted = () => undefined,
    ...options
  }: SettleOptions & Readonly<{ counted?: (isSafe: IsSafe) => void }> = {},
): Promise<IsSafe> {
  const { store, leaseMs, clock } = ports;
  // Behind a line there is a gap more often than not, and what waits there is paid for each time.
  const limit = whole.hashes.length === 1 ? SETTLE_LIMIT : 1;
  let [lease, stretch] = [first, whole];
  while (true) {
    const sentAt = clock.monotonic();
    const end = stretch.from + stretch.hashes.length - 1;
    const { line, asked } = asking(store, ref, end + 1, whole.hashes.length);
    const query = { from: stretch.from, limit };
    const decide = settling(lease.owner, stretch, leaseMs, { ...options, limit, line });
    const isPlain = (options.as ?? 'done') === 'done' && options.goesOn !== true;
    const alone = isPlain ? await settledAlone(ports, ref, lease, stretch, line) : undefined;
    const settled =
      alone?.settled ??
      (await settledWithin(ports, lease.deadline, () =>
        store.transact(ref, freshKey(ports.start), query, decide),
      ));
    if (settled.kind === 'lost') {
      counted(settled.safe);
      return settled.safe;
    }
    for (const sequence of settled.foreign) {
      const text = 'in order: a held message has other content under a number that is done; it is kept';
      context.log.error(text, {
        code: 'SEQUENCE_CONFLICT',
        consumer: ref.consumer,
        sequenceKey: ref.key,
        sequence,
      });
    }
    await discard(ports.payloads, context, settled.removed);
    if (settled.upTo < end) {
      lease = { ...lease, empty: 'unknown', ...(options.goesOn !== true && { deadline: sentAt + leaseMs }) };
      stretch = { from: settled.upTo + 1, hashes: stretch.hashes.slice(settled.upTo + 1 - stretch.from) };
      continue;
    }
    counted(allSafe);
    if (options.goesOn === true) return allSafe;
    const isEmpty = settled.behind?.held.length === 0;
    const kept: Lease = {
      ...lease,
      state: { ...lease.state, last: end, attempts: 0 },
      deadline: sentAt + leaseMs,
      empty: isEmpty ? 'unseen' : 'unknown',
      ...alone?.after,
    };
    await goOn(ref, context, async () => {
      const isLeft = alone !== undefined && settled.admitted.length === 0;
      const again = isLeft ? await takenAgain(ports, ref, kept, line()) : undefined;
      const admitted = again?.admitted ?? settled.admitted;
      if (handOver(ports, ref, again?.lease ?? kept, asked, admitted)) return;
      if (!settled.more && admitted.length === 0) return;
      const renewed = await reread(ports, ref, again?.lease ?? lease, sentAt);
      const behind = settled.more ? settled.behind : undefined;
      if (renewed !== undefined) await drain(ports, ref, renewed, next, context, behind && { behind });
    });
    return allSafe;
  }
}

const allSafe: IsSafe = () => true;

/** The number is counted as done, so nothing that happens here concerns its delivery. */
async function goOn(ref: KeyRef, context: Context, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    context.log.warn('in order: a drain was cut short; the sweep goes on with it', {
      sequenceKey: ref.key,
      error: textOf(error),
    });
  }
}

export const stretchOf = (arrivals: readonly Arrival[]): Stretch => ({
  from: arrivals[0]?.number ?? Number.NaN,
  hashes: arrivals.map(({ hash }) => hash),
});

export const hungOutcome = (): Outcome => retry(leaseLost('the handler went on after its time was over'));
/** Acknowledging a number that nothing shows as done would leave the stream waiting for it for ever. */
export const lostOutcome = (): Outcome =>
  retry(leaseLost('the lease was lost before the message was counted as done'));
