/**
 * Firestore in memory for the real client libraries: `FIRESTORE_EMULATOR_HOST=<address>`. Isolation is real
 * (see locks.ts); projects and databases are separate and exist as soon as they are named. What is
 * not saved is gone with the process.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { type ServiceDefinition, status } from '@grpc/grpc-js';
import type { Clock } from '../clock.ts';
import type { Faults } from '../faults/faults.ts';
import { restartable } from '../faults/restart.ts';
import { rpcFaults } from '../faults/rpc.ts';
import { loadServices, type RunningServer, serve, StatusError } from '../grpc-server.ts';
import { abandoned } from './abandoned.ts';
import type { Database, DatabaseStats } from './database.ts';
import { indexChecks, type IndexOptions } from './index-check.ts';
import { parseDefinitions } from './index-definitions.ts';
import { indexEntryCheck } from './index-entry-limits.ts';
import type { OpenStreams } from './listen.ts';
import { parseFirestore, saveFirestore } from './saved.ts';
import { firestoreService, measured } from './service.ts';
import type { Microseconds } from './time.ts';
import { checkTriggers, firestoreTriggers, type Trigger } from './triggers.ts';
import { expiringDatabase, parsePolicies, type TtlPolicy } from './ttl.ts';

export type FirestoreOptions = Readonly<{
  /** Default 0: any free port. */
  port?: number;
  clock: Clock;
  /** Gets one line for each error that is this server's own fault, and for each index that is missing. Default: nowhere. */
  log?: (line: string) => void;
  /** What goes wrong on request. */
  faults?: Faults;
  /**
   * Time-to-live policies of every database: a document of the collection group is deleted within an hour of the
   * clock after the time in the field (the service: typically within 24 hours). A field of another type than
   * timestamp never expires. One field for each collection group. Default: none.
   */
  ttl?: readonly TtlPolicy[];
  /** The indexes that queries would need in the service, and that documents have entries in. */
  indexes?: IndexOptions;
  /** Where requests go for each document that is created: those that are there now. Default: none. */
  triggers?: () => readonly Trigger[];
  /** Triggers also go to addresses that are not this machine's own. Default: false, and such a request fails. */
  remoteTargets?: boolean;
}>;

export type { Trigger } from './triggers.ts';

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
    /** Events of triggers that are not answered. */
    inFlight(): number;
    /** Removes every document of every database and ends every transaction. */
    clear(): void;
    /** Everything that it holds as plain JSON data; the form is described in saved.ts. */
    save(): object;
    /**
     * Replaces everything that it holds, at once; `{}` is an empty server. Listeners and calls that wait end with
     * UNAVAILABLE, so that clients try again, and transactions are rolled back. Throws an error of one line that names
     * the place, and then nothing has changed.
     */
    load(saved: unknown): void;
    /** `load` in two steps: reads it, or throws so; what it gives puts it in place, and does not fail. */
    prepare(saved: unknown): () => void;
  }>;

/** Throws an error that names the port when another process listens on it, or a policy or an index that is not legal. */
export async function startFirestore(options: FirestoreOptions): Promise<RunningFirestore> {
  const { port = 0, clock, log = () => undefined, ttl = [], indexes = {}, faults } = options;
  const { triggers = () => [], remoteTargets = false } = options;
  checkTriggers(triggers());
  const policies = parsePolicies(ttl);
  const definitions = parseDefinitions(indexes.definitions ?? {}, 'indexes.definitions');
  const checks = indexChecks(indexes.mode, definitions, log);
  const checkEntries = indexEntryCheck(definitions);
  const databases = new Map<string, Database>();
  const streams: OpenStreams = new Set();
  /** By name: a database that is there again, for another state was loaded, does not go back in time. */
  const latestTimes = new Map<string, Microseconds>();
  const named = (name: string): Database => {
    const known = databases.get(name);
    if (known !== undefined) return known;
    const created = expiringDatabase(name, clock, policies, log, {
      after: latestTimes.get(name) ?? 0,
      checkEntries,
      onWritten: fired.committed,
    });
    databases.set(name, created);
    return created;
  };
  const fired = firestoreTriggers({
    clock,
    triggers,
    definition: firestoreDefinition(),
    faults,
    remoteTargets,
    log: (line) => log(`firestore: ${line}`),
  });
  const definition = measured(firestoreDefinition(), [
    'Commit',
    'BatchWrite',
    'CreateDocument',
    'UpdateDocument',
  ]);
  const follow = abandoned(clock, (name, transaction) => named(name).rollback(transaction));
  const server = await serve(port, [[definition, firestoreService(named, checks, follow, log, streams)]], {
    onDisconnect: follow.disconnected,
    ...(faults && { intercept: rpcFaults(faults, 'firestore') }),
  });
  const clear = (): void => {
    for (const each of databases.values()) each.clear();
  };
  const state = {
    save: () => saveFirestore(databases),
    prepare(saved: unknown): () => void {
      const parsed = parseFirestore(saved);
      return () => replace(parsed);
    },
  };
  function replace(parsed: ReturnType<typeof parseFirestore>): void {
    const error = new StatusError(status.UNAVAILABLE, 'The server begins anew with another state.');
    for (const end of streams) end(error);
    for (const [name, each] of databases) {
      each.end(error);
      latestTimes.set(name, each.latest());
    }
    databases.clear();
    fired.clear();
    follow.close();
    for (const { name, docs, latestTime } of parsed) {
      latestTimes.set(name, Math.max(latestTime, latestTimes.get(name) ?? 0));
      named(name).restore(docs);
    }
  }
  const restarts = restartable(faults, 'firestore', clock, server, state, log);
  return {
    ...server,
    save: restarts.save,
    load: restarts.load,
    prepare: restarts.prepare,
    stats: () => sum([...databases.values()]),
    inFlight: fired.inFlight,
    clear,
    async close() {
      restarts.detach();
      // First what waits, so that nothing holds the server up; then what arrived meanwhile, so that no timer is left.
      clear();
      await server.close();
      follow.close();
      clear();
      fired.clear();
    },
  };
}

/** The service as the client package describes it. */
export function firestoreDefinition(): ServiceDefinition {
  if (loaded !== undefined) return loaded;
  const client = createRequire(import.meta.url).resolve('@google-cloud/firestore/package.json');
  const name = 'google.firestore.v1.Firestore';
  const protos = join(dirname(client), 'build/protos');
  loaded = loadServices('google/firestore/v1/firestore.proto', [protos], [name])[name];
  return loaded;
}

/** Reading it takes longer than all the rest of a start, and it is the same for every server. */
let loaded: ServiceDefinition | undefined;

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
