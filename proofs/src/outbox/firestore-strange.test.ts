/**
 * Documents in the collections of the outbox that are not as they should be: each delays its own stream, and no other.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import { FieldValue } from '@google-cloud/firestore';
import { until } from 'pubsub-guarantees-emulator';
import { PermanentError } from '../../../shared/src/errors.ts';
import { silent } from '../../../shared/src/log.ts';
import { firestoreServers, type OpenedFirestore } from '../servers/firestore-servers.ts';
import { memoryPublisher } from '../../../shared/src/testing/memory-publisher.ts';
import { firestoreOutbox } from '../../../shared/src/outbox/firestore.ts';
import { type Added, outbox } from '../../../shared/src/outbox/outbox.ts';
import { relay } from '../../../shared/src/outbox/relay.ts';
import { message } from './world.ts';

const { signal } = new AbortController();

for (const [name, open] of firestoreServers('enforce')) {
  suite(`strange rows: ${name}`, () => {
    let opened: OpenedFirestore;
    before(async () => {
      opened = await open();
    });
    after(() => opened.close());

    function setUp() {
      const { firestore } = opened;
      const suffix = randomUUID();
      const places = { rows: `rows-${suffix}`, streams: `streams-${suffix}`, counters: `counters-${suffix}` };
      const store = firestoreOutbox(firestore, places);
      const publisher = memoryPublisher();
      const texts = (): string[] => publisher.published.map(({ data }) => Buffer.from(data).toString());
      const relayed = relay(store, publisher, { log: silent });
      const box = outbox(store, { relay: relayed });
      const add = (text: string, sequenceKey?: string): Promise<Added> =>
        firestore.runTransaction(async (transaction) => {
          const slot = await box.reserve(transaction, sequenceKey === undefined ? {} : { sequenceKey });
          return slot.add(message(text));
        });
      const rowOf = async (key: string, number: number) => {
        const ref = await store.streamOf(key);
        const [row] = ref === undefined ? [] : await store.after(ref, number - 1, 1);
        return firestore.doc(`${places.rows}/${row?.id}`);
      };
      return { firestore, places, store, publisher, relayed, box, add, texts, rowOf };
    }

    test('a row of a later version delays the rows behind it, not those before it, and no other stream', async () => {
      const { store, publisher, relayed, add, texts, rowOf } = setUp();
      for (const text of ['a1', 'a2', 'a3']) await add(text, 'a');
      await (await rowOf('a', 2)).update({ v: 9 });
      await add('b1', 'b');
      const first = await relayed.sweep({ signal });
      assert.deepEqual(texts().toSorted(), ['a1', 'b1']);
      assert.deepEqual([first.done, first.failed, first.isWhole], [2, 1, true]);
      const ref = (await store.streamOf('a')) ?? { key: '', epoch: '' };
      const { state } = await store.readStream(ref);
      assert.deepEqual(
        [state?.sent, state?.owner, state?.attempts, state?.blocked],
        [1, undefined, 1, undefined],
      );
      const { repair } = relay(store, publisher, { log: silent });
      await assert.rejects(repair.republish('a', { from: 1, to: 3 }), { code: 'OUTBOX_PENDING' });
      await (await rowOf('a', 2)).update({ v: 3 });
      // It is due again a second after it failed, on whichever clock is behind.
      await until(async () => {
        await relayed.sweep({ signal });
        return texts().length >= 4;
      }, 'the row is due again');
      assert.deepEqual(texts().slice(-2), ['a2', 'a3']);
    });

    test('a row whose place cannot be read, or of an earlier format, is counted, and does not delay the next pass', async () => {
      const { firestore, places, store, relayed, add, texts } = setUp();
      await add('a1', 'a');
      const pendingAt = { s000: FieldValue.serverTimestamp() };
      const own = { state: 'pending', topic: 'projects/p/topics/t', message: Buffer.from('x'), pendingAt };
      const strange = {
        broken: { ...own, v: 3, key: 'k', number: '1' },
        old: { ...own, v: 1, topic: 't', attempts: 0, nextTryAt: null },
        short: { ...own, v: 3, topic: 't', attempts: 0, nextTryAt: null },
      };
      for (const [id, fields] of Object.entries(strange))
        await firestore.doc(`${places.rows}/${id}`).set(fields);
      await add('b1', 'b');
      const { done: published, failed, isWhole } = await relayed.sweep({ signal });
      assert.deepEqual([texts().toSorted(), published, failed, isWhole], [['a1', 'b1'], 2, 3, true]);
      assert.ok((await store.bound()) <= Date.now() - 299_000);
      const again = await relayed.sweep({ signal });
      assert.deepEqual([again.due, again.failed], [0, 0]);
    });

    test('a stream of an earlier counter is resumed by its ref; the skipped number is named', async () => {
      const { firestore, places, store, publisher, relayed, add, texts } = setUp();
      const bad = new Set(['old 1', 'old 2']);
      const picky = {
        publish: async (...args: Parameters<typeof publisher.publish>) => {
          if (bad.has(Buffer.from(args[0].data).toString())) throw new PermanentError('BAD', 'never');
          return publisher.publish(...args);
        },
      };
      const own = relay(store, picky, { log: silent });
      for (const text of ['old 1', 'old 2', 'old 3']) await add(text, 'k');
      await own.sweep({ signal });
      const [counter] = (await firestore.collection(places.counters).get()).docs;
      await counter?.ref.delete();
      await add('new 1', 'k');
      await own.sweep({ signal });
      assert.deepEqual(texts(), ['new 1']);
      const [stuck] = (await relayed.listFailures()).streams;
      assert.ok(stuck !== undefined);
      assert.deepEqual([stuck.ref.key, stuck.blocked.number], ['k', 1]);
      assert.equal(await own.resume('k'), false, 'the present stream is not blocked');
      await assert.rejects(own.skip(stuck.ref, 2), { code: 'STREAM_NOT_BLOCKED' });
      assert.equal(await own.skip(stuck.ref, 1), 1);
      assert.equal(await own.skip(stuck.ref, 1), undefined, 'it has been passed');
      await own.sweep({ signal });
      bad.clear();
      assert.equal(await own.resume(stuck.ref), true);
      await own.sweep({ signal });
      assert.deepEqual(texts(), ['new 1', 'old 2', 'old 3']);
      assert.deepEqual((await own.listFailures()).streams, []);
    });

    test('a row that an operator deleted blocks its stream, visibly', async () => {
      const { relayed, add, texts, rowOf } = setUp();
      for (const text of ['1', '2', '3']) await add(text, 'k');
      await (await rowOf('k', 2)).delete();
      const { blocked } = await relayed.sweep({ signal });
      assert.equal(blocked, 1);
      const [stuck] = (await relayed.listFailures()).streams;
      assert.deepEqual([stuck?.blocked.number, stuck?.blocked.code], [2, 'OUTBOX_ROW_MISSING']);
      await assert.rejects(relayed.skip('k', 3), { code: 'STREAM_NOT_BLOCKED' });
      assert.equal(await relayed.skip('k', 2), 2);
      await relayed.sweep({ signal });
      assert.deepEqual(texts(), ['1', '3']);
    });

    test('a transaction that is rolled back publishes nothing, and one key has one slot', async () => {
      const { firestore, box, texts, relayed } = setUp();
      let added: Added | undefined;
      for (const slot of [{}, { sequenceKey: 'k' }]) {
        const given = firestore.runTransaction(async (transaction) => {
          added = (await box.reserve(transaction, slot)).add(message('a'));
          throw new Error('rolled back');
        });
        await assert.rejects(given, /rolled back/);
        await added?.afterCommit();
      }
      const twice = firestore.runTransaction(async (transaction) => {
        const one = await box.reserve(transaction, { sequenceKey: 'k', id: '1' });
        const two = await box.reserve(transaction, { sequenceKey: 'k', id: '2' });
        return [two.add(message('b')), one.add(message('c'))];
      });
      await assert.rejects(twice, { name: 'ConfigError', code: 'SLOT_USED' });
      const { due: pending } = await relayed.sweep({ signal });
      assert.deepEqual([texts(), pending], [[], 0]);
      assert.equal(await relayed.reopen('unknown'), false);
    });
  });
}
