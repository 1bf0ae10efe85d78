/**
 * Contention on a counter in Firestore, with a client whose commits are aborted as often as the test says.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { Firestore } from '@google-cloud/firestore';
import { startFirestore } from 'pubsub-guarantees-emulator';
import { systemClock } from '../../../shared/src/clock.ts';
import { codeOf } from '../../../shared/src/errors.ts';
import type { CounterStore } from '../../../shared/src/sequence/counter-store.ts';
import { firestoreCounters } from '../../../shared/src/sequence/firestore.ts';
import { sequencer } from '../../../shared/src/sequence/sequencer.ts';

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

/** The texts of the service and of its emulators differ: the test compares the number alone. */
const TEXTS = ['Too much contention on these documents', 'Aborted due to cross-transaction contention'];

type Refusal = Readonly<{
  code?: number;
  /** From this commit on they are applied, as when a reply was lost and the client has sent the request again. */
  applied?: number;
  /** What is aborted after the last of them: one read, or those of a transaction. */
  blind?: 'read' | 'transaction';
}>;

/** The next `times` commits are refused (with ABORTED), nothing applied. Answers what was sent, at the end. */
function refusing(times: number, { code = 10, applied = Infinity, blind }: Refusal = {}) {
  type Call<First> = (first: First, ...rest: unknown[]) => Promise<unknown>;
  type Work = (transaction: object) => Promise<unknown>;
  type Client = { request: Call<string>; requestStream: Call<string>; runTransaction: Call<Work> };
  const client = firestore as unknown as Client;
  const { request, requestStream, runTransaction } = client;
  const aborted = () => Promise.reject(Object.assign(new Error('aborted'), { code: 10 }));
  let reads = 0;
  let [commits, transactions] = [0, 0];
  client.request = async (method, ...rest) => {
    if (method !== 'commit') return request.call(firestore, method, ...rest);
    commits += 1;
    const text = TEXTS[commits % TEXTS.length];
    if (commits <= times && commits >= applied) await request.call(firestore, method, ...rest);
    if (commits <= times) throw Object.assign(new Error(text), { code });
    return request.call(firestore, method, ...rest);
  };
  client.runTransaction = async (work, ...rest) => {
    transactions += 1;
    return blind === 'transaction' ? work({ get: aborted }) : runTransaction.call(firestore, work, ...rest);
  };
  client.requestStream = (method, ...rest) => {
    const isLost = blind === 'read' && commits === times && reads === 0;
    if (isLost) reads += 1;
    return isLost ? aborted() : requestStream.call(firestore, method, ...rest);
  };
  return (): Readonly<{ commits: number; transactions: number }> => {
    Object.assign(client, { request, requestStream, runTransaction });
    return { commits, transactions };
  };
}

let knowing: CounterStore | undefined;

/** Counters of a process whose transaction was aborted once, so that it knows of other processes. */
async function besideOthers(): Promise<CounterStore> {
  if (knowing !== undefined) return knowing;
  knowing = firestoreCounters(firestore);
  const restore = refusing(1);
  await sequencer(knowing).next(randomUUID());
  assert.deepEqual(restore(), { commits: 2, transactions: 1 });
  return knowing;
}

test('B14: four aborted attempts are followed by a fifth that succeeds: the client’s default', async () => {
  const { next } = sequencer(firestoreCounters(firestore));
  const key = randomUUID();
  const restore = refusing(4);
  const { number } = await next(key);
  assert.deepEqual([restore().commits, number], [5, 1]);
});

test('B14: contention each time is one typed error for every caller that waits, and no number is taken', async () => {
  const { next } = sequencer(firestoreCounters(firestore, { maxAttempts: 2 }));
  const key = randomUUID();
  const restore = refusing(Infinity);
  const codes = await Promise.all([1, 2, 3].map(() => next(key).catch(codeOf)));
  restore();
  assert.deepEqual(
    codes,
    Array.from({ length: 3 }, () => 'SEQUENCE_CONTENTION'),
  );
  assert.equal((await next(key)).number, 1);
});

test('B14: a process that has met no contention takes its numbers in transactions', async () => {
  const { next } = sequencer(firestoreCounters(firestore));
  const key = randomUUID();
  const restore = refusing(0);
  assert.deepEqual([(await next(key)).number, (await next(key)).number], [1, 2]);
  assert.deepEqual(restore(), { commits: 2, transactions: 2 });
});

test('B14: once a transaction was aborted, numbers are taken without locks: a read and a write', async () => {
  const { next } = sequencer(await besideOthers());
  const key = randomUUID();
  const restore = refusing(0);
  assert.deepEqual([(await next(key)).number, (await next(key)).number], [1, 2]);
  assert.deepEqual(restore(), { commits: 2, transactions: 0 });
});

test('B14: the request that comes second tries again at once, and in the end in a transaction, for which the others wait', async () => {
  const { next } = sequencer(await besideOthers());
  const key = randomUUID();
  await next(key);
  const few = refusing(9, { code: 9 });
  assert.equal((await next(key)).number, 2);
  assert.deepEqual(few(), { commits: 10, transactions: 0 });
  const many = refusing(10, { code: 9 });
  assert.equal((await next(key)).number, 3);
  assert.deepEqual(many(), { commits: 11, transactions: 1 });
});

for (const code of [9, 10]) {
  test(`B3: a conditional write that was applied and sent again (${code}) takes its numbers once`, async () => {
    const { next } = sequencer(await besideOthers());
    const key = randomUUID();
    await next(key);
    const restore = refusing(1, { code, applied: 1 });
    assert.equal((await next(key)).number, 2);
    assert.deepEqual(restore(), { commits: 1, transactions: 0 });
    assert.equal((await next(key)).number, 3);
  });
}

for (const [blind, times, transactions] of [
  ['read', 1, 0],
  ['transaction', 10, 1],
] as const) {
  test(`B3: a conditional write that was applied takes its numbers once, where the next ${blind} is aborted`, async () => {
    const { next } = sequencer(await besideOthers());
    const key = randomUUID();
    await next(key);
    const restore = refusing(times, { code: 9, applied: times, blind });
    // This is not contention in which no number was taken: the same request is made again.
    const number = await next(key).then(
      (numbered) => numbered.number,
      (error: unknown) => codeOf(error),
    );
    assert.deepEqual([number, restore()], [2, { commits: times, transactions }]);
    assert.equal((await next(key)).number, 3);
  });
}

test('B14: processes without locks and publishers with transactions share a counter without a hole', async () => {
  const alone = await besideOthers();
  const stores = [alone, alone, firestoreCounters(firestore)];
  const key = randomUUID();
  const lanes = stores.map(async (counters) => {
    const { next } = sequencer(counters);
    const numbers: number[] = [];
    for (let count = 0; count < 10; count += 1) numbers.push((await next(key)).number);
    return numbers;
  });
  const all = (await Promise.all(lanes)).flat().toSorted((left, right) => left - right);
  assert.deepEqual(
    all,
    Array.from({ length: 30 }, (_, index) => index + 1),
  );
});

test('a publisher in another language writes the fields of the contract and leaves the others: no number is lost', async () => {
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
