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
import { type Lease, seenAgain } from './lease.ts';
import type { Ports } from './options.ts';
import { failureOf } from './retry-policy.ts';
import { keptForRetry } from './retry-at-once.ts';
import { type Ran, runUnderLease } from './run.ts';
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
  if (lead === undefined) {
    done();
    return lostOutcome();
  }
  const { ref, context } = lead.delivery;
  const end = ports.clock.monotonic() + Math.min(ports.leaseMs / 3, LINE_MS);
  let ran: RunOfLine[] = [];
  let own: Outcome | undefined;
  const answer = (one: Waiting, outcome: Outcome): void => {
    if (one === lead) own ??= outcome;
    else one.answer({ kind: 'ran', outcome });
  };
  const started: Waiting[] = [];
  // Beside the handlers: with it the commit needs no transaction.
  let seen: Lease | Promise<Lease> = lease.empty === 'unseen' ? seenAgain(ports, ref, lease) : lease;
  let current = lease;
  try {
    for (const one of line) {
      if (one !== lead && (!one.waits() || ports.clock.monotonic() >= end)) break;
      one.start();
      started.push(one);
      for (let tries = 0; ; tries += 1) {
        const run = await runOne(ports, current, one);
        const outcome = run.kind === 'hung' ? undefined : run.outcome;
        if (outcome?.kind === 'ack') {
          ran.push({ one, outcome });
          break;
        }
        const failure = outcome && failureOf(outcome, run.kind === 'finished' && run.aborted);
        const before = ran.map((done) => done.one.delivery.arrival.hash);
        const isInTime = one === lead || ports.clock.monotonic() < end;
        const kept =
          failure &&
          isInTime &&
          (await keptForRetry(ports, one.delivery, await seen, before, failure, tries));
        if (kept) {
          for (const done of ran) answer(done.one, done.outcome);
          [ran, current, seen] = [[], kept, kept];
          continue;
        }
        const isOurs = await settleLine(ports, lead, current, ran, next, answer, { goesOn: true });
        const left = ran.length > 0 ? behindProgress(current) : current;
        if (failure === undefined) answer(one, hungOutcome());
        else if (!isOurs) answer(one, lostOutcome());
        else answer(one, await fail(ports, one.delivery, left, next, failure, context));
        return own ?? lostOutcome();
      }
    }
    await settleLine(ports, lead, await seen, ran, next, answer, {});
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

/** What has failed before was another number. */
const behindProgress = (lease: Lease): Lease => ({ ...lease, state: { ...lease.state, attempts: 0 } });

const runOne = ({ clock }: Ports, lease: Lease, { delivery, handler }: Waiting): Promise<Ran> =>
  runUnderLease(clock, lease, delivery.context.source, delivery.context, (inner) =>
    handler(delivery.message, inner),
  );

/**
 * Answers whether what ran is counted as done, by this lease or by whoever has it now. What is stored behind it runs in the
 * time of `lead`, who waits for it.
 */
async function settleLine(
  ports: Ports,
  lead: Waiting,
  lease: Lease,
  ran: readonly RunOfLine[],
  next: Handler,
  answer: (one: Waiting, outcome: Outcome) => void,
  options: SettleOptions,
): Promise<boolean> {
  const last = ran.at(-1);
  if (last === undefined) return true;
  const stretch = stretchOf(ran.map(({ one }) => one.delivery.arrival));
  const counted = (isSafe: (number: number) => boolean): void => {
    for (const { one, outcome } of ran) {
      answer(one, isSafe(one.delivery.arrival.number) ? outcome : lostOutcome());
    }
  };
  const isSafe = await settle(ports, lead.delivery, lease, stretch, next, { ...options, counted });
  return isSafe(last.one.delivery.arrival.number);
}
