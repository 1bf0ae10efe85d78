/**
 * The contract on Firestore: on the local stack's server, and on the one that TEST_FIRESTORE_EMULATOR_HOST names.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import type { Firestore } from '@google-cloud/firestore';
import { systemClock } from '../../../shared/src/clock.ts';
import { memoryTasks } from '../../../shared/src/tasks/memory.ts';
import { firestoreServers, onLocalStack, type OpenedFirestore } from '../servers/firestore-servers.ts';
import { anEntry, ledgerContract } from '../../../shared/src/schedules/contract.ts';
import { fire, markDelivered } from '../../../shared/src/schedules/decide.ts';
import { entryId } from '../../../shared/src/schedules/entry.ts';
import { firestoreLedger } from '../../../shared/src/schedules/firestore.ts';
import { schedules } from '../../../shared/src/schedules/schedules.ts';
import { refusal } from '../../../shared/src/testing/refusal.ts';

const servers = firestoreServers('enforce');

/** Documents asked for and written, as they leave the client. */
function countOperations(firestore: Firestore): { reads: number; writes: number } {
  const counts = { reads: 0, writes: 0 };
  type Send = (method: string, request: Record<string, unknown>, ...rest: unknown[]) => unknown;
  const internals = firestore as unknown as { request: Send; requestStream: Send };
  const { request: send, requestStream: stream } = internals;
  internals.request = (method, request, ...rest) => {
    if (method === 'commit') counts.writes += (request['writes'] as unknown[] | undefined)?.length ?? 0;
    return send.call(firestore, method, request, ...rest);
  };
  internals.requestStream = (method, bidirectional, request, ...rest) => {
    const { documents } = request as { documents?: unknown[] };
    if (method === 'batchGetDocuments') counts.reads += documents?.length ?? 0;
    return stream.call(firestore, method, bidirectional, request, ...rest);
  };
  return counts;
}

const collection = `test-schedules-${process.pid}`;

for (const [name, open] of servers) {
  ledgerContract(name, async () => {
    const { firestore, close } = await open();
    return {
      ledger: firestoreLedger(firestore, { collection }),
      transact: (work) => firestore.runTransaction(work),
      plantUnrecognised: async (id) =>
        void (await firestore.collection(collection).doc(id).set({ v: 1, state: 'mine' })),
      close,
    };
  });
}

suite('schedules over Firestore', () => {
  let opened: OpenedFirestore;
  before(async () => {
    opened = await onLocalStack('enforce');
  });
  after(() => opened.close());

  const setUp = () => {
    const clock = systemClock();
    const ledger = firestoreLedger(opened.firestore, { collection });
    const queue = memoryTasks({ clock });
    const scope = { consumer: randomUUID(), source: 'projects/p/subscriptions/s' };
    const api = schedules(ledger, queue, { clock, ...scope, topic: 'projects/p/topics/t' });
    return { ledger, queue, api, id: entryId({ ...scope, key: 'k' }) };
  };

  test('a delivery is scheduled with the writes of the caller, or not at all', async () => {
    const { api, queue } = setUp();
    const { firestore } = opened;
    const order = firestore.collection('orders').doc(randomUUID());
    const change = await firestore.runTransaction(async (tx) => {
      const slot = await api.reserve(tx, 'k');
      const seen = await tx.get(order);
      tx.set(order, { reminded: seen.exists });
      return slot.put({ data: 'pay', delay: '1h' });
    });
    assert.equal(change.answer, 'scheduled');
    assert.equal((await api.get('k'))?.state, 'unscheduled');
    await change.afterCommit();
    assert.equal((await api.get('k'))?.state, 'scheduled');
    const failed = firestore.runTransaction(async (tx) => {
      await api.cancel(tx, 'k');
      throw new Error('the caller changed its mind');
    });
    await assert.rejects(failed, /changed its mind/);
    assert.deepEqual([(await api.get('k'))?.state, queue.created.length], ['scheduled', 1]);
  });

  test('an ended record has an expiry, a pending one has none, and a new schedule takes it away', async () => {
    const { api, id } = setUp();
    const { firestore } = opened;
    const expiry = async () => (await firestore.collection(collection).doc(id).get()).get('expiresAt');
    const put = () => firestore.runTransaction((tx) => api.put(tx, 'k', { data: 'x', delay: '1h' }));
    await put();
    assert.equal(await expiry(), null);
    await firestore.runTransaction((tx) => api.cancel(tx, 'k'));
    const days = ((await expiry()).toMillis() - Date.now()) / 86_400_000;
    assert.ok(days > 31.9 && days <= 32.1);
    await put();
    assert.equal(await expiry(), null);
  });

  test('a cancel and a task at the same time: one of them wins, and each says so', async () => {
    for (let round = 0; round < 8; round += 1) {
      const { api, ledger, id } = setUp();
      const { firestore } = opened;
      await firestore.runTransaction((tx) => api.put(tx, 'k', { data: 'x' }));
      const { entry } = await ledger.read(id);
      const cancel = () => firestore.runTransaction((tx) => api.cancel(tx, 'k'));
      const task = () =>
        ledger.change(id, fire({ generation: entry!.generation, token: 't', leaseMs: 30_000 }));
      const both =
        round % 2 === 0
          ? await Promise.all([cancel(), task()])
          : ((await Promise.all([task(), cancel()])).toReversed() as [
              Awaited<ReturnType<typeof cancel>>,
              Awaited<ReturnType<typeof task>>,
            ]);
      const answers = both.map(({ answer }) => answer).join(' ');
      assert.match(answers, /^(cancelled drop|tooLate fire)$/);
    }
  });

  test('what it costs: one read and one write for each step, none of it for a message without a key', async () => {
    const { api, ledger, id } = setUp();
    const { firestore } = opened;
    const counts = countOperations(firestore);
    const cost = async (work: () => Promise<unknown>): Promise<string> => {
      const before = { ...counts };
      await work();
      return `${counts.reads - before.reads} r, ${counts.writes - before.writes} w`;
    };
    const put = () => firestore.runTransaction((tx) => api.put(tx, 'k', { data: 'x' }));
    let change: Awaited<ReturnType<typeof put>> | undefined;
    assert.equal(await cost(async () => (change = await put())), '1 r, 1 w');
    assert.equal(await cost(async () => change?.afterCommit()), '1 r, 1 w');
    const { generation } = (await ledger.read(id)).entry!;
    const task = { generation, token: 't' };
    assert.equal(await cost(() => ledger.change(id, fire({ ...task, leaseMs: 30_000 }))), '1 r, 1 w');
    assert.equal(await cost(() => ledger.change(id, markDelivered(task))), '1 r, 1 w');
    assert.equal(await cost(() => ledger.change(id, markDelivered(task))), '1 r, 0 w');
    assert.equal(await cost(() => firestore.runTransaction((tx) => api.cancel(tx, 'k'))), '1 r, 1 w');
    assert.equal(await cost(() => api.get('k')), '1 r, 0 w');
  });

  test('the sweep’s query asks for names alone, and not for the messages in the entries', async () => {
    const { ledger } = setUp();
    const consumer = randomUUID();
    const ids = [randomUUID(), randomUUID()];
    for (const [index, id] of ids.entries()) {
      const ref = { consumer, source: 's', key: id };
      const entry = anEntry({ ref, state: 'unscheduled', atMs: 1_000 + index });
      await ledger.change(id, () => ({ answer: 'planted', entry }));
    }
    type Stream = (method: string, bidirectional: boolean, request: object, ...rest: unknown[]) => unknown;
    const internals = opened.firestore as unknown as { requestStream: Stream };
    const { requestStream: stream } = internals;
    const asked: unknown[] = [];
    internals.requestStream = (method, bidirectional, request, ...rest) => {
      const { structuredQuery } = request as { structuredQuery?: { select?: { fields: unknown } } };
      if (method === 'runQuery') asked.push(structuredQuery?.select?.fields);
      return stream.call(opened.firestore, method, bidirectional, request, ...rest);
    };
    try {
      const found: string[] = [];
      for (let shard = 0; shard < ledger.shards; shard += 1) {
        found.push(...(await ledger.due(consumer, shard, 10)).items.map(({ id }) => id));
      }
      assert.deepEqual(new Set(found), new Set(ids));
    } finally {
      internals.requestStream = stream;
    }
    assert.equal(asked.length, ledger.shards);
    for (const fields of asked) assert.deepEqual(fields, [{ fieldPath: 'sweep' }]);
  });

  test('a retention shorter than the longest of a source is refused', () => {
    assert.throws(
      () => firestoreLedger(opened.firestore, { retention: '30d' }),
      refusal('retention', /at least 31d$/),
    );
  });
});
