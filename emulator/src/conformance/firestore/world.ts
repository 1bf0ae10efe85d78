/**
 * What a case has in its hands: a server, real clients of it, plain gRPC calls, and time. The embedded server is on a
 * clock that `pass` moves; Google's emulator is asked in a project of the case's own, and `pass` waits.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { Firestore, type Settings } from '@google-cloud/firestore';
import { startFirestore } from '../../firestore/index.ts';
import { manualClock } from '../../manual-clock.ts';
import type { World } from '../case.ts';
import { connect, type Calls } from './calls.ts';

/** Documents of this collection group expire by this field, where the server has policies. */
export const EXPIRING = { collectionGroup: 'sessions', field: 'expiresAt' };

export type FirestoreWorld = World &
  Calls &
  Readonly<{
    /** A client of the default database. */
    db: Firestore;
    /** Another client, with a connection of its own. */
    client(settings?: Settings): Firestore;
    /** A client of a database whose indexes are the automatic ones only. */
    unindexed(): Promise<Firestore>;
    project: string;
    /** `projects/P/databases/(default)`. */
    database: string;
    /** The full name of a document of the default database by its path. */
    doc(path: string): string;
    /** Commits writes as they are on the wire. */
    commit(...writes: readonly object[]): Promise<Answered>;
    /** Milliseconds since the epoch, on the server's clock. */
    now(): number;
    /** Lets the server's time go on. */
    pass(milliseconds: number): Promise<void>;
  }>;

type Answered = Readonly<{
  writeResults: readonly Readonly<{ updateTime: object | null; transformResults: readonly object[] }>[];
  commitTime: object;
}>;

type Parts = Pick<FirestoreWorld, 'now' | 'pass'> &
  Readonly<{ unindexed(): Promise<string>; end(): Promise<void> }>;

export async function embeddedWorld(): Promise<FirestoreWorld> {
  // Google's emulator knows no time but the real one, so that both begin now.
  const clock = manualClock(Date.now());
  const server = await startFirestore({ clock, ttl: [EXPIRING], indexes: { mode: 'off' } });
  const others: Awaited<ReturnType<typeof startFirestore>>[] = [];
  return world(server.address, 'test-project', {
    now: clock.now,
    async pass(milliseconds) {
      clock.advance(milliseconds);
      // What fell due may be on its way to a client.
      await wait(5);
    },
    async unindexed() {
      const other = await startFirestore({ clock, indexes: { mode: 'enforce' } });
      others.push(other);
      return other.address;
    },
    async end() {
      await server.close();
      await Promise.all(others.map((other) => other.close()));
    },
  });
}

export async function officialWorld(address: string, project: string): Promise<FirestoreWorld> {
  return world(address, project, {
    now: Date.now,
    pass: (milliseconds) => wait(milliseconds),
    unindexed: async () => address,
    end: async () => {},
  });
}

function world(address: string, project: string, { now, pass, unindexed, end }: Parts): FirestoreWorld {
  const database = `projects/${project}/databases/(default)`;
  const calls = connect(address, database);
  const clients: Firestore[] = [];
  let db: Firestore | undefined;
  const clientAt = (at: string, settings: Settings = {}): Firestore => {
    // The client reads the variable when it is made, and with it needs no credentials; there is no metadata server.
    process.env['FIRESTORE_EMULATOR_HOST'] = at;
    process.env['METADATA_SERVER_DETECTION'] = 'none';
    const made = new Firestore({ projectId: project, ...settings });
    clients.push(made);
    return made;
  };
  return {
    ...calls,
    get db() {
      // Cases that only make plain calls do without.
      db ??= clientAt(address);
      return db;
    },
    client: (settings) => clientAt(address, settings),
    unindexed: async () => clientAt(await unindexed()),
    project,
    database,
    doc: (path) => `${database}/documents/${path}`,
    commit: async (...writes) => (await calls.call('Commit', { database, writes }))[0] as Answered,
    now,
    pass,
    async close() {
      calls.close();
      await Promise.all(clients.map((each) => each.terminate()));
      await end();
    },
  };
}
