/**
 * The streams that a command line names, over Google's clients. `close` ends what was opened.
 */
import { Firestore } from '@google-cloud/firestore';
import { deadLettering } from '../dead-letter/dead-lettering.ts';
import type { StreamOperations } from '../order/admin.ts';
import { firestoreStreams } from '../order/firestore.ts';
import { orderedDelivery } from '../order/in-order.ts';
import type { StreamsLine } from './command-line.ts';

export type OpenedStreams = Readonly<{ streams: StreamOperations; close(): Promise<void> }>;

export async function openStreams(line: StreamsLine): Promise<OpenedStreams> {
  const firestore = new Firestore({ projectId: line.project, databaseId: line.database });
  const store = firestoreStreams(firestore, { collection: line.collection });
  const { deadLetterTopic, command, scope: streamScope } = line;
  // Only one command publishes, and only then is the client worth its start.
  if (command.kind !== 'skip' || deadLetterTopic === undefined) {
    return { streams: orderedDelivery(store, { streamScope }), close: () => firestore.terminate() };
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
    streams: orderedDelivery(store, { streamScope, deadLetters, payloads }),
    async close() {
      await publisher.close();
      await client.close();
      await firestore.terminate();
    },
  };
}
