/**
 * The contracts on Firestore: on the local stack's server, and on the one that TEST_FIRESTORE_EMULATOR_HOST names.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:net';
import { after, before, suite, test } from 'node:test';
import { Firestore } from '@google-cloud/firestore';
import { startFirestore } from 'pubsub-guarantees-emulator';
import { systemClock } from '../clock.ts';
import { codeOf } from '../errors.ts';
import { compose, type Context } from '../handler.ts';
import { silent } from '../log.ts';
import { ack } from '../outcome.ts';
import { orderContract } from './contract.ts';
import { counterContract } from './counters.contract.ts';
import { firestoreCounters, firestoreOrder } from './firestore.ts';
import { inOrder } from './in-order.ts';
import { freshKey } from './key-state.ts';
import { sequencer } from './sequencer.ts';
import { sweepOrder } from './sweep.ts';
import { messageOf } from './testing/bench.ts';

type Opened = Readonly<{ firestore: Firestore; close(): Promise<void> }>;

/** The client reads the variable when it is made; there is no metadata server to look for. */
function clientOf(address: string): Firestore {
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  process.env['FIRESTORE_EMULATOR_HOST'] = address;
  return new Firestore({ projectId: 'test-project' });
}

async function onLocalStack(): Promise<Opened> {
  const faults: string[] = [];
  const server = await startFirestore({ clock: systemClock(), log: (line) => faults.push(line) });
  const firestore = clientOf(server.address);
  const close = async (): Promise<void> => {
    await firestore.terminate();
    await server.close();
    assert.deepEqual(faults, []);
  };
  return { firestore, close };
}

const servers: [string, () => Promise<Opened>][] = [['Firestore of the local stack', onLocalStack]];
const given = process.env['TEST_FIRESTORE_EMULATOR_HOST'];
if (given !== undefined) {
  servers.push([
    `Firestore at ${given}`,
    async () => {
      const firestore = clientOf(given);
      return { firestore, close: () => firestore.terminate() };
    },
  ]);
}

for (const [name, open] of servers) {
  orderContract(name, async () => {
    const { firestore, close } = await open();
    return { store: firestoreOrder(firestore, { collection: 'test-order' }), close };
  });
  counterContract(name, async () => {
    const { firestore, close } = await open();
    return {
      counters: firestoreCounters(firestore, { collection: 'test-counters', maxAttempts: 20 }),
      close,
    };
  });

  suite(`order on ${name}`, () => {
    let opened: Opened;
    before(async () => {
      opened = await open();
    });
    after(() => opened.close());

    test('a message in its turn costs three reads and two writes', async () => {
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
      assert.deepEqual([reads / messages, writes / messages], [3, 2]);
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

    test('a key in another format is reported by the sweep and does not hide the others', async () => {
      const clock = systemClock();
      const collection = `order-${randomUUID()}`;
      const store = firestoreOrder(opened.firestore, { collection });
      const consumer = randomUUID();
      const base = freshKey(1);
      await store.write({ consumer, key: 'old' }, { version: undefined, base }, { readyAt: 1 });
      await store.write({ consumer, key: 'new' }, { version: undefined, base }, { readyAt: 2 });
      const keys = await opened.firestore
        .collectionGroup(`${collection}-keys`)
        .where('key', '==', 'old')
        .get();
      await keys.docs[0]?.ref.update({ v: 99 });
      await assert.rejects(store.read({ consumer, key: 'old' }), { code: 'UNREADABLE_STATE' });
      const result = await sweepOrder(store, { clock }, async () => ack())(contextFor(consumer));
      assert.deepEqual(result, { ready: 2, taken: 1, drained: 0, failed: 1 });
    });
  });
}

test('a server that is down gives STORE_UNAVAILABLE in time, and works once it is up', async () => {
  const port = await freePort();
  const firestore = clientOf(`127.0.0.1:${port}`);
  const short = { callTimeout: '300ms', transactionTimeout: '400ms' } as const;
  const store = firestoreOrder(firestore, short);
  const ref = { consumer: 'c', key: 'k' };
  const base = freshKey(1);
  const calls = [
    store.read(ref),
    store.write(ref, { version: undefined, base }, { last: 1 }),
    store.transact(ref, base, { number: 1 }, () => ({ result: undefined })),
    store.held(ref, 1, 1),
    store.ready('c', 1),
    firestoreCounters(firestore, short).take('k', { id: 'i', count: 1, epoch: 'e' }),
  ];
  const started = performance.now();
  const codes = await Promise.all(calls.map((call) => call.then(() => 'answered', codeOf)));
  assert.deepEqual(new Set(codes), new Set(['STORE_UNAVAILABLE']));
  assert.ok(performance.now() - started < 5_000);
  // Ending a client that still tries would be an unhandled rejection of its own: first it gets its answers.
  const server = await startFirestore({ port, clock: systemClock() });
  assert.equal(
    (await firestoreOrder(firestore, { callTimeout: '30s' }).read(ref)).state?.epoch ?? null,
    null,
  );
  await firestore.terminate();
  await server.close();
});

test('invalid settings are refused by name', async () => {
  const firestore = clientOf('127.0.0.1:1');
  assert.throws(() => firestoreOrder(firestore, { maxAttempts: 0 }), /maxAttempts is 0/);
  assert.throws(() => firestoreCounters(firestore, { callTimeout: '1x' as never }), /callTimeout/);
  await firestore.terminate();
});

/** Counts what is billed, at the client's two ways to the server: documents read (a query at least one) and written. */
function countOperations(firestore: Firestore): () => { reads: number; writes: number } {
  const client = firestore as unknown as Record<
    'request' | 'requestStream',
    (method: string, ...rest: unknown[]) => Promise<unknown>
  >;
  const { request, requestStream } = client;
  let [reads, writes] = [0, 0];
  client.request = (method, ...rest) => {
    if (method === 'commit') writes += (rest[0] as { writes: unknown[] }).writes.length;
    return request.call(firestore, method, ...rest);
  };
  client.requestStream = (method, ...rest) => {
    const body = rest[1] as { documents?: unknown[] };
    // The queries of this test find nothing, which is billed as one read.
    reads += method === 'batchGetDocuments' ? (body.documents?.length ?? 0) : 1;
    return requestStream.call(firestore, method, ...rest);
  };
  return () => {
    Object.assign(client, { request, requestStream });
    return { reads, writes };
  };
}

const contextFor = (consumer: string): Context => ({
  consumer,
  source: 's',
  now: Date.now,
  deadline: performance.now() + 60_000,
  signal: new AbortController().signal,
  log: silent,
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : assert.fail('no port');
}
