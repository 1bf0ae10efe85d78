/**
 * The clients that the demo uses on the local stack: Google's own, pointed at its addresses. `close` ends all of them.
 */
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { Redis } from 'ioredis';
import type { Publisher } from 'pubsub-guarantees';
import type { ClaimStore } from 'pubsub-guarantees/dedup';
import { firestoreClaims } from 'pubsub-guarantees/dedup/firestore';
import { redisClaims } from 'pubsub-guarantees/dedup/redis';
import { pubsubPublisher } from 'pubsub-guarantees/publish/pubsub';

type Addresses = Readonly<{ pubsub: string; firestore: string; project: string }>;

export type Connections = Readonly<{
  /** A client of its own for each call, as each publisher would have one. */
  pubsub(): PubSub;
  /** What the subscribers' dead letters are published with. */
  publisher(client: PubSub): Publisher;
  claims: ClaimStore;
  close(): Promise<void>;
}>;

/** `redisUrl` absent: the claims are in the stack's Firestore. */
export function connect({ pubsub, firestore, project }: Addresses, redisUrl?: string): Connections {
  const closers: (() => Promise<unknown>)[] = [];
  return {
    pubsub() {
      const client = new PubSub({ projectId: project, apiEndpoint: pubsub, emulatorMode: true });
      closers.push(() => client.close());
      return client;
    },
    publisher(client) {
      const publisher = pubsubPublisher(client);
      closers.push(() => publisher.close());
      return publisher;
    },
    claims: redisUrl === undefined ? inFirestore() : inRedis(redisUrl),
    async close() {
      for (const closer of closers.splice(0).toReversed()) await closer();
    },
  };

  function inFirestore(): ClaimStore {
    const client = new Firestore({ projectId: project, host: firestore, ssl: false });
    closers.push(() => client.terminate());
    return firestoreClaims(client, { collection: 'demo-claims' });
  }

  function inRedis(url: string): ClaimStore {
    const client = new Redis(url, { maxRetriesPerRequest: 1 });
    // The store answers each call with its own error; without a listener every lost connection would be printed.
    client.on('error', () => {});
    closers.push(async () => client.disconnect());
    return redisClaims(client, { prefix: 'demo:' });
  }
}
