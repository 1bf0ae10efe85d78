/**
 * The contract, and the outbox with its relay, on Firestore: on the local stack's server, and on the one that
 * TEST_FIRESTORE_EMULATOR_HOST names.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import type { Transaction } from '@google-cloud/firestore';
import { silent } from '../../../shared/src/log.ts';
import { firestoreCounters } from '../../../shared/src/sequence/firestore.ts';
import { sequencer } from '../../../shared/src/sequence/sequencer.ts';
import { memoryPublisher } from '../../../shared/src/testing/memory-publisher.ts';
import { outboxContract } from '../../../shared/src/outbox/contract.ts';
import { firestoreOutbox } from '../../../shared/src/outbox/firestore.ts';
import { PENDING_FIELDS } from '../../../shared/src/outbox/firestore-rows.ts';
import { type Added, outbox } from '../../../shared/src/outbox/outbox.ts';
import { relay } from '../../../shared/src/outbox/relay.ts';
import { message } from './world.ts';
import { countOperations, loseReply, watchSelected } from '../servers/firestore-client.ts';
import { clientOf, firestoreServers, type OpenedFirestore } from '../servers/firestore-servers.ts';
import { refusal } from '../../../shared/src/testing/refusal.ts';

const servers = firestoreServers('enforce');

for (const [name, open] of servers) {
  outboxContract<Transaction>(name, async () => {
    const { firestore, close } = await open();
    const suffix = randomUUID();
    const store = firestoreOutbox(firestore, { rows: `rows-${suffix}`, streams: `streams-${suffix}` });
    return { store, transact: (work) => firestore.runTransaction(work, { maxAttempts: 20 }), close };
  });

  suite(`outbox and relay: ${name}`, () => {
    let opened: OpenedFirestore;
    before(async () => {
      opened = await open();
    });
    after(() => opened.close());

    /** Collections of its own, so that a pass sees nothing of others. */
    function setUp() {
      const { firestore } = opened;
      const [rows, streams] = [`rows-${randomUUID()}`, `streams-${randomUUID()}`];
      const store = firestoreOutbox(firestore, { rows, streams });
      const publisher = memoryPublisher();
      const relayed = relay(store, publisher, { log: silent });
      const box = outbox(store, { relay: relayed });
      const add = (texts: readonly string[], sequenceKey?: string): Promise<Added> =>
        firestore.runTransaction(async (transaction) => {
          const slot = await box.reserve(transaction, sequenceKey === undefined ? {} : { sequenceKey });
          return slot.add(...texts.map(message));
        });
      const published = (): string[] => publisher.published.map(({ data }) => Buffer.from(data).toString());
      return { firestore, rows, store, publisher, relayed, add, published };
    }

    test('one key has one counter, whether numbers are taken here or by the sequencer', async () => {
      const { firestore, add, relayed, publisher } = setUp();
      const key = randomUUID();
      const { next } = sequencer(firestoreCounters(firestore));
      assert.equal((await next(key)).number, 1);
      const added = await add(['two', 'three'], key);
      assert.deepEqual(added.numbers, [2, 3]);
      const { number, epoch } = await next(key);
      assert.equal(number, 4);
      assert.deepEqual((await add(['five'], key)).numbers, [5]);
      await relayed.sweep({ signal: new AbortController().signal });
      assert.deepEqual(
        publisher.published.map(({ attributes }) => [attributes.sequence, attributes.sequenceEpoch]),
        [
          ['2', epoch],
          ['3', epoch],
          ['5', epoch],
        ],
      );
    });

    test('B3: the reply to the commit is lost, the function runs again: one row, one number', async () => {
      const { firestore, store, relayed } = setUp();
      const key = randomUUID();
      const box = outbox(store, { relay: relayed });
      const restore = loseReply(firestore, 'commit', 1);
      let runs = 0;
      const added = await firestore.runTransaction(async (transaction) => {
        runs += 1;
        const slot = await box.reserve(transaction, { sequenceKey: key });
        if (!slot.isRepeat) transaction.set(firestore.doc(`own/${key}`), { runs });
        return slot.add(message('a'));
      });
      restore();
      assert.deepEqual([runs, added.numbers, added.isRepeat], [2, [1], true]);
      const ref = await store.streamOf(key);
      assert.equal(ref && (await store.after(ref, 0, 10)).length, 1);
      assert.equal((await firestore.doc(`own/${key}`).get()).get('runs'), 1);
    });

    test('the fast path publishes right after the commit, and a pass finds nothing left', async () => {
      const { add, relayed, published } = setUp();
      const key = randomUUID();
      await (await add(['a', 'b'], key)).afterCommit();
      await (await add(['c'])).afterCommit();
      assert.deepEqual(published(), ['a', 'b', 'c']);
      const { due: pending } = await relayed.sweep({ signal: new AbortController().signal });
      assert.equal(pending, 0);
    });

    test('rows that are sent expire, pending rows do not', async () => {
      const { add, relayed, firestore, rows } = setUp();
      await add(['a'], randomUUID());
      const expiry = async (): Promise<unknown> =>
        (await firestore.collection(rows).get()).docs[0]?.get('expiresAt')?.toMillis();
      assert.equal(await expiry(), undefined);
      await relayed.sweep({ signal: new AbortController().signal });
      const at = Number(await expiry());
      assert.ok(Math.abs(at - Date.now() - 8 * 86_400_000) < 60_000);
    });

    test('B10: the reply to a publish, or to its record, is lost: copies have one dedupId and the same bytes', async () => {
      const { add, relayed, publisher, firestore } = setUp();
      publisher.failOn(1, 'reply lost');
      await (await add(['a'], randomUUID())).afterCommit();
      await (await add(['b'])).afterCommit();
      assert.equal(publisher.published.length, 2);
      const restore = loseReply(firestore, 'commit', 2);
      await new Promise((resolve) => setTimeout(resolve, 1_100));
      await relayed.sweep({ signal: new AbortController().signal });
      restore();
      const copies = publisher.published.filter(({ data }) => Buffer.from(data).toString() === 'a');
      assert.ok(copies.length >= 2);
      assert.deepEqual(new Set(copies.map((copy) => JSON.stringify(copy))).size, 1);
    });

    test('a range is published again from rows that are sent', async () => {
      const { add, relayed, store, publisher, published } = setUp();
      const key = randomUUID();
      await add(['a', 'b', 'c', 'd'], key);
      await relayed.sweep({ signal: new AbortController().signal });
      const { repair } = relay(store, publisher, { log: silent });
      assert.deepEqual(await repair.republish(key, { from: 2, to: 3 }), [2, 3]);
      assert.deepEqual(published(), ['a', 'b', 'c', 'd', 'b', 'c']);
      assert.deepEqual(publisher.published[1], publisher.published[4]);
    });

    test('operations of a message: with the fast path, and through a pass', async (t) => {
      const { add, relayed, firestore } = setUp();
      const key = randomUUID();
      await (await add(['warm'], key)).afterCommit();
      const costs = async (work: () => Promise<unknown>): Promise<string> => {
        const stop = countOperations(firestore);
        await work();
        const { reads, writes } = stop();
        return `${reads} reads, ${writes} writes`;
      };
      let added: Added | undefined;
      const seen = {
        reserve: await costs(async () => (added = await add(['a'], key))),
        flush: await costs(async () => added?.afterCommit()),
        reserveLoose: await costs(async () => (added = await add(['a']))),
        flushLoose: await costs(async () => added?.afterCommit()),
        firstPass: await costs(() => relayed.sweep({ signal: new AbortController().signal })),
        idlePass: await costs(() => relayed.sweep({ signal: new AbortController().signal })),
      };
      t.diagnostic(JSON.stringify(seen));
      assert.deepEqual(seen, {
        reserve: '2 reads, 2 writes',
        flush: '3 reads, 3 writes',
        reserveLoose: '1 reads, 1 writes',
        flushLoose: '1 reads, 1 writes',
        // The bound, a read for each shard, and the count of what is blocked.
        firstPass: '19 reads, 1 writes',
        idlePass: '18 reads, 0 writes',
      });
    });

    test('the look of a pass for what is due asks for places and leases, and not for messages', async () => {
      const { add, firestore, store } = setUp();
      await add(['a'], randomUUID());
      await add(['b']);
      const asked = watchSelected(firestore);
      let found = 0;
      for (let shard = 0; shard < store.shards; shard += 1)
        found += (await store.pending(shard, 0, undefined, 10)).rows.length;
      const selected = asked();
      assert.deepEqual([found, selected.length], [2, store.shards]);
      for (const fields of selected) assert.deepEqual(fields, PENDING_FIELDS.toSorted());
      assert.ok(!PENDING_FIELDS.some((field) => ['message', 'payload'].includes(field)));
    });

    test('operations of a row that a trigger tells of: one that is sent, and one whose writer died', async (t) => {
      const { add, relayed, firestore, rows, published } = setUp();
      const known = new Set<string>();
      const commit = async (key?: string): Promise<Readonly<{ id: string; added: Added }>> => {
        const added = await add(['a'], key);
        const { docs } = await firestore.collection(rows).select().get();
        const id = docs.find((document) => !known.has(document.id))?.id ?? '';
        known.add(id);
        return { id, added };
      };
      const told = async (id: string): Promise<string> => {
        const stop = countOperations(firestore);
        const outcome = await relayed.tailRow(id);
        const { reads, writes } = stop();
        return `${outcome}: ${reads} reads, ${writes} writes`;
      };
      const key = randomUUID();
      const seen: Record<string, string> = {};
      for (const [name, of] of [
        ['loose', undefined],
        ['ordered', key],
      ] as const) {
        const living = await commit(of);
        await living.added.afterCommit();
        seen[`${name}, sent`] = await told(living.id);
        seen[`${name}, of a writer that died`] = await told((await commit(of)).id);
      }
      t.diagnostic(JSON.stringify(seen));
      assert.deepEqual(seen, {
        'loose, sent': 'left: 1 reads, 0 writes',
        'loose, of a writer that died': 'sent: 2 reads, 2 writes',
        'ordered, sent': 'left: 1 reads, 0 writes',
        'ordered, of a writer that died': 'sent: 5 reads, 3 writes',
      });
      assert.equal(published().length, 4);
    });
  });
}

/** The name of the one option that is given, which may be in a group. */
const pathOf = (options: object): string => {
  const [name = '', value] = Object.entries(options)[0] ?? [];
  return typeof value === 'object' ? `${name}.${pathOf(value as object)}` : name;
};

test('options are checked when the outbox and the relay are made', async () => {
  const firestore = clientOf('127.0.0.1:9');
  assert.throws(() => firestoreOutbox(firestore, { retention: '1s' }), refusal('retention'));
  for (const shards of [0, 257, 1.5])
    assert.throws(() => firestoreOutbox(firestore, { shards }), refusal('shards'));
  assert.throws(
    () => firestoreOutbox(firestore, { rows: 'a', streams: 'a' }),
    refusal('rows', /streams \("a"\)$/),
  );
  assert.throws(() => firestoreOutbox(firestore, { retention: '36501d' }), refusal('retention'));
  const store = firestoreOutbox(firestore);
  for (const options of [
    { lease: '1s' },
    { retry: { min: '0ms' } },
    { retry: { max: '1ms' } },
    { pageSize: 0 },
    { publishTimeout: '60s' },
    { publishTimeout: '10s', lease: '10s' },
    { grace: '31s' },
  ] as const) {
    assert.throws(() => relay(store, memoryPublisher(), options), refusal(pathOf(options)));
  }
  await firestore.terminate();
});
