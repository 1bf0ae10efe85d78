/**
 * Firestore in memory for the real client libraries: `FIRESTORE_EMULATOR_HOST=<address>`. Isolation is real
 * (see locks.ts); projects and databases are separate and exist as soon as they are named. Nothing survives
 * a restart.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { ServiceDefinition } from '@grpc/grpc-js';
import type { Clock } from '../clock.ts';
import { loadServices, type RunningServer, serve } from '../grpc-server.ts';
import { abandoned } from './abandoned.ts';
import type { Database, DatabaseStats } from './database.ts';
import { firestoreService, measured } from './service.ts';
import { expiringDatabase, parsePolicies, type TtlPolicy } from './ttl.ts';

export type FirestoreOptions = Readonly<{
  /** Default 0: any free port. */
  port?: number;
  clock: Clock;
  /** Gets one line for each error that is this server's own fault. Default: nowhere. */
  log?: (line: string) => void;
  /**
   * Time-to-live policies of every database: a document of the collection group is deleted within an hour of the
   * clock after the time in the field (the service: typically within 24 hours). A field of another type than
   * timestamp never expires. One field for each collection group. Default: none.
   */
  ttl?: readonly TtlPolicy[];
}>;

/** Sums over all databases. */
type FirestoreStats = DatabaseStats &
  Readonly<{
    databases: number;
    /** What is listened to: each target of each stream. */
    listeners: number;
  }>;

export type RunningFirestore = RunningServer &
  Readonly<{
    stats(): FirestoreStats;
    /** Removes every document of every database and ends every transaction. */
    clear(): void;
  }>;

/** Throws an error that names the port when another process listens on it, or a policy that is not legal. */
export async function startFirestore(options: FirestoreOptions): Promise<RunningFirestore> {
  const { port = 0, clock, log = () => undefined, ttl = [] } = options;
  const policies = parsePolicies(ttl);
  const databases = new Map<string, Database>();
  const named = (name: string): Database => {
    const known = databases.get(name);
    if (known !== undefined) return known;
    const created = expiringDatabase(name, clock, policies, log);
    databases.set(name, created);
    return created;
  };
  const definition = measured(firestoreDefinition(), ['Commit', 'BatchWrite']);
  const follow = abandoned(clock, (name, transaction) => named(name).rollback(transaction));
  const server = await serve(port, [[definition, firestoreService(named, follow, log)]], {
    onDisconnect: follow.disconnected,
  });
  const clear = (): void => {
    for (const each of databases.values()) each.clear();
  };
  return {
    ...server,
    stats: () => sum([...databases.values()]),
    clear,
    async close() {
      // First what waits, so that nothing holds the server up; then what came in meanwhile, so that no timer is left.
      clear();
      await server.close();
      follow.close();
      clear();
    },
  };
}

/** The service as the client package describes it. */
export function firestoreDefinition(): ServiceDefinition {
  const client = createRequire(import.meta.url).resolve('@google-cloud/firestore/package.json');
  const name = 'google.firestore.v1.Firestore';
  return loadServices('google/firestore/v1/firestore.proto', [join(dirname(client), 'build/protos')], [name])[
    name
  ];
}

function sum(all: readonly Database[]): FirestoreStats {
  const stats = all.map((each) => each.stats());
  const total = (key: keyof DatabaseStats): number => stats.reduce((count, each) => count + each[key], 0);
  return {
    databases: all.length,
    listeners: all.reduce((count, { feed }) => count + feed.watched(), 0),
    documents: total('documents'),
    openTransactions: total('openTransactions'),
    heldLocks: total('heldLocks'),
    waitingRequests: total('waitingRequests'),
    replacedDocuments: total('replacedDocuments'),
  };
}
