/**
 * In-order delivery: a durable resequencer, as a middleware.
 *
 * Messages with a `sequence` attribute reach the handler as 1, 2, 3, … within their `sequenceKey`; messages without
 * one pass through. What comes ahead of its turn is stored once and acknowledged; whoever fills the gap runs what is
 * ready. Nothing is lost: a delivery is acknowledged only when a commit shows its number as done or stored. After a
 * lost lease a number that already ran may run again, before anything behind it, with a larger fencing token.
 *
 * It needs its sweep (`sweepOrder`): retries of failed heads and what a crash left behind are the sweep's work.
 */
import { parseWishes } from '../attributes.ts';
import { leaseLost, TransientError, textOf } from '../errors.ts';
import type { Context, Handler, Middleware } from '../handler.ts';
import { ack, deadLetter, type Outcome, retry } from '../outcome.ts';
import { contentHash } from './content.ts';
import { firstEpoch } from './holding.ts';
import { runDirect } from './direct.ts';
import { drainIfDue } from './drain.ts';
import { discard, heldForm } from './hold.ts';
import { inHandOf } from './in-hand.ts';
import type { Delivery, Turn } from './turn.ts';
import { isIdle, startedRun } from './key-state.ts';
import { look, type Seen, take } from './lease.ts';
import { type InOrderOptions, type Ports, portsOf } from './options.ts';
import { observedStage } from '../telemetry/stages.ts';
import type { HeldMessage, OrderStore } from './order-store.ts';
import { conflict, mayDrain, placeOf, wakeAt } from './place.ts';
import { requestWake } from './report.ts';
import { runLine } from './run-line.ts';
import { type Shared, sharing } from './sharing.ts';

/** How often an arrival is judged again because the key changed under it, before it is left to a redelivery. */
const ROUNDS = 10;

/** Throws ConfigError for an invalid option. `SEQUENCE_CONFLICT`, `LATE_ARRIVAL`, `EPOCH_MISMATCH` and `SEQUENCE_TOO_FAR_AHEAD` are dead letters. */
export function inOrder(store: OrderStore, options: InOrderOptions): Middleware {
  const ports = portsOf(store, options);
  const shared = sharing(ports);
  const stage =
    (next: Handler): Handler =>
    async (message, context) => {
      const { sequence } = parseWishes(message);
      if (sequence === undefined) return next(message, context);
      const ref = { consumer: context.consumer, key: sequence.key };
      const arrival = { ...sequence, hash: contentHash(message), epoch: sequence.epoch };
      const answered = inHandOf(store).came(ref, arrival.number);
      try {
        return await arrive(ports, shared, { ref, arrival, message, context }, next);
      } finally {
        answered();
      }
    };
  return (next) => observedStage('in_order', stage(next));
}

async function arrive(ports: Ports, shared: Shared, delivery: Delivery, next: Handler): Promise<Outcome> {
  const { ref, arrival, context } = delivery;
  // What was put into the payload room for a hold that did not come to be.
  let put: HeldMessage | undefined;
  const discarded = async (outcome: Outcome): Promise<Outcome> => {
    // `held`: it may be what is stored.
    if (outcome.kind !== 'retry' && !(outcome.kind === 'ack' && outcome.reason === 'held')) {
      await discard(ports.payloads, context, [put]);
    }
    return outcome;
  };
  const arrivedAt = ports.clock.monotonic();
  // Without a look at the key: whoever works on it judges what waits in the very transaction that lets it run.
  const turn = (awaited?: number): Promise<Turn> =>
    inHandOf(ports.store).turnOf(delivery, next, ports.clock, arrivedAt, awaited);
  const first = await turn();
  if (first.kind !== 'none') return first.kind === 'ran' ? first.outcome : runLine(ports, first, next);
  for (let round = 0; round < ROUNDS; round += 1) {
    const seen = await shared.look(JSON.stringify(ref), ref);
    const place = placeOf(seen.state, arrival, ports.maxAhead);
    switch (place.kind) {
      case 'refused':
        return discarded(deadLetter(place.error));
      case 'stale':
        await drainOrWake(ports, delivery, seen, next);
        return discarded(ack('stale'));
      case 'direct': {
        // It has waited for its turn, or came late: its redelivery runs, and the key is not let wait for a pause.
        if (isOver(ports, context)) return discarded(retry(leaseLost('the time of the delivery was over')));
        const done = inHandOf(ports.store).working(ref, arrival.number + 1);
        try {
          const run = startedRun(seen.state, arrival.number, [arrival.hash]);
          const lease = await take(ports, ref, seen, { run, ...firstEpoch(seen.state, arrival) });
          if (lease !== undefined) return discarded(await runDirect(ports, delivery, lease, next));
        } finally {
          done();
        }
        break;
      }
      case 'hold': {
        const mine = await turn(isIdle(seen.state) ? seen.state.last + 1 : undefined);
        if (mine.kind === 'ran') return discarded(mine.outcome);
        if (mine.kind === 'lead') return discarded(await runLine(ports, mine, next));
        const form = await heldForm(ports, arrival, delivery.message, context);
        if (form === undefined) return tooLarge(ports);
        const outcome = await hold(ports, shared, delivery, seen, form, next);
        if (outcome !== 'again') return outcome;
        put = form;
      }
    }
  }
  return retry(new TransientError('ORDER_CONTENTION', `the key changed ${ROUNDS} times under this delivery`));
}

const isOver = ({ clock }: Ports, { signal, deadline }: Context): boolean =>
  signal.aborted || clock.monotonic() >= deadline;

const tooLarge = ({ store }: Ports): Outcome =>
  retry(
    new TransientError(
      'TOO_LARGE_TO_HOLD',
      `the message is ahead of its turn and cannot wait; accepted without a payload room: at most ${store.maxHeldBytes} bytes stored`,
    ),
  );

async function hold(
  ports: Ports,
  shared: Shared,
  delivery: Delivery,
  { version, state }: Seen,
  form: HeldMessage,
  next: Handler,
): Promise<Outcome | 'again'> {
  const { ref, arrival, context } = delivery;
  const item = { ref, arrival, message: form, ...(version === undefined && { base: state }) };
  const result = await shared.hold(JSON.stringify(ref), item);
  // Not what is stored: done meanwhile, or there under another message ID.
  const isStored = result.kind === 'held' && result.stored.payload?.id === form.payload?.id;
  if (!isStored && result.kind !== 'again') await discard(ports.payloads, context, [form]);
  switch (result.kind) {
    case 'again':
      return 'again';
    case 'conflict':
      return deadLetter(conflict(arrival));
    case 'held':
      if (arrival.number === result.state.last + 1) {
        await drainOrWake(ports, delivery, undefined, next);
      }
      return ack('held');
  }
}

/** The delivery's own number is safe by now: whatever happens here, it is acknowledged. */
async function drainOrWake(
  ports: Ports,
  { ref, context }: Delivery,
  known: Seen | undefined,
  next: Handler,
): Promise<void> {
  try {
    const seen = known ?? (await look(ports, ref));
    const at = wakeAt(seen.state, seen.nowMs);
    if (mayDrain(seen.state, seen.nowMs)) await drainIfDue(ports, ref, seen, next, context);
    else if (at !== undefined) requestWake(ports, context, ref, at);
  } catch (error) {
    context.log.warn('in order: a drain was cut short; the sweep goes on with it', {
      sequenceKey: ref.key,
      error: textOf(error),
    });
  }
}
