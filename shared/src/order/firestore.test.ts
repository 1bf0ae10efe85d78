/**
 * The contracts on Firestore: on the local stack's server, and on the one that TEST_FIRESTORE_EMULATOR_HOST names.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import type { Firestore } from '@google-cloud/firestore';
import { freePort, startFirestore, turnsDuring } from 'pubsub-guarantees-emulator';
import { systemClock } from '../clock.ts';
import { codeOf } from '../errors.ts';
import { compose, type Context } from '../handler.ts';
import { silent } from '../log.ts';
import { ack } from '../outcome.ts';
import { orderContract } from './contract.ts';
import { counterContract } from '../sequence/contract.ts';
import { firestoreCounters, firestoreOrder } from './firestore.ts';
import { inOrder } from './in-order.ts';
import { freshKey } from './key-state.ts';
import { sequencer } from '../sequence/sequencer.ts';
import { streamContract } from './stream-contract.ts';
import { messageOf } from './testing/bench.ts';
import { countOperations } from '../testing/firestore-client.ts';
import {
  clientOf,
  firestoreServers,
  onLocalStack,
  type OpenedFirestore,
} from '../testing/firestore-servers.ts';

for (const [name, open] of firestoreServers('off')) {
  for (const contract of [orderContract, streamContract]) {
    contract(name, async () => {
      const { firestore, close } = await open();
      return { store: firestoreOrder(firestore, { collection: 'test-order' }), close };
    });
  }
  counterContract(name, async () => {
    const { firestore, close } = await open();
    return {
      counters: firestoreCounters(firestore, { collection: 'test-counters', maxAttempts: 20 }),
      close,
    };
  });

  suite(`order on ${name}`, () => {
    let opened: OpenedFirestore;
    before(async () => {
      opened = await open();
    });
    after(() => opened.close());

    test('a message in its turn costs one read and two writes', async () => {
      const clock = systemClock();
      const store = firestoreOrder(opened.firestore);
      const chain = compose(async () => ack(), [inOrder(store, { clock })]);
      const context = contextFor(randomUUID());
      await chain(messageOf(1), context);
      const counted = countOperations(opened.firestore);
      const messages = 10;
      for (let number = 2; number <= messages + 1; number += 1) {
        assert.equal((await chain(messageOf(number), context)).kind, 'ack');
      }
      const { reads, writes } = counted();
      assert.deepEqual([reads / messages, writes / messages], [1, 2]);
    });

    test('a counter takes 20 numbers of parallel callers in few transactions, without a hole', async () => {
      const { next } = sequencer(firestoreCounters(opened.firestore));
      const counted = countOperations(opened.firestore);
      const key = randomUUID();
      const numbers = await Promise.all(Array.from({ length: 20 }, async () => (await next(key)).number));
      assert.deepEqual(
        numbers,
        Array.from({ length: 20 }, (_, index) => index + 1),
      );
      assert.deepEqual(counted(), { reads: 2, writes: 2 });
    });

    test('what a transaction decides by is read inside it: the key, one held number, and the first ones', async () => {
      // A server that locks documents exclusively hides a read beside the transaction: it would be seen nowhere else.
      const store = firestoreOrder(opened.firestore);
      const ref = { consumer: randomUUID(), key: 'k' };
      const base = freshKey(1);
      await store.write(ref, { version: undefined, base }, { readyAt: 1 });
      for (const query of [{ numbers: [1] }, { from: 1, limit: 1 }]) {
        const reads = readsOf(opened.firestore);
        await store.transact(ref, base, query, () => ({ result: undefined, patch: { readyAt: null } }));
        assert.deepEqual(reads(), [
          'batchGetDocuments in',
          'numbers' in query ? 'batchGetDocuments in' : 'runQuery in',
        ]);
      }
    });

    test('B3: numbers whose reply was lost are not given up when the repeats meet other publishers', async () => {
      for (const lostRead of [false, true]) {
        const counters = firestoreCounters(opened.firestore, { maxAttempts: 2 });
        const { next } = sequencer(counters);
        const key = randomUUID();
        const restore = failing(opened.firestore, { lostRead });
        assert.equal((await next(key)).number, 1, `lostRead ${lostRead}`);
        restore();
        assert.equal((await next(key)).number, 2, `lostRead ${lostRead}`);
      }
    });

    test('a process whose clock is behind, or jumps, finds what is due on the server’s clock', async () => {
      let behindMs = 3_600_000;
      const clock = { ...systemClock(), now: () => Date.now() - behindMs };
      const store = firestoreOrder(opened.firestore, { clock, collection: `order-${randomUUID()}` });
      const ref = { consumer: randomUUID(), key: 'k' };
      const { nowMs } = await store.read(ref);
      const readyAt = nowMs - 1_000;
      await store.write(ref, { version: undefined, base: freshKey(1) }, { readyAt });
      assert.equal((await store.ready(ref.consumer, 10)).length, 1);
      behindMs = 7_200_000;
      assert.equal((await store.ready(ref.consumer, 10)).length, 1);
      behindMs = -7_200_000;
      assert.equal((await store.ready(ref.consumer, 10)).length, 1);
    });
  });
}

test('a server that is down gives STORE_UNAVAILABLE in time, and works once it is up', async () => {
  const port = await freePort();
  const firestore = clientOf(`127.0.0.1:${port}`);
  const transactions = followTransactions(firestore);
  const short = { callTimeout: '300ms', transactionTimeout: '400ms' } as const;
  const store = firestoreOrder(firestore, short);
  const ref = { consumer: 'c', key: 'k' };
  const base = freshKey(1);
  const calls = [
    store.read(ref),
    store.write(ref, { version: undefined, base }, { last: 1 }),
    store.transact(ref, base, { numbers: [1] }, () => ({ result: undefined })),
    store.held(ref, 1, 1),
    store.ready('c', 1),
    store.list('c', { state: 'halted', limit: 1 }),
    store.count('c', 'any'),
    store.countHeld(ref),
    firestoreCounters(firestore, short).take('k', { id: 'i', count: 1, epoch: 'e' }),
  ];
  const all = async () => {
    const codes = await Promise.all(calls.map((call) => call.then(() => 'answered', codeOf)));
    assert.deepEqual(new Set(codes), new Set(['STORE_UNAVAILABLE']));
  };
  assert.ok((await turnsDuring(all)) < 5_000);
  // A client that is ended while it still tries has an unhandled rejection of its own: first it gets its answers.
  const server = await startFirestore({ port, clock: systemClock() });
  assert.equal(
    (await firestoreOrder(firestore, { callTimeout: '30s' }).read(ref)).state?.epoch ?? null,
    null,
  );
  await Promise.allSettled(transactions);
  await firestore.terminate();
  await server.close();
});

test('a transaction that was given up sends nothing more', async () => {
  const { firestore, close } = await onLocalStack('off');
  const transactions = followTransactions(firestore);
  const client = firestore as unknown as {
    request: (method: string, ...rest: unknown[]) => Promise<unknown>;
  };
  const { request } = client;
  let commits = 0;
  client.request = async (method, ...rest) => {
    if (method !== 'commit') return request.call(firestore, method, ...rest);
    commits += 1;
    throw Object.assign(new Error('made for a test'), { code: 10 });
  };
  try {
    const store = firestoreOrder(firestore, { transactionTimeout: '500ms' });
    const decide = () => ({ result: undefined, patch: { last: 1 } });
    const transaction = store.transact({ consumer: 'c', key: 'k' }, freshKey(1), { numbers: [1] }, decide);
    await assert.rejects(transaction, { code: 'STORE_UNAVAILABLE' });
    const before = commits;
    await Promise.allSettled(transactions);
    assert.equal(commits, before);
  } finally {
    await close();
  }
});

test('invalid settings are refused by name', async () => {
  const firestore = clientOf('127.0.0.1:1');
  assert.throws(() => firestoreOrder(firestore, { maxAttempts: 0 }), /maxAttempts is 0/);
  assert.throws(() => firestoreCounters(firestore, { callTimeout: '1x' as never }), /callTimeout/);
  await firestore.terminate();
});

/** Every transaction that the client runs, also those that their caller has given up. */
function followTransactions(firestore: Firestore): readonly Promise<unknown>[] {
  const running: Promise<unknown>[] = [];
  const run = firestore.runTransaction.bind(firestore);
  firestore.runTransaction = (...args) => {
    const transaction = run(...args);
    running.push(transaction);
    return transaction as never;
  };
  return running;
}

/** The reads that the client sends from now on, and whether each is in a transaction or beside one. */
function readsOf(firestore: Firestore): () => readonly string[] {
  type Body = Readonly<{ transaction?: unknown; newTransaction?: unknown }>;
  type Call = (method: string, bidirectional: boolean, body: Body, ...rest: unknown[]) => Promise<unknown>;
  const client = firestore as unknown as { requestStream: Call };
  const { requestStream } = client;
  const reads: string[] = [];
  client.requestStream = (method, bidirectional, body, ...rest) => {
    const isInside = body.transaction !== undefined || body.newTransaction !== undefined;
    reads.push(`${method} ${isInside ? 'in' : 'beside'}`);
    return requestStream.call(firestore, method, bidirectional, body, ...rest);
  };
  return () => {
    Object.assign(client, { requestStream });
    return reads;
  };
}

/** The first commit is applied and its reply lost, the attempt after it is aborted: at its read, or at its commit. */
function failing(firestore: Firestore, { lostRead }: Readonly<{ lostRead: boolean }>): () => void {
  type Call = (method: string, ...rest: unknown[]) => Promise<unknown>;
  const client = firestore as unknown as Record<'request' | 'requestStream', Call>;
  const { request, requestStream } = client;
  const failure = (code: number): Error => Object.assign(new Error('made for a test'), { code });
  let commits = 0;
  let reads = 0;
  client.request = async (method, ...rest) => {
    if (method !== 'commit') return request.call(firestore, method, ...rest);
    commits += 1;
    if (commits === 2 && !lostRead) throw failure(10);
    const answer = await request.call(firestore, method, ...rest);
    if (commits === 1) throw failure(14);
    return answer;
  };
  client.requestStream = async (method, ...rest) => {
    reads += 1;
    if (reads === 2 && lostRead) throw failure(10);
    return requestStream.call(firestore, method, ...rest);
  };
  return () => void Object.assign(client, { request, requestStream });
}

const contextFor = (consumer: string): Context => ({
  consumer,
  source: 's',
  now: Date.now,
  deadline: performance.now() + 60_000,
  signal: new AbortController().signal,
  log: silent,
});
