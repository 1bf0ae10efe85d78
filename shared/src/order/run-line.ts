/**
 * Runs deliveries of a key that follow one another and were in hand together: nothing of them is stored, and they are
 * counted as done in one commit.
 *
 * A crash before that commit runs them again, in their order, as after a batch of held messages. One that fails is stored
 * as a single one is, and what was not started goes on waiting.
 */
import type { Handler } from '../handler.ts';
import { type Outcome, retry } from '../outcome.ts';
import { fail } from './direct.ts';
import type { Line, Waiting } from './turn.ts';
import type { Lease } from './lease.ts';
import type { Ports } from './options.ts';
import { failureOf } from './retry-policy.ts';
import { runUnderLease } from './run.ts';
import { hungOutcome, lostOutcome, settle, stretchOf } from './settle.ts';
import type { SettleOptions } from './settling.ts';

/** How long a line may go on before what is done is committed: so long its first delivery waits for its answer. */
const LINE_MS = 1_000;

type RunOfLine = Readonly<{ one: Waiting; outcome: Outcome }>;

/**
 * Runs deliveries that follow one another, each under its own context, and counts them as done in one commit. What was
 * not started goes on waiting. Answers the outcome of the first, whose delivery this is.
 */
export async function runLine(ports: Ports, { lease, line, done }: Line, next: Handler): Promise<Outcome> {
  const [lead] = line;
  const end = ports.clock.monotonic() + Math.min(ports.leaseMs / 3, LINE_MS);
  const ran: RunOfLine[] = [];
  let own: Outcome | undefined;
  const answer = (one: Waiting, outcome: Outcome): void => {
    if (one === lead) own ??= outcome;
    else one.answer({ kind: 'ran', outcome });
  };
  const started: Waiting[] = [];
  try {
    for (const one of line) {
      if (one !== lead && (!one.waits() || ports.clock.monotonic() >= end)) break;
      one.start();
      started.push(one);
      const { delivery, handler } = one;
      const { context, message } = delivery;
      const run = await runUnderLease(ports.clock, lease, context.source, context, (inner) =>
        handler(message, inner),
      );
      if (run.kind === 'finished' && run.outcome.kind === 'ack') {
        ran.push({ one, outcome: run.outcome });
        continue;
      }
      const isOurs = await settleLine(ports, lease, ran, next, answer, { goesOn: true });
      if (run.kind === 'hung') answer(one, hungOutcome());
      else if (run.outcome.kind !== 'ack') {
        const failure = failureOf(run.outcome, run.aborted);
        answer(one, isOurs ? await fail(ports, delivery, lease, next, failure) : lostOutcome());
      }
      return own ?? lostOutcome();
    }
    await settleLine(ports, lease, ran, next, answer, {});
    return own ?? lostOutcome();
  } catch (error) {
    const isDone = own !== undefined;
    // Whoever was answered is not asked again.
    for (const one of started) answer(one, retry(error));
    if (isDone) return own ?? lostOutcome();
    throw error;
  } finally {
    done();
  }
}

/** Answers whether what ran is counted as done, by this lease or by whoever has it now. */
async function settleLine(
  ports: Ports,
  lease: Lease,
  ran: readonly RunOfLine[],
  next: Handler,
  answer: (one: Waiting, outcome: Outcome) => void,
  options: SettleOptions,
): Promise<boolean> {
  const [first] = ran;
  const last = ran.at(-1);
  if (first === undefined || last === undefined) return true;
  const stretch = stretchOf(ran.map(({ one }) => one.delivery.arrival));
  const counted = (isSafe: (number: number) => boolean): void => {
    for (const { one, outcome } of ran) {
      answer(one, isSafe(one.delivery.arrival.number) ? outcome : lostOutcome());
    }
  };
  const isSafe = await settle(ports, first.one.delivery, lease, stretch, next, { ...options, counted });
  return isSafe(last.one.delivery.arrival.number);
}
