/**
 * The subscribers of the demo, written as a user writes one whose handler must take effect once. Each is the toolkit's
 * pull receiver with the toolkit's `dedup` around its own handler, because a function that was killed between a publish
 * and its confirmation publishes the message again, and only the subscriber can recognise that.
 *
 * It writes down every arrival before the gate, and whether the handler behind the gate ran for it.
 */
import type { PubSub } from '@google-cloud/pubsub';
import {
  ack,
  type Clock,
  compose,
  type Handler,
  type Message,
  type Middleware,
  type Publisher,
  silent,
} from 'pubsub-guarantees';
import { deadLettering } from 'pubsub-guarantees/dead-letters';
import { type ClaimStore, dedup } from 'pubsub-guarantees/dedup';
import { receive } from 'pubsub-guarantees/receive/pubsub';
import { DEAD_LETTERS, LANES } from './lanes.ts';
import type { Arrival, DeadLetter } from './observed.ts';

type Ports = Readonly<{ client: PubSub; publisher: Publisher; store: ClaimStore; clock: Clock }>;

export type Subscribers = Readonly<{
  arrivals: readonly Arrival[];
  deadLetters: readonly DeadLetter[];
  close(): Promise<void>;
}>;

/** `run` scopes the claims: a store that outlives the run must not remember an earlier one. */
export function subscribe({ client, publisher, store, clock }: Ports, run: string): Subscribers {
  const arrivals: Recorded[] = [];
  const deadLettered = new Map<string, DeadLetter>();
  const receivers = LANES.map((lane) => {
    const { observe, handler } = recorder(lane.target, arrivals, clock);
    const gate = [observe, deadLettering(publisher, DEAD_LETTERS.topic), dedup(store, { clock })];
    return receive(client.subscription(lane.subscription), compose(handler, gate), {
      consumer: `demo-${run}-${lane.target}`,
      clock,
      log: silent,
    });
  });
  // No gate here: it reads the wire contract, and an invalid attribute is why most of these are here.
  const deadLetterReceiver = receive(
    client.subscription(DEAD_LETTERS.subscription),
    compose(async ({ id, data, attributes }) => {
      deadLettered.set(nameOf(data, attributes), { messageId: id, data, attributes });
      return ack();
    }, []),
    { consumer: `demo-${run}-${DEAD_LETTERS.topic}`, clock, log: silent },
  );
  return {
    arrivals,
    get deadLetters() {
      return [...deadLettered.values()];
    },
    close: async () =>
      void (await Promise.all([...receivers, deadLetterReceiver].map((receiver) => receiver.close()))),
  };
}

/** A dead letter may come twice as well, under one dedupId and with the same reason. */
const nameOf = (data: Uint8Array, { dedupId, deadLetterReason }: DeadLetter['attributes']): string =>
  JSON.stringify([dedupId, deadLetterReason, Buffer.from(data).toString('base64')]);

type Recorded = { -readonly [Name in keyof Arrival]: Arrival[Name] };

function recorder(
  topic: string,
  arrivals: Recorded[],
  clock: Clock,
): Readonly<{ observe: Middleware; handler: Handler }> {
  const latest = new Map<string, Recorded>();
  const arrivalOf = (message: Message): Recorded => ({
    topic,
    messageId: message.id,
    data: message.data,
    attributes: message.attributes,
    ...(message.orderingKey !== undefined && { orderingKey: message.orderingKey }),
    atMs: clock.now(),
    effect: false,
  });
  return {
    observe: (next) => (message, context) => {
      const arrival = arrivalOf(message);
      arrivals.push(arrival);
      latest.set(message.id, arrival);
      return next(message, context);
    },
    async handler(message) {
      const arrival = latest.get(message.id);
      // The same delivery twice in the handler is as much a second effect as a second delivery is.
      if (arrival === undefined || arrival.effect) arrivals.push({ ...arrivalOf(message), effect: true });
      else arrival.effect = true;
      return ack();
    },
  };
}
