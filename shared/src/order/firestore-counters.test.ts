/**
 * Contention on a counter in Firestore, with a client whose commits are aborted as often as the test says.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { Firestore } from '@google-cloud/firestore';
import { startFirestore } from 'pubsub-guarantees-emulator';
import { systemClock } from '../clock.ts';
import { codeOf } from '../errors.ts';
import { firestoreCounters } from './firestore-counters.ts';
import { sequencer } from './sequencer.ts';

process.env['METADATA_SERVER_DETECTION'] ??= 'none';

let firestore: Firestore;
let close: () => Promise<void>;

before(async () => {
  const server = await startFirestore({ clock: systemClock() });
  const [host = '', port] = server.address.split(':');
  firestore = new Firestore({ projectId: 'test-project', host, port: Number(port), ssl: false });
  close = async () => {
    await firestore.terminate();
    await server.close();
  };
});
after(() => close());

/** The texts of the service and of its emulators differ: only the number counts. */
const TEXTS = ['Too much contention on these documents', 'Aborted due to cross-transaction contention'];

/** The next `times` commits are refused with ABORTED, nothing applied. Answers how many were sent, at the end. */
function aborting(times: number): () => number {
  type Call = (method: string, ...rest: unknown[]) => Promise<unknown>;
  const client = firestore as unknown as { request: Call };
  const { request } = client;
  let commits = 0;
  client.request = async (method, ...rest) => {
    if (method !== 'commit') return request.call(firestore, method, ...rest);
    commits += 1;
    const text = TEXTS[commits % TEXTS.length];
    if (commits <= times) throw Object.assign(new Error(text), { code: 10 });
    return request.call(firestore, method, ...rest);
  };
  return () => {
    Object.assign(client, { request });
    return commits;
  };
}

test('B14: four aborted attempts are made up for by the fifth, the client’s default', async () => {
  const { next } = sequencer(firestoreCounters(firestore));
  const key = randomUUID();
  const restore = aborting(4);
  const { number } = await next(key);
  assert.deepEqual([restore(), number], [5, 1]);
});

test('B14: contention each time is one typed error for everybody who waits, and no number is taken', async () => {
  const { next } = sequencer(firestoreCounters(firestore, { maxAttempts: 2 }));
  const key = randomUUID();
  const restore = aborting(Infinity);
  const codes = await Promise.all([1, 2, 3].map(() => next(key).catch(codeOf)));
  restore();
  assert.deepEqual(
    codes,
    Array.from({ length: 3 }, () => 'SEQUENCE_CONTENTION'),
  );
  assert.equal((await next(key)).number, 1);
});

test('a publisher of another language writes what it must and leaves the rest: no number is lost', async () => {
  const { next } = sequencer(firestoreCounters(firestore));
  const key = 'orders';
  const { number, epoch } = await next(key);
  // SHA-256 of "6:orders", as the wire contract has it.
  const document = firestore.doc('pubsub-guarantees-counters/1rP9yQe773Zy6CVnlaSRDY5nkCyTcPh2iF6aSWknyTU');
  const taken = await firestore.runTransaction(async (transaction) => {
    const counter = await transaction.get(document);
    assert.ok(counter.exists, `the document of ${key} is ${document.path}`);
    transaction.update(document, { next: Number(counter.get('next')) + 1 });
    return [Number(counter.get('next')), counter.get('epoch')];
  });
  const { number: last } = await next(key);
  assert.deepEqual([number, taken, last], [1, [2, epoch], 3]);
});
