/**
 * The sagas that a command line names, over Google's clients. `close` ends what was opened.
 */
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { pubsubPublisher } from '../publish/pubsub.ts';
import { firestoreSagas } from '../sagas/firestore.ts';
import { type Sagas, sagas } from '../sagas/sagas.ts';
import type { SagasLine } from './command-line.ts';

export type OpenedSagas = Readonly<{ sagas: Sagas; close(): Promise<void> }>;

export function openSagas({
  project,
  database,
  collection,
  consumer,
  wait,
  ...line
}: SagasLine): OpenedSagas {
  // Where it is absent the command only reads, and nothing is published.
  const { topic = 'none' } = line;
  const firestore = new Firestore({ projectId: project, databaseId: database });
  const client = new PubSub({ projectId: project });
  const publisher = pubsubPublisher(client);
  return {
    sagas: sagas(firestoreSagas(firestore, { collection }), {
      consumer,
      topic,
      publisher,
      answerTimeout: wait,
    }),
    async close() {
      await publisher.close();
      await client.close();
      await firestore.terminate();
    },
  };
}
