/**
 * The contracts on Firestore: on the local stack's server, and on the one that TEST_FIRESTORE_EMULATOR_HOST names.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import type { Firestore } from '@google-cloud/firestore';
import { freePort, startFirestore, turnsDuring } from 'pubsub-guarantees-emulator';
import { systemClock } from '../../../shared/src/clock.ts';
import { codeOf } from '../../../shared/src/errors.ts';
import { compose, type Context } from '../../../shared/src/handler.ts';
import { silent } from '../../../shared/src/log.ts';
import { ack } from '../../../shared/src/outcome.ts';
import { countOperations } from '../servers/firestore-client.ts';
import {
  clientOf,
  firestoreServers,
  onLocalStack,
  type OpenedFirestore,
} from '../servers/firestore-servers.ts';
import { messageOf } from './bench.ts';
import { heldAs, newStream, patchOf } from '../../../shared/src/testing/stream-samples.ts';
import { streamStoreContract } from '../../../shared/src/order/contract.ts';
import { deliveryContract } from '../../../shared/src/order/delivery-contract.ts';
import { firestoreStreams } from '../../../shared/src/order/firestore.ts';
import { orderedDelivery } from '../../../shared/src/order/in-order.ts';
import { freshStream } from '../../../shared/src/order/stream-state.ts';
import type { StreamStore, StreamTransaction } from '../../../shared/src/order/stream-store.ts';

const FRESH = freshStream(1);
const NEW = { version: undefined, state: FRESH };

for (const [name, open] of firestoreServers('off')) {
  for (const contract of [streamStoreContract, deliveryContract]) {
    contract(name, async () => {
      const { firestore, close } = await open();
      return { store: firestoreStreams(firestore, { collection: 'test-streams' }), close };
    });
  }

  suite(`streams on ${name}`, () => {
    let opened: OpenedFirestore;
    before(async () => {
      opened = await open();
    });
    after(() => opened.close());

    test('a transaction reads inside itself what it decides by: the document, and the first held messages', async () => {
      // A server that locks documents exclusively would hide a read outside of the transaction: only this test would
      // notice.
      const store = firestoreStreams(opened.firestore);
      const ref = newStream();
      await store.commit(ref, NEW, { patch: patchOf({ readyAt: 1 }) });
      const reads = readsOf(opened.firestore);
      await store.transact(ref, async ({ read, held, commit }) => {
        await read();
        await held(1, 1);
        commit(FRESH, { patch: patchOf({ readyAt: null }) });
      });
      assert.deepEqual(reads(), ['batchGetDocuments in', 'runQuery in']);
    });

    test('a message in turn costs two writes and no read, and one ahead of its turn two writes', async () => {
      const streams = orderedDelivery(firestoreStreams(opened.firestore));
      const chain = compose(async () => ack(), [streams.middleware]);
      const context = contextFor(randomUUID());
      await chain(messageOf(1), context);
      const counted = countOperations(opened.firestore);
      for (let number = 2; number <= 11; number += 1)
        assert.equal((await chain(messageOf(number), context)).kind, 'ack');
      assert.deepEqual(counted(), { reads: 0, writes: 20 });
      const held = countOperations(opened.firestore);
      for (const number of [15, 14]) assert.deepEqual(await chain(messageOf(number), context), ack('held'));
      assert.equal(held().writes, 4);
    });

    test('a commit is one write for the document and each message, and nothing else', async () => {
      const store = firestoreStreams(opened.firestore);
      const ref = newStream();
      const version = await store.commit(ref, NEW, { patch: patchOf({}), create: [2, 3].map(heldAs) });
      const counted = countOperations(opened.firestore);
      const seen = { version, state: FRESH };
      await store.commit(ref, seen, { patch: patchOf({}), create: [heldAs(4)], remove: [2] });
      assert.deepEqual(counted(), { reads: 0, writes: 3 });
    });

    test('a process whose clock is behind, or jumps, finds what is due on the server’s clock', async () => {
      let behindMs = 3_600_000;
      const clock = { ...systemClock(), now: () => Date.now() - behindMs };
      const store = firestoreStreams(opened.firestore, { clock, collection: `order-${randomUUID()}` });
      const ref = newStream();
      const { nowMs } = await store.read(ref);
      await store.commit(ref, NEW, { patch: patchOf({ readyAt: nowMs - 1_000 }) });
      for (const jumped of [3_600_000, 7_200_000, -7_200_000]) {
        behindMs = jumped;
        const { streams } = await store.list(ref.consumer, { state: 'due', limit: 10 });
        assert.equal(streams.length, 1, `${jumped}`);
      }
    });

    test('times are spread over all shards, and another number of shards finds what fewer have written', async () => {
      const collection = `order-${randomUUID()}`;
      const [few, many] = [2, 16].map((shards) => firestoreStreams(opened.firestore, { collection, shards }));
      const { consumer, source } = newStream();
      const keys = Array.from({ length: 60 }, (_, index) => `k${index}`);
      for (const key of keys)
        await few?.commit({ consumer, source, key }, NEW, {
          patch: patchOf({ readyAt: 1, waitingSince: 1 }),
        });
      const group = opened.firestore.collectionGroup(`${collection}-streams`);
      const shardsOf = async (field: string): Promise<Set<string>> =>
        new Set((await group.get()).docs.map((found) => String(found.get(field)).slice(0, 3)));
      assert.deepEqual(await shardsOf('readyAt'), new Set(['00 ', '01 ']));
      const found: string[] = [];
      let page = await many?.list(consumer, { state: 'due', limit: 100 });
      while (page !== undefined && found.length <= 60) {
        found.push(...page.streams.map(({ ref }) => ref.key));
        const { next: after } = page;
        page =
          after === undefined ? undefined : await many?.list(consumer, { state: 'due', limit: 100, after });
      }
      assert.deepEqual(found.toSorted(), keys.toSorted());
      for (const key of keys) {
        const ref = { consumer, source, key };
        const { version, state = FRESH } = (await many?.read(ref)) ?? NEW;
        const patch = patchOf({ readyAt: 2, waitingSince: 2 });
        await many?.commit(ref, { version, state }, { patch });
      }
      for (const field of ['readyAt', 'waitingSince']) assert.ok((await shardsOf(field)).size > 10, field);
    });
  });
}

test('a server that is down gives STORE_UNAVAILABLE in time, and works once it is up', async () => {
  const port = await freePort();
  const firestore = clientOf(`127.0.0.1:${port}`);
  const transactions = followTransactions(firestore);
  const store = firestoreStreams(firestore, { callTimeout: '300ms', transactionTimeout: '400ms' });
  const ref = newStream();
  const calls = [
    store.read(ref),
    store.commit(ref, NEW, { patch: patchOf({ last: 1 }) }),
    store.transact(ref, ({ read }) => read()),
    store.held(ref, 1, 1),
    store.list('c', { state: 'due', limit: 1 }),
    store.count('c', 'any'),
    store.countHeld(ref),
  ];
  const all = async () => {
    const codes = await Promise.all(calls.map((call) => call.then(() => 'answered', codeOf)));
    assert.deepEqual(new Set(codes), new Set(['STORE_UNAVAILABLE']));
  };
  assert.ok((await turnsDuring(all)) < 5_000);
  // A client that is closed while it still retries has an unhandled rejection of its own: first it gets its answers.
  const server = await startFirestore({ port, clock: systemClock() });
  const { state } = await firestoreStreams(firestore, { callTimeout: '30s' }).read(ref);
  assert.equal(state?.epoch ?? null, null);
  await Promise.allSettled(transactions);
  await firestore.terminate();
  await server.close();
});

test('a transaction that was abandoned sends nothing more', async () => {
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
    const store = firestoreStreams(firestore, { transactionTimeout: '500ms' });
    await assert.rejects(store.transact(newStream(), advancing), { code: 'STORE_UNAVAILABLE' });
    const before = commits;
    await Promise.allSettled(transactions);
    assert.equal(commits, before);
  } finally {
    await close();
  }
});

test('W11: a commit that was applied although its reply was lost is refused as a repeat, and shows its ID', async () => {
  const { firestore, close } = await onLocalStack('off');
  type Call = (method: string, ...rest: unknown[]) => Promise<unknown>;
  const client = firestore as unknown as { request: Call };
  const { request } = client;
  let sent = 0;
  client.request = async (method, ...rest) => {
    const answer = await request.call(firestore, method, ...rest);
    if (method !== 'commit') return answer;
    sent += 1;
    if (sent === 1) throw Object.assign(new Error('made for a test'), { code: 14 });
    return answer;
  };
  try {
    const store: StreamStore = firestoreStreams(firestore);
    const ref = newStream();
    const patch = patchOf({ last: 1 });
    const version = await store.commit(ref, NEW, { patch, create: [heldAs(3)] }).catch(() => 'unknown');
    assert.ok(version === undefined || version === 'unknown', 'the client repeats by itself, or stops');
    assert.equal((await store.read(ref)).state?.commit, patch.commit);
    sent = 0;
    // A transaction whose commit was applied runs its work again, which finds its own ID.
    const mine = patchOf({ last: 2 });
    const runs: boolean[] = [];
    await store.transact(ref, async ({ read, commit }) => {
      const { state = FRESH } = await read();
      runs.push(state.commit === mine.commit);
      if (state.commit !== mine.commit) commit(state, { patch: mine });
    });
    assert.deepEqual([runs, (await store.read(ref)).state?.last], [[false, true], 2]);
  } finally {
    await close();
  }
});

test('invalid settings are refused by name', async () => {
  const firestore = clientOf('127.0.0.1:1');
  assert.throws(() => firestoreStreams(firestore, { maxAttempts: 0 }), /maxAttempts is 0/);
  for (const shards of [0, 1.5, 101, '4' as never]) {
    assert.throws(() => firestoreStreams(firestore, { shards }), /shards is .*; accepted: .*1 to 100/);
  }
  await firestore.terminate();
});

async function advancing({ read, commit }: StreamTransaction): Promise<void> {
  const { state = FRESH } = await read();
  commit(state, { patch: patchOf({ last: state.last + 1 }) });
}

const contextFor = (consumer: string): Context => ({
  consumer,
  source: 's',
  now: Date.now,
  deadline: performance.now() + 60_000,
  signal: new AbortController().signal,
  log: silent,
});

/** Every transaction that the client runs, also those that their caller has abandoned. */
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
