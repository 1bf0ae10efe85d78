/**
 * What every payload store must do, as one suite over a factory. A lost reply is a call made twice, a crash is a call
 * that is not made: both are what happens to a stage and a republisher.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { hashOf } from '../hash.ts';
import { GRACE_MS, KEEP_MS, type PayloadRef, type PayloadStore, REPEAT_MARGIN_MS } from './payload-store.ts';

export type PayloadStoreUnderTest = Readonly<{
  store: PayloadStore;
  /** The time that the store goes by, in milliseconds since the epoch. */
  now(): number;
  /** Moves it. */
  pass(milliseconds: number): void;
  /** Bytes of content that are kept, whether they can be had or not. */
  storedBytes(): Promise<number>;
  close(): Promise<void>;
}>;

const DAY_MS = 86_400_000;
const signal = new AbortController().signal;
const code = (name: string) => ({ code: name });

/** Bytes that are no UTF-8, and that differ from place to place, so that chunks in another order are seen. */
export function bytesOf(length: number): Buffer {
  const bytes = Buffer.alloc(length, Buffer.from([0x00, 0xff, 0xfe, 0x80, 0xc3, 0x28]));
  for (let at = 0; at + 4 <= length; at += 1_000) bytes.writeUInt32LE(at, at);
  return bytes;
}

export function payloadStoreContract(name: string, start: () => Promise<PayloadStoreUnderTest>): void {
  describe(`the payload store contract, ${name}`, () => {
    let subject: PayloadStoreUnderTest;
    let store: PayloadStore;
    before(async () => {
      subject = await start();
      store = subject.store;
    });
    after(() => subject.close());

    const put = (content: Uint8Array, neededInMs = 0, owner: string = randomUUID()): Promise<PayloadRef> =>
      store.put(owner, content, subject.now() + neededInMs);

    /** What earlier tests have marked as done is gone. */
    const settled = async (): Promise<void> => {
      subject.pass(GRACE_MS + 1);
      await store.sweep({ signal });
    };

    test('every byte comes back, whatever the length', async () => {
      for (const length of [0, 1, 900_000, 900_001, 7_200_000, 10_150_000]) {
        const content = bytesOf(length);
        const ref = await put(content);
        assert.equal(ref.bytes, length);
        assert.equal(ref.digest, hashOf(content));
        const back = await store.get(ref);
        assert.ok(content.equals(back), `${length} bytes`);
        await store.done(ref);
      }
    });

    test('a view into a larger buffer is stored as the view', async () => {
      const larger = bytesOf(2_000_000);
      const ref = await put(larger.subarray(500_000, 1_500_000));
      assert.ok(larger.subarray(500_000, 1_500_000).equals(await store.get(ref)));
    });

    test('the same owner and content give the same ref, also at the same time; others never share one', async () => {
      const [owner, content] = [randomUUID(), bytesOf(2_000)];
      const refs = await Promise.all([
        put(content, 0, owner),
        put(content, 0, owner),
        put(content, DAY_MS, owner),
      ]);
      assert.deepEqual(refs[1], refs[0]);
      assert.deepEqual(refs[2], refs[0]);
      const other = await put(content);
      const changed = await put(bytesOf(2_001), 0, owner);
      assert.equal(new Set([refs[0], other, changed].map((ref) => ref?.id)).size, 3);
      await store.done(other);
      assert.ok(content.equals(await store.get(refs[0] as PayloadRef)));
      assert.equal((await store.get(changed)).length, 2_001);
    });

    test('what is not there is missing, what is not what the ref says is damaged', async () => {
      const ref = await put(bytesOf(2_000));
      await assert.rejects(store.get({ ...ref, id: hashOf('nowhere') }), code('PAYLOAD_MISSING'));
      await assert.rejects(store.get({ ...ref, digest: hashOf('other') }), code('PAYLOAD_DAMAGED'));
      await assert.rejects(store.get({ ...ref, bytes: 1_999 }), code('PAYLOAD_DAMAGED'));
    });

    test('done differs from missing, also once the content is gone; done twice is as once', async () => {
      await settled();
      const ref = await put(bytesOf(1_000_000), 10 * DAY_MS);
      const kept = await subject.storedBytes();
      await store.done(ref);
      await assert.rejects(store.get(ref), code('PAYLOAD_DONE'));
      subject.pass(GRACE_MS / 2);
      await store.done(ref);
      await store.sweep({ signal });
      assert.equal(await subject.storedBytes(), kept);
      subject.pass(GRACE_MS / 2 + 1);
      assert.ok((await store.sweep({ signal })).done > 0);
      assert.equal(await subject.storedBytes(), kept - 1_000_000);
      subject.pass(KEEP_MS - 2 * DAY_MS);
      await store.sweep({ signal });
      await assert.rejects(store.get(ref), code('PAYLOAD_DONE'));
      subject.pass(2 * DAY_MS);
      await store.sweep({ signal });
      await assert.rejects(store.get(ref), code('PAYLOAD_MISSING'));
      await store.done(ref);
      await assert.rejects(store.get(ref), code('PAYLOAD_MISSING'));
    });

    test('what is put again after it was done is there again, whether its content was still there or not', async () => {
      const [owner, content] = [randomUUID(), bytesOf(1_000_000)];
      // Another process may be behind: the mark counts, not the time.
      for (const pause of [-2_000, 0, GRACE_MS + 1, KEEP_MS + GRACE_MS + 1]) {
        const ref = await put(content, 0, owner);
        assert.ok(content.equals(await store.get(ref)), `after ${pause} ms`);
        await store.done(ref);
        subject.pass(pause);
        await store.sweep({ signal });
        assert.deepEqual(await put(content, 0, owner), ref);
        assert.ok(content.equals(await store.get(ref)), `after ${pause} ms, again`);
      }
    });

    test('the sweep leaves what is needed, and ends what was never asked for', async () => {
      const near = await put(bytesOf(1_000));
      const far = await put(bytesOf(1_001), 3_650 * DAY_MS);
      subject.pass(KEEP_MS - 1);
      await store.sweep({ signal });
      assert.equal((await store.get(near)).length, 1_000);
      subject.pass(REPEAT_MARGIN_MS + 2);
      await store.sweep({ signal });
      await assert.rejects(store.get(near), code('PAYLOAD_MISSING'));
      assert.equal((await store.get(far)).length, 1_001);
      subject.pass(3_649 * DAY_MS);
      await store.sweep({ signal });
      assert.equal((await store.get(far)).length, 1_001);
      subject.pass(2 * DAY_MS + 2);
      await store.sweep({ signal });
      await assert.rejects(store.get(far), code('PAYLOAD_MISSING'));
      assert.equal(await subject.storedBytes(), 0);
    });

    test('a repeat for a later time keeps it for longer', async () => {
      const [owner, content] = [randomUUID(), bytesOf(1_000)];
      const ref = await put(content, 0, owner);
      await put(content, 100 * DAY_MS, owner);
      subject.pass(100 * DAY_MS + KEEP_MS - 1);
      await store.sweep({ signal });
      assert.ok(content.equals(await store.get(ref)));
    });

    test('many expired payloads are removed in one sweep, and none beside them', async () => {
      await settled();
      const before = await subject.storedBytes();
      const refs = await Promise.all(Array.from({ length: 105 }, (_, n) => put(bytesOf(100 + n))));
      await Promise.all(refs.slice(1).map((ref) => store.done(ref)));
      subject.pass(GRACE_MS + 1);
      assert.equal((await store.sweep({ signal })).failed, 0);
      assert.equal(await subject.storedBytes(), before + 100);
    });
  });
}
