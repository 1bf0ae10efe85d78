/**
 * Documents of another format, or that somebody else has written to: nothing is guessed, and nothing else is hidden.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import { FieldValue } from '@google-cloud/firestore';
import { systemClock } from '../clock.ts';
import { codeOf } from '../errors.ts';
import { compose, type Context } from '../handler.ts';
import { silent } from '../log.ts';
import { ack } from '../outcome.ts';
import { firestoreOrder } from './firestore.ts';
import { inOrder } from './in-order.ts';
import { freshKey } from './key-state.ts';
import { sweepOrder } from './sweep.ts';
import { messageOf } from './testing/bench.ts';
import { firestoreServers, type OpenedFirestore } from '../testing/firestore-servers.ts';

for (const [name, open] of firestoreServers('off')) {
  suite(`the formats of in-order delivery on ${name}`, () => {
    let opened: OpenedFirestore;
    before(async () => {
      opened = await open();
    });
    after(() => opened.close());

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
      assert.deepEqual(result, { ready: 2, taken: 1, drained: 0, failed: 1, repaired: 0, skipped: 0 });
    });

    test('a document that somebody else has written to is refused as a whole, and its message waits', async () => {
      const collection = `order-${randomUUID()}`;
      const store = firestoreOrder(opened.firestore, { collection });
      const clock = systemClock();
      const wrongs: Record<string, unknown>[] = [
        { last: '4' },
        { last: null },
        { last: -1 },
        { attempts: NaN },
        { owner: 7 },
        { leasedAt: 'now' },
        { leaseMs: null },
        { readyAt: 5 },
        { run: { number: 5 } },
        { skipped: [{ from: 1 }] },
        { ring: ['x'] },
        { epoch: 1 },
        { halted: true },
        { repairedAt: 7 },
      ];
      for (const wrong of wrongs) {
        const ref = { consumer: randomUUID(), key: 'k' };
        const chain = compose(async () => ack(), [inOrder(store, { clock })]);
        await chain(messageOf(1), contextFor(ref.consumer));
        const group = opened.firestore.collectionGroup(`${collection}-keys`);
        const [document] = (await group.where('consumer', '==', ref.consumer).get()).docs;
        await document?.ref.update(wrong);
        const outcome = await chain(messageOf(2), contextFor(ref.consumer));
        assert.equal(
          outcome.kind === 'retry' && codeOf(outcome.error),
          'UNREADABLE_STATE',
          JSON.stringify(wrong),
        );
        assert.deepEqual(await store.held(ref, 1, 10), []);
      }
    });

    test('a key of format version 1 is read and goes on; once it stands still, no reader of version 1 takes it', async () => {
      const collection = `order-${randomUUID()}`;
      const store = firestoreOrder(opened.firestore, { collection });
      const ref = { consumer: randomUUID(), key: 'k' };
      await store.write(ref, { version: undefined, base: freshKey(1) }, { last: 3, ring: ['a'] });
      const [document] = (await opened.firestore.collectionGroup(`${collection}-keys`).get()).docs;
      await document?.ref.update({ halted: FieldValue.delete(), repairedAt: FieldValue.delete() });
      assert.equal((await document?.ref.get())?.get('v'), 1);
      const { state, version } = await store.read(ref);
      assert.deepEqual([state?.last, state?.halted, state?.repairedAt], [3, null, null]);
      const halted = { code: 'BAD', text: '', atMs: 1 };
      await store.write(ref, { version, base: freshKey(1) }, { halted });
      assert.equal((await document?.ref.get())?.get('v'), 2);
      assert.deepEqual((await store.read(ref)).state?.halted, halted);
    });

    test('a page that no list has answered is refused', async () => {
      const store = firestoreOrder(opened.firestore);
      for (const after of ['x', '', Buffer.from('["a/b"]').toString('base64url')]) {
        await assert.rejects(
          store.list('c', { state: 'any', limit: 1, after }),
          /no[nt]e? .*page|page is none/,
        );
      }
    });

    test('a held message in another form stops its key visibly, and runs once it is mended', async () => {
      const collection = `order-${randomUUID()}`;
      const store = firestoreOrder(opened.firestore, { collection });
      const settings = { clock: systemClock(), lease: '1s' } as const;
      const context = contextFor(randomUUID());
      const chain = compose(async () => ack(), [inOrder(store, settings)]);
      await chain(messageOf(2), context);
      const [held] = (await opened.firestore.collectionGroup(`${collection}-held`).get()).docs;
      await held?.ref.update({ message: 'text' });
      const stopped = await chain(messageOf(1), context);
      assert.equal(stopped.kind === 'retry' && codeOf(stopped.error), 'UNREADABLE_STATE');
      await held?.ref.set(held.data());
      const ref = { consumer: context.consumer, key: 'k' };
      const sweep = sweepOrder(store, settings, async () => ack());
      const enough = performance.now() + 10_000;
      while ((await store.read(ref)).state?.last !== 2 && performance.now() < enough) {
        assert.equal((await chain(messageOf(1), context)).kind, 'ack');
        await sweep(context);
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
      assert.equal((await store.read(ref)).state?.last, 2);
    });

    test('a key document under another key’s name is reported, and takes no number of that key', async () => {
      const collection = `order-${randomUUID()}`;
      const store = firestoreOrder(opened.firestore, { collection });
      const consumer = randomUUID();
      const base = freshKey(1);
      await store.write({ consumer, key: 'copied' }, { version: undefined, base }, { readyAt: 1 });
      const group = opened.firestore.collectionGroup(`${collection}-keys`);
      const [document] = (await group.where('key', '==', 'copied').get()).docs;
      await document?.ref.update({ key: 'another' });
      const [found] = await store.ready(consumer, 10);
      assert.equal(codeOf(found?.error), 'UNREADABLE_STATE');
    });
  });
}

const contextFor = (consumer: string): Context => ({
  consumer,
  source: 's',
  now: Date.now,
  deadline: performance.now() + 60_000,
  signal: new AbortController().signal,
  log: silent,
});
