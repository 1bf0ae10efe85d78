/**
 * The counters' contract in memory and on Firestore: on the local stack's server, and on the one that
 * TEST_FIRESTORE_EMULATOR_HOST names.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import type { Firestore } from '@google-cloud/firestore';
import { freePort, startFirestore } from 'pubsub-guarantees-emulator';
import { systemClock } from '../../../shared/src/clock.ts';
import { codeOf } from '../../../shared/src/errors.ts';
import { countOperations } from '../servers/firestore-client.ts';
import { clientOf, firestoreServers, type OpenedFirestore } from '../servers/firestore-servers.ts';
import { counterContract } from '../../../shared/src/sequence/contract.ts';
import { firestoreCounters } from '../../../shared/src/sequence/firestore.ts';
import { memoryCounters } from '../../../shared/src/sequence/memory.ts';
import { sequencer } from '../../../shared/src/sequence/sequencer.ts';

counterContract('memory', async () => ({ counters: memoryCounters(), close: async () => undefined }));

for (const [name, open] of firestoreServers('off')) {
  counterContract(name, async () => {
    const { firestore, close } = await open();
    return {
      counters: firestoreCounters(firestore, { collection: 'test-counters', maxAttempts: 20 }),
      close,
    };
  });

  suite(`counters on ${name}`, () => {
    let opened: OpenedFirestore;
    before(async () => {
      opened = await open();
    });
    after(() => opened.close());

    test('20 parallel callers take their numbers in few transactions, without a hole', async () => {
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

    test('B3: numbers whose reply was lost are not skipped when the repeats meet other publishers', async () => {
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
  });
}

test('a server that is down gives STORE_UNAVAILABLE in time, and works once it is up', async () => {
  const port = await freePort();
  const firestore = clientOf(`127.0.0.1:${port}`);
  const running: Promise<unknown>[] = [];
  const run = firestore.runTransaction.bind(firestore);
  firestore.runTransaction = (...args) => {
    const transaction = run(...args);
    running.push(transaction);
    return transaction as never;
  };
  const request = { id: 'i', count: 1, epoch: 'e' };
  const short = { callTimeout: '300ms', transactionTimeout: '400ms' } as const;
  const taking = firestoreCounters(firestore, short).take('k', request);
  assert.equal(await taking.then(() => 'answered', codeOf), 'STORE_UNAVAILABLE');
  const server = await startFirestore({ port, clock: systemClock() });
  const patient = { callTimeout: '30s', transactionTimeout: '60s' } as const;
  await firestoreCounters(firestore, patient).take('other', request);
  // A client that is closed while it still retries has an unhandled rejection of its own: first it gets its answers.
  await Promise.allSettled(running);
  await firestore.terminate();
  await server.close();
});

test('invalid settings are refused by name', async () => {
  const firestore = clientOf('127.0.0.1:1');
  assert.throws(() => firestoreCounters(firestore, { callTimeout: '1x' as never }), /callTimeout/);
  await firestore.terminate();
});

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
