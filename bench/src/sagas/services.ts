/** What all ways of one action have in common: clients, services behind subscriptions, and the effect of a step. */
import type { Firestore, Transaction } from '@google-cloud/firestore';
import type { PubSub } from '@google-cloud/pubsub';
import {
  compose,
  type Handler,
  type Message,
  type Middleware,
  type Outcome,
  type OutgoingMessage,
  type Publisher,
  silent,
} from 'pubsub-guarantees';
import { deadLettering } from 'pubsub-guarantees/dead-letters';
import { inbox, type InboxHandler } from 'pubsub-guarantees/dedup';
import { firestoreInbox } from 'pubsub-guarantees/dedup/firestore';
import { outbox, relay } from 'pubsub-guarantees/outbox';
import { firestoreOutbox } from 'pubsub-guarantees/outbox/firestore';
import { receive } from 'pubsub-guarantees/receive/pubsub';
import type { TaskQueue } from 'pubsub-guarantees/tasks';

export type Ground = Readonly<{
  firestore: Firestore;
  pubsub: PubSub;
  publisher: Publisher;
  queue: TaskQueue;
}>;

/** One way to do the action: `run` resolves at its end. */
export type Way = Readonly<{ run(id: string): Promise<void>; close(): Promise<void> }>;

/** The names of the steps, in their order. */
export type Steps = readonly string[];
export const FOUR: Steps = ['order', 'credit', 'charge', 'ship'];

export type Waiting = Readonly<{ ended(id: string): void; untilEnd(id: string): Promise<void> }>;

export function waiting(): Waiting {
  const open = new Map<string, () => void>();
  return {
    ended(id) {
      open.get(id)?.();
      open.delete(id);
    },
    untilEnd: (id) => new Promise((resolve) => void open.set(id, resolve)),
  };
}

/** Reads and writes one document: what each step does in its own transaction, whichever way it is asked for. */
export async function effect(firestore: Firestore, transaction: Transaction, step: string, id: string) {
  const account = firestore.collection(`effects-${step}`).doc(id);
  const before = (await transaction.get(account)).get('count') ?? 0;
  transaction.set(account, { count: Number(before) + 1, step });
}

/** Starts an action in a transaction that creates its order. */
export function starter({ firestore, publisher }: Ground) {
  const store = firestoreOutbox(firestore);
  const box = outbox(store, { relay: relay(store, publisher, { log: silent }) });
  return async (id: string, message: OutgoingMessage, order: object): Promise<void> => {
    const added = await firestore.runTransaction(async (transaction) => {
      const slot = await box.reserve(transaction, { id });
      transaction.create(firestore.collection('orders').doc(id), order);
      return slot.add(message);
    });
    await added.afterCommit();
  };
}

/** A topic, its subscription, and the handler behind it in its inbox. `heard` gets what was acknowledged. */
export async function serve(
  { firestore, pubsub, publisher }: Ground,
  topic: string,
  handler: InboxHandler<Transaction>,
  {
    stages = [],
    heard = () => {},
  }: { stages?: readonly Middleware[]; heard?: (message: Message) => void } = {},
): Promise<() => Promise<void>> {
  const [made] = await pubsub.createTopic(topic);
  const [subscription] = await made.createSubscription(topic);
  const once = inbox(firestoreInbox(firestore), { publisher, projectId: pubsub.projectId });
  const handle: Handler = compose(once(handler), [deadLettering(publisher, 'dead-letters'), ...stages]);
  const receiver = receive(
    subscription,
    async (message, context): Promise<Outcome> => {
      const outcome = await handle(message, context);
      if (outcome.kind === 'ack') heard(message);
      return outcome;
    },
    { consumer: topic, log: silent, drainOnSigterm: false },
  );
  return async () => {
    await receiver.close();
    await subscription.delete();
    await made.delete();
  };
}
