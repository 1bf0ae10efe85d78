/**
 * The baseline that in-order delivery is compared with: a number from a counter, and at the consumer a nack for each
 * message that is early. And a subscription that delivers what is outstanding in random order.
 */
import { TransientError } from '../../../shared/src/errors.ts';
import { compose, type Middleware } from '../../../shared/src/handler.ts';
import { ack, retry } from '../../../shared/src/outcome.ts';
import { type VirtualClock, virtualClock } from '../../../shared/src/testing/virtual-clock.ts';
import { CONSUMER, messageOf } from './bench.ts';
import { randomFrom } from '../engine/random.ts';
import { contextFor } from './schedule.ts';

/** Keeps the next number; everything beyond it comes again. */
export function refusingGate(): Middleware {
  let next = 1;
  return (handler) => async (message, context) => {
    const number = Number(message.attributes.sequence);
    if (number < next) return ack('stale');
    if (number > next) return retry(new TransientError('AHEAD', 'not its turn'));
    const outcome = await handler(message, context);
    if (outcome.kind === 'ack') next += 1;
    return outcome;
  };
}

type Delivered = Readonly<{ ran: readonly number[]; deliveries: number }>;

export async function deliverAll(
  gate: Middleware,
  count: number,
  options: Readonly<{ seed: number; missing?: number; limit?: number; clock?: VirtualClock }>,
): Promise<Delivered> {
  const { seed, missing, limit = Infinity, clock = virtualClock() } = options;
  const random = randomFrom(seed);
  const ran: number[] = [];
  const chain = compose(
    async (message) => {
      ran.push(Number(message.attributes.sequence));
      return ack();
    },
    [gate],
  );
  const outstanding = Array.from({ length: count }, (_, index) => index + 1).filter((one) => one !== missing);
  let deliveries = 0;
  while (outstanding.length > 0 && deliveries < limit) {
    const place = random.upTo(outstanding.length);
    deliveries += 1;
    const outcome = await chain(messageOf(outstanding[place] ?? 0), contextFor(clock, 60_000, CONSUMER));
    if (outcome.kind === 'ack') outstanding.splice(place, 1);
  }
  return { ran, deliveries };
}
