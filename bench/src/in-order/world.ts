/** Google's clients for one pair of servers, over sockets; the caller that opens them closes them. */
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import type { RunningServers } from '../servers/start.ts';

export type World = Readonly<{ pubsub: PubSub; firestore: Firestore; close(): Promise<void> }>;

const PROJECT = 'bench';

export function connect({
  pubsub: apiEndpoint,
  firestorePort,
}: Pick<RunningServers, 'pubsub' | 'firestorePort'>): World {
  const pubsub = new PubSub({ projectId: PROJECT, apiEndpoint, emulatorMode: true });
  const firestore = new Firestore({
    projectId: PROJECT,
    host: `127.0.0.1:${firestorePort}`,
    ssl: false,
    customHeaders: { Authorization: 'Bearer owner' },
  });
  return {
    pubsub,
    firestore,
    close: async () => void (await Promise.all([pubsub.close(), firestore.terminate()])),
  };
}
