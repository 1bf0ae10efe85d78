/** What whoever takes a key, or goes on with it, may believe of it when the store did not answer as it should. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { storeUnavailable } from '../errors.ts';
import { progress } from './key-state.ts';
import { commit, look, seenAgain, take } from './lease.ts';
import { portsOf } from './options.ts';
import type { OrderStore } from './order-store.ts';
import { bench, CONSUMER, LEASE_MS } from './testing/bench.ts';

const ref = { consumer: CONSUMER, key: 'k' };

/** A key that is taken through `through`, and what others do with it. */
function taking(through: (store: OrderStore) => Partial<OrderStore> = () => ({})) {
  const { clock, store, worker, state } = bench();
  const ports = portsOf({ ...store, ...through(store) }, { clock, lease: `${LEASE_MS}ms` });
  const other = worker();
  const theft = async (): Promise<void> => {
    const { version } = await store.read(ref);
    const lease = { owner: 'another', lengthMs: LEASE_MS };
    assert.ok(await store.write(ref, { version, base: state() }, { lease }));
  };
  const taken = async () => take(ports, ref, await look(ports, ref), {});
  return { ports, other, theft, taken, version: async () => (await store.read(ref)).version };
}

test('a take that is found again after a lost reply knows that nothing is held, unless something was held meanwhile', async () => {
  for (const number of [undefined, 1, 2, 3]) {
    const { other, taken, version } = taking((store) => ({
      write: async (...args) => {
        await store.write(...args);
        if (number !== undefined) assert.equal((await other.deliver(number)).kind, 'ack');
        return undefined;
      },
    }));
    const lease = await taken();
    assert.equal(lease?.empty, number === undefined ? 'seen' : 'unknown', String(number));
    assert.equal(lease?.version, await version());
  }
});

test('what a kept lease reads of its key counts only while it is its own, and shows nothing held', async () => {
  const { ports, taken, version } = taking();
  const lease = await taken();
  assert.ok(lease);
  const seen = await seenAgain(ports, ref, { ...lease, version: 'not known', empty: 'unseen' });
  assert.deepEqual([seen.empty, seen.version], ['seen', await version()]);
});

for (const [what, happen] of Object.entries({
  'a copy of what runs is held': ({ other }: ReturnType<typeof taking>) => other.deliver(1),
  'what comes next is held': ({ other }: ReturnType<typeof taking>) => other.deliver(2),
  'another has the key': ({ theft }: ReturnType<typeof taking>) => theft(),
})) {
  test(`${what}: what a kept lease reads of its key says nothing`, async () => {
    const made = taking();
    const lease = await made.taken();
    assert.ok(lease);
    await happen(made);
    const seen = await seenAgain(made.ports, ref, { ...lease, empty: 'unseen' });
    assert.deepEqual([seen.empty, seen.version, seen.owner], ['unknown', lease.version, lease.owner]);
  });
}

test('a key that cannot be read leaves it to a transaction', async () => {
  let answers = true;
  const { ports, taken } = taking((store) => ({
    read: async (one) => (answers ? store.read(one) : Promise.reject(storeUnavailable('no answer'))),
  }));
  const lease = await taken();
  assert.ok(lease);
  answers = false;
  assert.equal((await seenAgain(ports, ref, { ...lease, empty: 'unseen' })).empty, 'unknown');
});

test('a commit that is found again after a lost reply knows of what was held behind it', async () => {
  for (const number of [undefined, 5]) {
    let meanwhile: (() => Promise<unknown>) | undefined;
    const { ports, other, taken, version } = taking((store) => ({
      async write(...args) {
        const answer = await store.write(...args);
        if (meanwhile === undefined) return answer;
        await meanwhile();
        throw storeUnavailable('reply lost');
      },
    }));
    const lease = await taken();
    assert.ok(lease);
    meanwhile = async () => number !== undefined && other.deliver(number);
    const kept = await commit(ports, ref, lease, progress(lease.state, ['a']), [], false);
    assert.deepEqual([kept?.state.last, kept?.version], [1, await version()]);
    assert.equal(kept?.empty, number === undefined ? 'seen' : 'unknown');
  }
});
