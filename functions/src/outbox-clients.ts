/**
 * What a function reads of its publishers in Firestore: their counters, and the outbox, in which the inbox's rows are too. All of
 * them are under the function's own prefix, in its own database, as the library's publishers have them by default.
 */
import type { Firestore, Transaction } from '@google-cloud/firestore';
import type { Clock, Log, Publisher, SweepContext } from 'pubsub-guarantees';
import type { CounterStart } from 'pubsub-guarantees/order';
import {
  type DocumentEvent,
  type GapRepair,
  type OutboxStore,
  type OutboxSwept,
  outboxTrigger,
  relay,
  type Tailed,
} from 'pubsub-guarantees/outbox';
import type { PayloadStore } from 'pubsub-guarantees/payload';
import type { Config } from './config.ts';

export type OutboxPorts = Readonly<{
  repair: GapRepair;
  /** One pass over everything that is pending. */
  sweep(context: SweepContext): Promise<OutboxSwept>;
  /** The row that a trigger of Firestore tells of, at once. */
  created(event: DocumentEvent): Promise<Tailed>;
  /** Where the data of large messages waits. */
  payloads: PayloadStore;
}>;

export async function counterStart(
  config: Config,
  firestore: Firestore,
  clock: Clock,
): Promise<CounterStart> {
  const { firestoreCounterStart } = await import('pubsub-guarantees/order/firestore');
  const { counters: collection, scope } = countersOf(config);
  return firestoreCounterStart(firestore, { collection, ...scope, clock });
}

/** The outbox, in which the rows of inboxes are too. */
export async function outboxStore(
  config: Config,
  firestore: Firestore,
  clock: Clock,
): Promise<OutboxStore<Transaction>> {
  const { firestoreOutbox } = await import('pubsub-guarantees/outbox/firestore');
  const { collectionPrefix: prefix } = config.firestore;
  const { counters, scope } = countersOf(config);
  return firestoreOutbox(firestore, {
    rows: rowsOf(config),
    streams: `${prefix}-outbox-streams`,
    counters,
    ...scope,
    ...(config.outbox.shards !== undefined && { shards: config.outbox.shards }),
    clock,
  });
}

export async function outboxPorts(
  config: Config,
  firestore: Firestore,
  publisher: Publisher,
  clock: Clock,
  log: Log,
): Promise<OutboxPorts> {
  const [store, { firestorePayloads }] = await Promise.all([
    outboxStore(config, firestore, clock),
    import('pubsub-guarantees/payload/firestore'),
  ]);
  const { collectionPrefix: prefix } = config.firestore;
  const payloads = firestorePayloads(firestore, { collection: `${prefix}-payload`, clock });
  const relayed = relay(store, publisher, { clock, log, payloads });
  const { database } = config.firestore;
  const created = outboxTrigger(relayed, { rows: rowsOf(config), database });
  return { repair: relayed.repair, sweep: relayed.sweep, created, payloads };
}

const rowsOf = ({ firestore }: Config): string => `${firestore.collectionPrefix}-outbox-rows`;

const countersOf = ({ firestore, outbox }: Config) => ({
  counters: `${firestore.collectionPrefix}-counters`,
  scope: outbox.counterScope === undefined ? {} : { scope: outbox.counterScope },
});
