/**
 * Messages that are larger than a row, through the payload store: in memory, and on the local stack's Firestore.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import { silent } from '../../../shared/src/log.ts';
import { firestorePayloads } from '../../../shared/src/payload/firestore.ts';
import { memoryPayloads } from '../../../shared/src/payload/memory.ts';
import { firestoreServers, type OpenedFirestore } from '../servers/firestore-servers.ts';
import { memoryPublisher } from '../../../shared/src/testing/memory-publisher.ts';
import { firestoreOutbox } from '../../../shared/src/outbox/firestore.ts';
import { outbox } from '../../../shared/src/outbox/outbox.ts';
import { relay } from '../../../shared/src/outbox/relay.ts';
import { outboxSender } from '../../../shared/src/outbox/sender.ts';
import { message, world } from './world.ts';

const { signal } = new AbortController();
const K = { sequenceKey: 'k' };
const large = (letter: string, bytes = 3_000_000) => ({ ...message(''), data: Buffer.alloc(bytes, letter) });

test('a large message is refused without a payload store, and one that was not prepared', async () => {
  const { clock, store } = world();
  for (const options of [{}, { payloads: memoryPayloads({ clock }) }]) {
    const box = outbox(store, { clock, ...options });
    const work = store.transact(async (transaction) => (await box.reserve(transaction, K)).add(large('a')));
    await assert.rejects(work, { code: 'LIMIT_EXCEEDED' });
  }
  const box = outbox(store, { clock, payloads: memoryPayloads({ clock }) });
  await assert.rejects(box.prepare(large('a', 10_000_001)), { code: 'LIMIT_EXCEEDED' });
  assert.equal(store.rows().length, 0);
});

test('a relay without the payload store leaves large rows, in their order; content that is gone blocks its stream', async () => {
  const { clock, store, relayOf, published } = world();
  const payloads = memoryPayloads({ clock });
  const box = outbox(store, { clock, payloads });
  const add = async (one: ReturnType<typeof large>) => {
    await box.prepare(one);
    return store.transact(async (transaction) => (await box.reserve(transaction, K)).add(one));
  };
  await add(large('a', 10));
  await add(large('b'));
  await add(large('c', 10));
  const { failed } = await relayOf().sweep({ signal });
  const sizes = (): number[] => published.map(({ data }) => data.length);
  assert.deepEqual([sizes(), failed], [[10], 1]);
  await clock.advance(60_000);
  await relayOf({ payloads }).sweep({ signal });
  assert.deepEqual(sizes(), [10, 3_000_000, 10]);

  await add(large('d'));
  const ref = store.rows().at(-1)?.row.payload;
  assert.ok(ref !== undefined);
  await payloads.done(ref);
  await relayOf({ payloads }).sweep({ signal });
  const [stuck] = (await relayOf().listFailures()).streams;
  assert.deepEqual([stuck?.blocked.number, stuck?.blocked.code], [4, 'PAYLOAD_DONE']);
});

test('a payload store that does not answer costs the call, and nothing is written', async () => {
  const { clock, store } = world();
  const payloads = memoryPayloads({ clock });
  const down = { ...payloads, put: () => Promise.reject(new Error('down')) };
  const sender = outboxSender(store, store.transact, { clock, payloads: down });
  const [one, two] = await Promise.allSettled([
    sender.send('k', large('a')),
    sender.send('j', large('b', 10)),
  ]);
  assert.deepEqual([one?.status, two?.status, store.rows().length], ['rejected', 'fulfilled', 1]);
});

for (const [name, open] of firestoreServers('enforce')) {
  suite(`large messages: ${name}`, () => {
    let opened: OpenedFirestore;
    before(async () => {
      opened = await open();
    });
    after(() => opened.close());

    test('large messages are published whole: by the fast path, a pass, a sender, and the repair of a gap', async () => {
      const { firestore } = opened;
      const suffix = randomUUID();
      const places = { rows: `rows-${suffix}`, streams: `streams-${suffix}`, counters: `counters-${suffix}` };
      const store = firestoreOutbox(firestore, places);
      const payloads = firestorePayloads(firestore, { collection: `payload-${suffix}` });
      const publisher = memoryPublisher();
      const relayed = relay(store, publisher, { log: silent, payloads });
      const box = outbox(store, { relay: relayed, payloads });
      for (const slot of [K, {}]) {
        const one = large(slot === K ? 'a' : 'b', 9_000_000);
        await box.prepare(one);
        const added = await firestore.runTransaction(async (transaction) =>
          (await box.reserve(transaction, slot)).add(one),
        );
        await added.afterCommit();
      }
      const seen = (): string[] =>
        publisher.published.map(({ data }) => `${Buffer.from(data).toString('latin1', 0, 1)} ${data.length}`);
      assert.deepEqual(seen(), ['a 9000000', 'b 9000000']);
      const sender = outboxSender(store, (work) => firestore.runTransaction(work), { payloads });
      const sent = [large('c', 2_000_000), large('d', 10), large('e', 2_000_000)].map((one) =>
        sender.send('k', one),
      );
      assert.deepEqual(await Promise.all(sent), [[2], [3], [4]]);
      await relayed.sweep({ signal });
      assert.deepEqual(seen().slice(2), ['c 2000000', 'd 10', 'e 2000000']);
      const { repair } = relay(store, publisher, { log: silent, payloads });
      assert.deepEqual(await repair.republish('k', { from: 1, to: 2 }), [1, 2]);
      assert.deepEqual(seen().slice(5), ['a 9000000', 'c 2000000']);
      assert.deepEqual(publisher.published[0], publisher.published[5]);
      const rows = await firestore.collection(places.rows).get();
      const versions = rows.docs.map((row) => `${row.get('v')} ${row.get('payload') !== undefined}`);
      assert.deepEqual(versions.toSorted(), ['3 false', '3 true', '3 true', '3 true', '3 true']);
    });
  });
}
