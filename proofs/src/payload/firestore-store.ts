/**
 * A payload store on a Firestore server, with the requests of its client in sight and failures on request.
 */
import { randomUUID } from 'node:crypto';
import { Firestore } from '@google-cloud/firestore';
import { startFirestore } from 'pubsub-guarantees-emulator';
import { systemClock } from '../../../shared/src/clock.ts';
import { hashOf } from '../../../shared/src/hash.ts';
import type { PayloadStoreUnderTest } from '../../../shared/src/payload/contract.ts';
import { firestorePayloads } from '../../../shared/src/payload/firestore.ts';
import type { PayloadRef } from '../../../shared/src/payload/payload-store.ts';
import { watchSelected } from '../servers/firestore-client.ts';

// The client looks for Google's metadata server even when it talks to an emulator, and warns that there is none.
process.env['METADATA_SERVER_DETECTION'] ??= 'none';

type Operations = Readonly<{ reads: number; writes: number; deletes: number }>;
type Failure = 'refused' | 'reply lost';
type Write = Readonly<{
  delete?: string;
  update?: Readonly<{ fields?: Record<string, { bytesValue?: Uint8Array }> }>;
}>;
type Call = (
  method: string,
  request: Readonly<{ writes?: readonly Write[] }>,
  ...rest: unknown[]
) => Promise<unknown>;

export type Opened = PayloadStoreUnderTest &
  Readonly<{
    /** Counts from now on; `operations` starts anew each time it is asked. */
    watch(): Readonly<{
      operations(): Operations;
      largestCommit(): number;
      largestDocument(): number;
      mostReadsAtOnce(): number;
    }>;
    /** What the n-th commit from now on (from 1) does instead of answering. */
    failCommit(n: number, how: Failure): void;
    /** Holds the n-th commit from now on until it is released. */
    holdCommit(n: number): Readonly<{ reached: Promise<void>; release(): void }>;
    /** Names of the fields that each query asks for, until it is called: undefined for whole documents. */
    watchSelected(): ReturnType<typeof watchSelected>;
    spoil(ref: PayloadRef, how: 'missing' | 'changed' | 'shorter' | 'moved'): Promise<void>;
    rewrite(ref: PayloadRef, kind: 'manifest' | 'chunk', fields: object): Promise<void>;
  }>;

export async function opened(address?: string): Promise<Opened> {
  const server = address === undefined ? await startFirestore({ clock: systemClock() }) : undefined;
  const [host = '', port] = (address ?? server?.address ?? '').split(':');
  const firestore = new Firestore({ projectId: 'demo-project', host, port: Number(port), ssl: false });
  const collection = `payload-${randomUUID()}`;
  const chunks = firestore.collection(`${collection}-chunks`);
  let offsetMs = 0;
  const now = (): number => Date.now() + offsetMs;
  const store = firestorePayloads(firestore, { collection, clock: { ...systemClock(), now } });
  const spy = spied(firestore);
  const chunk = (ref: PayloadRef, index: number) => chunks.doc(hashOf(ref.id, String(index)));
  return {
    ...spy,
    store,
    now,
    watchSelected: () => watchSelected(firestore),
    pass: (milliseconds) => void (offsetMs += milliseconds),
    async storedBytes() {
      const { docs } = await chunks.get();
      return docs.reduce((sum, document) => sum + (document.get('data') as Buffer).length, 0);
    },
    async spoil(ref, how) {
      const document = chunk(ref, 1);
      if (how === 'missing') return void (await document.delete());
      if (how === 'moved') return void (await document.update({ index: 0 }));
      const data = (await document.get()).get('data') as Buffer;
      const changed =
        how === 'shorter' ? data.subarray(1) : Buffer.concat([Buffer.from('x'), data.subarray(1)]);
      await document.update({ data: changed });
    },
    async rewrite(ref, kind, fields) {
      await (kind === 'chunk' ? chunk(ref, 0) : firestore.collection(collection).doc(ref.id)).update({
        ...fields,
      });
    },
    async close() {
      await firestore.terminate();
      await server?.close();
    },
  };
}

function spied(firestore: Firestore): Pick<Opened, 'watch' | 'failCommit' | 'holdCommit'> {
  const client = firestore as unknown as { request: Call; requestStream: Call };
  const { request, requestStream } = client;
  let counts = { reads: 0, writes: 0, deletes: 0 };
  let [largestCommit, largestDocument, readsNow, mostReads, commits] = [0, 0, 0, 0, 0];
  const failures = new Map<number, Failure>();
  const holds = new Map<number, Readonly<{ reach(): void; released: Promise<void> }>>();

  client.request = async (method, body, ...rest) => {
    if (method !== 'commit') return request.call(firestore, method, body, ...rest);
    commits += 1;
    const writes = body.writes ?? [];
    const sizes = writes.map(({ update }) =>
      Object.entries(update?.fields ?? {}).reduce(
        (sum, [key, { bytesValue }]) => sum + key.length + 32 + (bytesValue?.length ?? 0),
        200,
      ),
    );
    counts.deletes += writes.filter((write) => write.delete !== undefined).length;
    counts.writes += writes.filter((write) => write.delete === undefined).length;
    largestCommit = Math.max(
      largestCommit,
      sizes.reduce((sum, size) => sum + size, 0),
    );
    largestDocument = Math.max(largestDocument, ...sizes);
    const [failure, hold] = [failures.get(commits), holds.get(commits)];
    hold?.reach();
    await hold?.released;
    // INTERNAL: the client does not repeat a commit for it.
    const lost = Object.assign(new Error('made for a test'), { code: 13 });
    if (failure === 'refused') throw lost;
    const answer = await request.call(firestore, method, body, ...rest);
    if (failure === 'reply lost') throw lost;
    return answer;
  };
  client.requestStream = async (method, ...rest) => {
    if (method !== 'batchGetDocuments') return requestStream.call(firestore, method, ...rest);
    counts.reads += 1;
    readsNow += 1;
    mostReads = Math.max(mostReads, readsNow);
    const stream = (await requestStream.call(firestore, method, ...rest)) as NodeJS.ReadableStream;
    stream.once('end', () => void (readsNow -= 1));
    return stream;
  };
  return {
    watch: () => {
      counts = { reads: 0, writes: 0, deletes: 0 };
      return {
        operations() {
          const seen = counts;
          counts = { reads: 0, writes: 0, deletes: 0 };
          return seen;
        },
        largestCommit: () => largestCommit,
        largestDocument: () => largestDocument,
        mostReadsAtOnce: () => mostReads,
      };
    },
    failCommit: (n, how) => void failures.set(commits + n, how),
    holdCommit(n) {
      const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      holds.set(commits + n, { reach: reached.resolve, released: released.promise });
      return { reached: reached.promise, release: released.resolve };
    },
  };
}
