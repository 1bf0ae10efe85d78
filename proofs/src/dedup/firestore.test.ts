import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type DocumentData, FieldValue, Firestore, Timestamp } from '@google-cloud/firestore';
import { startFirestore, turnsDuring } from 'pubsub-guarantees-emulator';
import { systemClock } from '../../../shared/src/clock.ts';
import { codeOf, storeUnavailable } from '../../../shared/src/errors.ts';
import { compose } from '../../../shared/src/handler.ts';
import { ack } from '../../../shared/src/outcome.ts';
import type { ClaimStore } from '../../../shared/src/dedup/claim-store.ts';
import { claimed, claimStoreContract, request } from '../../../shared/src/dedup/contract.ts';
import { dedup } from '../../../shared/src/dedup/dedup.ts';
import { isWriteRefused } from '../../../shared/src/firestore/errors.ts';
import { firestoreClaims } from '../../../shared/src/dedup/firestore.ts';
import { aContext, aMessage } from '../../../shared/src/testing/deliveries.ts';

type Server = Readonly<{ address: string; close(): Promise<void> }>;

// The client looks for Google's metadata server even when it talks to an emulator, and warns that there is none.
process.env['METADATA_SERVER_DETECTION'] ??= 'none';

const COLLECTION = 'test-claims';
const DAY_MS = 86_400_000;
const farOff = Timestamp.fromMillis(Date.UTC(9999, 11, 31));

const connect = (server: Server): Firestore => {
  const [host = '', port] = server.address.split(':');
  return new Firestore({ projectId: 'demo-project', host, port: Number(port), ssl: false });
};

/** Counts what goes out: every write of the client is a `commit`, every get a `batchGetDocuments`. */
function countRequests(firestore: Firestore): { commits: number; gets: number } {
  const counts = { commits: 0, gets: 0 };
  type Send = (method: string, ...rest: unknown[]) => unknown;
  const internals = firestore as unknown as { request: Send; requestStream: Send };
  const { request: send, requestStream: stream } = internals;
  internals.request = (method, ...rest) => {
    if (method === 'commit') counts.commits += 1;
    return send.call(firestore, method, ...rest);
  };
  internals.requestStream = (method, ...rest) => {
    if (method === 'batchGetDocuments') counts.gets += 1;
    return stream.call(firestore, method, ...rest);
  };
  return counts;
}

const unavailable = (error: unknown): boolean => codeOf(error) === 'STORE_UNAVAILABLE';

function suite(name: string, start: () => Promise<Server>): void {
  const open = async () => {
    const server = await start();
    const firestore = connect(server);
    const close = async (): Promise<void> => {
      await firestore.terminate();
      await server.close();
    };
    // A call is waited for: on a busy machine an answer is late although the store is there.
    const store = firestoreClaims(firestore, { collection: COLLECTION, callTimeout: '60s' });
    return { server, firestore, store, close };
  };
  /** A claimed record as this version writes it, with changes. */
  const record = (changes: DocumentData = {}): DocumentData => ({
    v: 1,
    state: 'claimed',
    owner: 'another',
    fingerprint: 'A',
    messageId: '7',
    leaseMs: 60_000,
    nonce: 0,
    claimedAt: FieldValue.serverTimestamp(),
    expiresAt: Timestamp.fromMillis(Date.now() + DAY_MS),
    ...changes,
  });

  claimStoreContract(name, async () => {
    const { firestore, store, close } = await open();
    const plant = (changes: DocumentData) => async (key: string) => {
      await firestore.collection(COLLECTION).doc(key).set(record(changes));
    };
    return {
      store,
      close,
      pass: (ms) => pause(ms),
      plantUnrecognised: [
        { what: 'another version', plant: plant({ v: 2 }) },
        { what: 'no expiry', plant: plant({ expiresAt: null }) },
        { what: 'an expiry that is a number', plant: plant({ expiresAt: Date.now() + DAY_MS }) },
        { what: 'a state of its own', plant: plant({ state: 'pending' }) },
        { what: 'a field of another type', plant: plant({ leaseMs: '60000' }) },
        { what: 'a lease of no length', plant: plant({ leaseMs: 0 }) },
        { what: 'a claim from the future', plant: plant({ claimedAt: farOff }) },
        { what: 'done in the future', plant: plant({ state: 'done', doneAt: farOff }) },
      ],
    };
  });

  describe(`claims in ${name}`, () => {
    let server: Server;
    let firestore: Firestore;
    let store: ClaimStore;
    let close: () => Promise<void>;
    before(async () => {
      ({ server, firestore, store, close } = await open());
    });
    after(() => close());
    const stored = async (key: string): Promise<DocumentData> =>
      (await firestore.collection(COLLECTION).doc(key).get()).data() ?? {};

    test('a fresh message costs two writes and no read, a duplicate a failed create and one read', async () => {
      const own = connect(server);
      const counts = countRequests(own);
      const clock = systemClock();
      const deliver = compose(async () => ack(), [dedup(firestoreClaims(own), { clock })]);
      const message = aMessage(`cost-${Date.now()}`);
      try {
        assert.deepEqual(await deliver(message, aContext(clock)), ack());
        assert.deepEqual(counts, { commits: 2, gets: 0 });
        assert.deepEqual(await deliver(message, aContext(clock)), ack('duplicate'));
        assert.deepEqual(counts, { commits: 3, gets: 1 });
      } finally {
        await own.terminate();
      }
    });

    test('B34, O5: expiresAt is a timestamp a day beyond the retention; the times are the server’s', async () => {
      const asked = request({ retentionMs: 8 * DAY_MS });
      const { held, fencingToken } = await claimed(store, asked);
      const { updateTime } = await firestore.collection(COLLECTION).doc(asked.key).get();
      assert.ok(updateTime);
      const micros = BigInt(updateTime.seconds) * 1_000_000n + BigInt(updateTime.nanoseconds) / 1_000n;
      assert.equal(fencingToken, String(micros), 'whole microseconds of the claim’s commit');
      const before_ = await stored(asked.key);
      assert.ok(before_['claimedAt'] instanceof Timestamp && before_['expiresAt'] instanceof Timestamp);
      assert.ok(Math.abs(before_['expiresAt'].toMillis() - Date.now() - 9 * DAY_MS) < 60_000);
      await store.complete(held);
      const done = await stored(asked.key);
      assert.deepEqual([done['v'], done['state'], done['owner']], [1, 'done', asked.owner]);
      assert.ok(done['doneAt'] instanceof Timestamp && done['expiresAt'] instanceof Timestamp);
    });

    test('B34: a record past its retention that is still there is overwritten whole', async () => {
      const asked = request();
      const old = record({ state: 'done', doneAt: Timestamp.fromMillis(Date.now() - 120_000), extra: 1 });
      await firestore.collection(COLLECTION).doc(asked.key).set(old);
      await claimed(store, asked);
      const now = await stored(asked.key);
      assert.deepEqual([now['state'], now['owner'], now['doneAt']], ['claimed', asked.owner, undefined]);
    });

    for (const [how, hours] of [
      ['slow', -6],
      ['fast', 6],
    ] as const) {
      test(`O5: a worker whose clock is hours ${how} neither loses a record early nor takes a live claim`, async () => {
        const system = systemClock();
        const wrong = { ...system, now: () => system.now() + hours * 3_600_000 };
        const skewed = firestoreClaims(firestore, { collection: COLLECTION, clock: wrong });
        const asked = request({ retentionMs: 3_600_000 });
        const { held } = await claimed(skewed, asked);
        assert.ok(((await stored(asked.key))['expiresAt'] as Timestamp).toMillis() > Date.now() + 3_600_000);
        assert.equal((await skewed.claim(request({ key: asked.key }))).kind, 'inProgress');
        await skewed.complete(held);
        const again = await skewed.claim(request({ key: asked.key, retentionMs: 3_600_000 }));
        assert.equal(again.kind, 'duplicate');
      });
    }

    test('B53: 300 duplicates of a completed message at once are 300 acks and no run', async () => {
      const clock = systemClock();
      let runs = 0;
      // The official emulator needs longer than the usual bound for so many at once.
      const patient = firestoreClaims(firestore, { collection: COLLECTION, callTimeout: '30s' });
      const deliver = compose(async () => {
        runs += 1;
        return ack();
      }, [dedup(patient, { clock })]);
      const message = aMessage(`burst-${Date.now()}`);
      await deliver(message, aContext(clock));
      const outcomes = await Promise.all(
        Array.from({ length: 300 }, () => deliver(message, aContext(clock))),
      );
      assert.ok(outcomes.every((outcome) => outcome.kind === 'ack' && outcome.reason === 'duplicate'));
      assert.equal(runs, 1);
    });

    test('B47: sixteen parallel deliveries of one message are one run', async () => {
      const clock = systemClock();
      let runs = 0;
      const deliver = compose(async () => {
        runs += 1;
        await pause(50);
        return ack();
      }, [dedup(store, { clock })]);
      const message = aMessage(`parallel-${Date.now()}`);
      const outcomes = await Promise.all(Array.from({ length: 16 }, () => deliver(message, aContext(clock))));
      assert.ok(outcomes.every((outcome) => outcome.kind === 'ack'));
      assert.equal(runs, 1);
    });
  });
}

suite('the local stack’s Firestore', () => startFirestore({ clock: systemClock() }));

const official = process.env['TEST_FIRESTORE_EMULATOR_HOST'];
if (official === undefined) {
  test('claims in another Firestore', { skip: 'TEST_FIRESTORE_EMULATOR_HOST is not set' }, () => {});
} else {
  suite(`Firestore at ${official}`, async () => ({ address: official, close: async () => {} }));
}

test('a Firestore that is down is unavailable within the bound, and the late claim is its owner’s', async () => {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, 'close');
  const firestore = connect({ address: `127.0.0.1:${port}`, close: async () => {} });
  const asked = request();
  const { claim } = firestoreClaims(firestore, { callTimeout: '300ms' });
  assert.ok((await turnsDuring(() => assert.rejects(claim(asked), unavailable))) < 3_000);
  // The client goes on trying by itself, so its request arrives when the server is back.
  const server = await startFirestore({ port, clock: systemClock() });
  const store = firestoreClaims(firestore, { callTimeout: '10s' });
  assert.equal((await claimed(store, asked)).held.request.owner, asked.owner);
  assert.equal((await store.claim(request({ key: asked.key }))).kind, 'inProgress');
  await firestore.terminate();
  await server.close();
});

test('B12: codes 5, 6, 9 and 10 are looked into; every other error leaves the outcome unknown', () => {
  const withCode = (code: unknown): Error => Object.assign(new Error('text does not matter'), { code });
  for (const code of [5, 6, 9, 10]) assert.equal(isWriteRefused(withCode(code)), true, `code ${code}`);
  for (const code of [1, 2, 3, 4, 7, 8, 12, 13, 14, 16, '6', undefined])
    assert.equal(isWriteRefused(withCode(code)), false, `code ${String(code)}`);
  assert.equal(isWriteRefused(storeUnavailable('ALREADY_EXISTS')), false);
});
