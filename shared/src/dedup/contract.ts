/**
 * What every claim store must do, as one suite over a factory. A lost reply is a call made twice, a late request is a
 * call made after its time: both are what clients that retry by themselves do to a store.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { ClaimAnswer, ClaimRequest, ClaimStore, HeldClaim } from './claim-store.ts';

export type ClaimStoreUnderTest = Readonly<{
  store: ClaimStore;
  /** Lets that much time pass on the store's clock. */
  pass(milliseconds: number): Promise<void>;
  /** Writes records that the store must not take for its own, each under the key given; answers with what they are. */
  plantUnrecognised?: readonly Readonly<{ what: string; plant(key: string): Promise<void> }>[];
  close(): Promise<void>;
}>;

/** Leases and retentions of the suite: short, since a real store's time cannot be moved, and long enough for a slow machine. */
const SHORT_MS = 150;
const LONG_MS = 60_000;

export function claimStoreContract(name: string, start: () => Promise<ClaimStoreUnderTest>): void {
  describe(`the claim store contract, ${name}`, () => {
    let subject: ClaimStoreUnderTest;
    let store: ClaimStore;
    before(async () => {
      subject = await start();
      store = subject.store;
    });
    after(() => subject.close());

    test('an absent key is claimed, by a token', async () => {
      const answer = await store.claim(request());
      assert.equal(answer.kind, 'claimed');
      assert.ok(answer.kind === 'claimed' && !answer.adopted && BigInt(answer.fencingToken) > 0n);
    });

    test('exactly one of sixteen concurrent owners gets the key', async () => {
      const key = newKey();
      const answers = await Promise.all(Array.from({ length: 16 }, () => store.claim(request({ key }))));
      const kinds = answers.map((answer) => answer.kind).sort();
      assert.deepEqual(kinds, ['claimed', ...Array<string>(15).fill('inProgress')]);
    });

    test('a running claim is in progress for every other delivery, whatever its data', async () => {
      const key = newKey();
      await claimed(store, request({ key }));
      for (const fingerprint of ['A', 'B']) {
        const answer = await store.claim(request({ key, fingerprint }));
        assert.ok(answer.kind === 'inProgress' && answer.remainingMs > 0 && answer.remainingMs <= LONG_MS);
      }
    });

    test('a completed record is a duplicate for the same data and a conflict for other data', async () => {
      const key = newKey();
      const { held } = await claimed(store, request({ key, fingerprint: 'A', messageId: '17' }));
      assert.equal(await store.complete(held), 'completed');
      const same = await store.claim(request({ key, fingerprint: 'A', messageId: '18' }));
      assert.deepEqual(same, { kind: 'duplicate', fingerprint: 'A', messageId: '17' });
      const other = await store.claim(request({ key, fingerprint: 'B', messageId: '19' }));
      assert.deepEqual(other, { kind: 'conflict', fingerprint: 'A', messageId: '17' });
    });

    test('a released key is free at once, and its next token is greater', async () => {
      const key = newKey();
      const first = await claimed(store, request({ key }));
      await store.release(first.held);
      const second = await claimed(store, request({ key }));
      assert.deepEqual([second.adopted, second.recovered], [false, undefined]);
      assert.ok(BigInt(second.fencingToken) > BigInt(first.fencingToken));
    });

    test('an expired claim is taken over, and its old holder loses everything but its finished work', async () => {
      const key = newKey();
      const first = await claimed(store, request({ key, leaseMs: SHORT_MS }));
      await subject.pass(SHORT_MS * 2);
      const second = await claimed(store, request({ key }));
      assert.ok(BigInt(second.fencingToken) > BigInt(first.fencingToken));
      assert.deepEqual([first.recovered, second.recovered], [undefined, true]);
      assert.deepEqual(await store.renew(first.held, 1), { kind: 'lost' });
      await store.release(first.held);
      assert.equal((await store.claim(request({ key }))).kind, 'inProgress');
      assert.equal(await store.complete(first.held), 'stolen');
      assert.equal((await store.claim(request({ key }))).kind, 'inProgress');
      assert.equal(await store.complete(second.held), 'completed');
    });

    test('an expired claim is left to a delivery with time for the handler', async () => {
      const key = newKey();
      await claimed(store, request({ key, leaseMs: SHORT_MS }));
      await subject.pass(SHORT_MS * 2);
      const answer = await store.claim(request({ key, mayTakeOver: false }));
      assert.deepEqual(answer, { kind: 'inProgress', remainingMs: 0 });
      assert.equal((await claimed(store, request({ key }))).recovered, true);
    });

    test('its own owner takes an expired claim anew, which is no recovery', async () => {
      const asked = request({ leaseMs: SHORT_MS });
      await claimed(store, asked);
      await subject.pass(SHORT_MS * 2);
      assert.equal((await claimed(store, asked)).recovered, undefined);
    });

    test('a renewed claim outlives its first lease', async () => {
      const leaseMs = SHORT_MS * 4;
      // A renewal that this process asks for too late shows nothing: then another claim is renewed.
      for (let isTimely = false; !isTimely; ) {
        const key = newKey();
        let [asked, longestMs] = [performance.now(), 0];
        const inTurn = async <Answer>(call: () => Promise<Answer>): Promise<Answer> => {
          const before = asked;
          asked = performance.now();
          const answer = await call();
          longestMs = Math.max(longestMs, performance.now() - before);
          return answer;
        };
        let { held } = await inTurn(() => claimed(store, request({ key, leaseMs })));
        const answers: unknown[] = [];
        for (const nonce of [1, 2, 3]) {
          await subject.pass(SHORT_MS * 2);
          const answer = await inTurn(() => store.renew(held, nonce));
          answers.push(answer.kind === 'renewed' && answer.nonce === nonce);
          if (answer.kind === 'renewed') held = answer.held;
        }
        answers.push((await inTurn(() => store.claim(request({ key })))).kind);
        isTimely = longestMs < leaseMs;
        if (!isTimely) continue;
        assert.deepEqual(answers, [true, true, true, 'inProgress']);
        assert.equal(await store.complete(held), 'completed');
      }
    });

    test('one completes a claim of its own that expired but was not taken', async () => {
      const key = newKey();
      const { held } = await claimed(store, request({ key, leaseMs: SHORT_MS }));
      await subject.pass(SHORT_MS * 2);
      assert.equal(await store.complete(held), 'completed');
      assert.equal((await store.claim(request({ key }))).kind, 'duplicate');
    });

    test('one completes a claim of its own that was taken and released again', async () => {
      const key = newKey();
      const first = await claimed(store, request({ key, leaseMs: SHORT_MS }));
      await subject.pass(SHORT_MS * 2);
      await store.release((await claimed(store, request({ key }))).held);
      assert.equal(await store.complete(first.held), 'completed');
      assert.equal((await store.claim(request({ key }))).kind, 'duplicate');
    });

    test('a completed record counts for the retention and not longer, still there or not', async () => {
      const key = newKey();
      const first = await claimed(store, request({ key, retentionMs: SHORT_MS }));
      await store.complete(first.held);
      await subject.pass(SHORT_MS * 2);
      const again = await claimed(store, request({ key, fingerprint: 'B', retentionMs: SHORT_MS }));
      assert.ok(BigInt(again.fencingToken) > BigInt(first.fencingToken));
      assert.equal(again.recovered, undefined);
      assert.equal(await store.complete(again.held), 'completed');
    });

    test('the same owner whose reply was lost gets its own claim again, with the same token', async () => {
      const asked = request();
      const first = await claimed(store, asked);
      const again = await claimed(store, asked);
      assert.deepEqual([again.adopted, again.fencingToken], [true, first.fencingToken]);
      assert.equal(await store.complete(again.held), 'completed');
    });

    test('an adopted claim does not run longer for it', async () => {
      const asked = request({ leaseMs: SHORT_MS * 2 });
      await claimed(store, asked);
      await subject.pass(SHORT_MS);
      await claimed(store, asked);
      await subject.pass(SHORT_MS * 1.5);
      assert.equal((await claimed(store, request({ key: asked.key }))).adopted, false);
    });

    test('a renewal whose reply was lost is found by the next, which says whose time counts', async () => {
      const { held } = await claimed(store, request());
      await store.renew(held, 1);
      const second = await store.renew(held, 2);
      assert.ok(second.kind === 'renewed' && (second.nonce === 1 || second.nonce === 2));
      const third = await store.renew(second.held, 3);
      assert.ok(third.kind === 'renewed' && third.nonce === 3);
    });

    test('a claim renewed behind the back of its holder is still completed and released', async () => {
      const one = await claimed(store, request());
      await store.renew(one.held, 1);
      assert.equal(await store.complete(one.held), 'completed');
      const other = await claimed(store, request());
      await store.renew(other.held, 1);
      await store.release(other.held);
      assert.equal((await store.claim(request({ key: other.held.request.key }))).kind, 'claimed');
    });

    test('a completion whose reply was lost succeeds again', async () => {
      const { held } = await claimed(store, request());
      assert.equal(await store.complete(held), 'completed');
      assert.equal(await store.complete(held), 'completed');
    });

    test('O6: a release after a completion leaves the completed record', async () => {
      const { held } = await claimed(store, request());
      await store.complete(held);
      await store.release(held);
      assert.equal((await store.claim(request({ key: held.request.key }))).kind, 'duplicate');
    });

    test('O7: a late renewal leaves the completed record its whole retention', async () => {
      const { held } = await claimed(store, request({ leaseMs: SHORT_MS }));
      await store.complete(held);
      assert.deepEqual(await store.renew(held, 1), { kind: 'lost' });
      await subject.pass(SHORT_MS * 2);
      assert.equal((await store.claim(request({ key: held.request.key }))).kind, 'duplicate');
    });

    test('a late claim meets a completed record and changes nothing', async () => {
      const asked = request({ fingerprint: 'A' });
      const { held } = await claimed(store, asked);
      await store.complete(held);
      assert.equal((await store.claim(asked)).kind, 'duplicate');
      assert.equal((await store.claim(request({ key: asked.key, fingerprint: 'B' }))).kind, 'conflict');
    });

    test('O1: a late claim with other data is in progress, never a conflict, and lapses', async () => {
      for (const [leaseMs, kind] of [
        [LONG_MS, 'inProgress'],
        [SHORT_MS, 'claimed'],
      ] as const) {
        const key = newKey();
        const first = await claimed(store, request({ key, fingerprint: 'A' }));
        await store.release(first.held);
        await claimed(store, request({ key, fingerprint: 'B', leaseMs }));
        await subject.pass(SHORT_MS * 2);
        assert.equal((await store.claim(request({ key, fingerprint: 'A' }))).kind, kind);
      }
    });

    test('a key that is free is claimed without leave to take over; an unrecognised record stays untouched', async () => {
      const { held } = await claimed(store, request({ mayTakeOver: false }));
      await store.release(held);
      for (const { what, plant } of subject.plantUnrecognised ?? []) {
        const key = newKey();
        await plant(key);
        for (let time = 0; time < 2; time += 1) {
          assert.equal((await store.claim(request({ key }))).kind, 'unrecognised', what);
        }
        const own: HeldClaim = { request: request({ key }), revision: held.revision };
        assert.deepEqual(await store.renew(own, 1), { kind: 'lost' }, what);
        assert.equal(await store.complete(own), 'stolen', what);
        await store.release(own);
        assert.equal((await store.claim(request({ key }))).kind, 'unrecognised', what);
      }
    });
  });
}

let made = 0;
const newKey = (): string => `key-${process.pid}-${Date.now()}-${(made += 1)}`;

/** Of a new owner, on a new key unless one is given. */
export function request(fields: Partial<ClaimRequest> = {}): ClaimRequest {
  made += 1;
  return {
    key: newKey(),
    owner: `owner-${made}`,
    fingerprint: 'A',
    messageId: String(made),
    leaseMs: LONG_MS,
    retentionMs: LONG_MS,
    mayTakeOver: true,
    ...fields,
  };
}

export async function claimed(
  store: ClaimStore,
  asked: ClaimRequest,
): Promise<Extract<ClaimAnswer, { kind: 'claimed' }>> {
  const answer = await store.claim(asked);
  assert.ok(answer.kind === 'claimed', `expected to get the claim, not ${JSON.stringify(answer)}`);
  return answer;
}
