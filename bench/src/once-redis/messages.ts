/** What is delivered: fresh messages, the middleware around a handler that does nothing, and lanes that deliver. */
import { randomUUID } from 'node:crypto';
import { ack, compose, type Context, type Handler, type Message, silent } from 'pubsub-guarantees';
import { type ClaimStore, dedup } from 'pubsub-guarantees/dedup';

/** Deliveries in flight at a time. */
export const LANES = 64;

/** The whole middleware, with its defaults. */
export const deduplicating = (claims: ClaimStore): Handler => compose(async () => ack(), [dedup(claims)]);

/** Their IDs have 36 characters and were never used before. */
export function freshMessages(count: number): readonly Message[] {
  const publishTime = new Date();
  return Array.from({ length: count }, () => ({
    id: randomUUID(),
    data: Buffer.from('{"order":17,"state":"paid"}'),
    attributes: {},
    publishTime,
  }));
}

export const aContext = (): Context => ({
  consumer: 'bench',
  source: 'projects/bench/subscriptions/bench',
  now: () => Date.now(),
  deadline: performance.now() + 600_000,
  signal: new AbortController().signal,
  log: silent,
});

/** Every item once, `lanes` at a time: each lane begins its next one when its last is done. */
export async function inLanes<Item>(
  items: readonly Item[],
  lanes: number,
  startLane: () => (item: Item) => Promise<void>,
): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    const run = startLane();
    for (let item = items[next++]; item !== undefined; item = items[next++]) await run(item);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

/** Delivers all; throws unless each ends as `reason` says. */
export async function deliverAll(
  handler: Handler,
  messages: readonly Message[],
  lanes: number,
  reason: 'handled' | 'duplicate',
): Promise<void> {
  await inLanes(messages, lanes, () => {
    const context = aContext();
    return async (message) => {
      const outcome = await handler(message, context);
      if (outcome.kind !== 'ack' || outcome.reason !== reason) {
        throw new Error(`message ${message.id} ended as ${JSON.stringify(outcome)}, expected ${reason}`);
      }
    };
  });
}
