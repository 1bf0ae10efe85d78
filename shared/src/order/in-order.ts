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
import { TransientError, textOf } from '../errors.ts';
import type { Handler, Middleware } from '../handler.ts';
import { ack, deadLetter, type Outcome, retry } from '../outcome.ts';
import { contentHash } from './content.ts';
import { firstEpoch, holding } from './decisions.ts';
import { type Delivery, runDirect } from './direct.ts';
import { drainIfDue } from './drain.ts';
import { heldForm } from './hold.ts';
import { freshKey } from './key-state.ts';
import { look, type Seen, take } from './lease.ts';
import { type InOrderOptions, type Ports, portsOf } from './options.ts';
import { observedStage } from '../telemetry/stages.ts';
import type { OrderStore } from './order-store.ts';
import { conflict, mayDrain, placeOf, wakeAt } from './place.ts';
import { requestWake } from './report.ts';

/** How often an arrival is judged again because the key changed under it, before it is left to a redelivery. */
const ROUNDS = 10;

/** Throws ConfigError for an invalid option. `SEQUENCE_CONFLICT`, `LATE_ARRIVAL`, `EPOCH_MISMATCH` and `SEQUENCE_TOO_FAR_AHEAD` are dead letters. */
export function inOrder(store: OrderStore, options: InOrderOptions): Middleware {
  const ports = portsOf(store, options);
  const stage =
    (next: Handler): Handler =>
    async (message, context) => {
      const { sequence } = parseWishes(message);
      if (sequence === undefined) return next(message, context);
      const ref = { consumer: context.consumer, key: sequence.key };
      const arrival = { ...sequence, hash: contentHash(message), epoch: sequence.epoch };
      return arrive(ports, { ref, arrival, message, context }, next);
    };
  return (next) => observedStage('in_order', stage(next));
}

async function arrive(ports: Ports, delivery: Delivery, next: Handler): Promise<Outcome> {
  const { ref, arrival } = delivery;
  for (let round = 0; round < ROUNDS; round += 1) {
    const seen = await look(ports, ref);
    const place = placeOf(seen.state, arrival, ports.maxAhead);
    switch (place.kind) {
      case 'refused':
        return deadLetter(place.error);
      case 'stale':
        await drainOrWake(ports, delivery, seen, next);
        return ack('stale');
      case 'direct': {
        const run = { number: arrival.number, hash: arrival.hash };
        const lease = await take(ports, ref, seen, { run, ...firstEpoch(seen.state, arrival) });
        if (lease !== undefined) return runDirect(ports, delivery, lease, next);
        break;
      }
      case 'hold': {
        const outcome = await hold(ports, delivery, next);
        if (outcome !== 'again') return outcome;
      }
    }
  }
  return retry(new TransientError('ORDER_CONTENTION', `the key changed ${ROUNDS} times under this delivery`));
}

async function hold(ports: Ports, delivery: Delivery, next: Handler): Promise<Outcome | 'again'> {
  const { ref, arrival, message, context } = delivery;
  const form = heldForm(arrival, message, context);
  if (form.message.length > ports.store.maxHeldBytes) {
    const sizes = `${form.message.length} bytes stored; accepted: at most ${ports.store.maxHeldBytes}`;
    return retry(
      new TransientError('TOO_LARGE_TO_HOLD', `the message is ahead of its turn and cannot wait: ${sizes}`),
    );
  }
  const base = freshKey(ports.start);
  const query = { number: arrival.number };
  const result = await ports.store.transact(ref, base, query, holding(arrival, form, ports.maxAhead));
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
