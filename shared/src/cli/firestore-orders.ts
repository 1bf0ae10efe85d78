/**
 * The streams that a command line names, over Google's clients. `close` ends what was opened.
 */
import { Firestore } from '@google-cloud/firestore';
import { deadLettering } from '../dead-letter/dead-lettering.ts';
import { firestoreOrder } from '../order/firestore.ts';
import { type Orders, orders } from '../order/orders.ts';
import type { OrdersLine } from './command-line.ts';

export type OpenedOrders = Readonly<{ orders: Orders; close(): Promise<void> }>;

export async function openOrders(line: OrdersLine): Promise<OpenedOrders> {
  const firestore = new Firestore({ projectId: line.project, databaseId: line.database });
  const store = firestoreOrder(firestore, { collection: line.collection });
  const { consumer, deadLetterTopic, command } = line;
  // Only one command publishes, and only then is the client worth its start.
  if (command.kind !== 'skip' || deadLetterTopic === undefined) {
    return { orders: orders(store, { consumer }), close: () => firestore.terminate() };
  }
  const [{ PubSub }, { pubsubPublisher }, { firestorePayloads }] = await Promise.all([
    import('@google-cloud/pubsub'),
    import('../publish/pubsub.ts'),
    import('../payload/firestore.ts'),
  ]);
  const payloads = firestorePayloads(firestore, { collection: line.payloadCollection });
  const client = new PubSub({ projectId: line.project });
  const publisher = pubsubPublisher(client);
  const deadLetters = deadLettering(publisher, deadLetterTopic);
  return {
    orders: orders(store, { consumer, deadLetters, payloads }),
    async close() {
      await publisher.close();
      await client.close();
      await firestore.terminate();
    },
  };
}
