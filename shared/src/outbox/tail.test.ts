/** Rows that a trigger tells of, on virtual time: what is published, by which process, and how often. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../clock.ts';
import { TransientError } from '../errors.ts';
import { silent } from '../log.ts';
import type { OutgoingMessage } from '../message.ts';
import { virtualClock } from '../testing/virtual-clock.ts';
import { memoryOutbox } from './memory.ts';
import { outbox, type SlotOptions } from './outbox.ts';
import { relay, type RelayOptions } from './relay.ts';

const textOf = ({ data }: OutgoingMessage): string => Buffer.from(data).toString();

function setUp(options: RelayOptions = {}) {
  const clock = virtualClock();
  const store = memoryOutbox({ clock });
  const published: string[] = [];
  const state = { publishMs: 0, isDown: false };
  const publisher = {
    async publish(outgoing: OutgoingMessage) {
      await sleep(clock, state.publishMs);
      if (state.isDown) throw new TransientError('PUBSUB_UNAVAILABLE', 'down');
      return String(published.push(textOf(outgoing)));
    },
  };
  const relayOf = () => relay(store, publisher, { clock, log: silent, ...options });
  /** `relays`: the writer publishes what it has committed, if it lives for long enough. */
  const commit = async (texts: readonly string[], slot: SlotOptions = {}, relays = true) => {
    const before = new Set(store.rows().map(({ row }) => row.id));
    const box = outbox(store, { clock, ...(relays && { relay: relayOf() }) });
    const added = await store.transact(async (transaction) =>
      (await box.reserve(transaction, slot)).add(
        ...texts.map((text) => ({ topic: 't', data: Buffer.from(text), attributes: {} })),
      ),
    );
    const ids = store
      .rows()
      .map(({ row }) => row.id)
      .filter((id) => !before.has(id));
    return { added, ids };
  };
  return { clock, store, published, state, relayOf, commit };
}

test('a row whose writer died after its commit is published when its grace is over, and long before its lease', async () => {
  const { clock, published, relayOf, commit } = setUp();
  const { ids } = await commit(['a']);
  const began = clock.now();
  assert.equal(await clock.until(relayOf().tailRow(ids[0] ?? '')), 'sent');
  assert.deepEqual([published, clock.now() - began], [['a'], 500]);
});

test('a row whose writer lives is left to it, and published once', async () => {
  const { clock, published, state, relayOf, commit } = setUp();
  state.publishMs = 200;
  const { added, ids } = await commit(['a']);
  const outcomes = Promise.all([added.afterCommit(), relayOf().tailRow(ids[0] ?? '')]);
  assert.deepEqual(await clock.until(outcomes), [undefined, 'left']);
  assert.deepEqual(published, ['a']);
});

test('a writer that never publishes is not waited for', async () => {
  const { clock, published, relayOf, commit } = setUp();
  const { ids } = await commit(['a'], {}, false);
  const began = clock.now();
  assert.equal(await clock.until(relayOf().tailRow(ids[0] ?? '')), 'sent');
  assert.deepEqual([published, clock.now() - began], [['a'], 0]);
});

test('an event that comes twice, also at the same time and in another process, publishes once', async () => {
  const { clock, published, state, relayOf, commit } = setUp();
  state.publishMs = 300;
  const { ids } = await commit(['a']);
  const [id = ''] = ids;
  const [one, other] = [relayOf(), relayOf()];
  const outcomes = await clock.until(Promise.all([one.tailRow(id), one.tailRow(id), other.tailRow(id)]));
  assert.deepEqual(outcomes.toSorted(), ['left', 'left', 'sent']);
  assert.equal(await clock.until(other.tailRow(id)), 'left');
  assert.deepEqual(published, ['a']);
});

test('rows of a stream are published in their order, whichever event comes first', async () => {
  const { clock, published, relayOf, commit } = setUp();
  const { ids } = await commit(['a', 'b', 'c'], { sequenceKey: 'k' });
  const relayed = relayOf();
  const outcomes = await clock.until(Promise.all(ids.toReversed().map((id) => relayed.tailRow(id))));
  assert.deepEqual([published, new Set(outcomes)], [['a', 'b', 'c'], new Set(['sent'])]);
  assert.equal(await clock.until(relayed.tailRow(ids[2] ?? '')), 'left');
  assert.deepEqual(published, ['a', 'b', 'c']);
});

test('a stream whose writer publishes within the grace is read once more, and left', async () => {
  const { clock, published, store, relayOf, commit } = setUp();
  const { added, ids } = await commit(['a'], { sequenceKey: 'k' });
  const outcomes = Promise.all([added.afterCommit(), relayOf().tailRow(ids[0] ?? '')]);
  assert.deepEqual(await clock.until(outcomes), [undefined, 'left']);
  assert.deepEqual([published, store.rows()[0]?.state], [['a'], 'sent']);
});

test('what cannot be published is reported as failed, waits for its time, and is published by a pass', async () => {
  const { clock, published, state, relayOf, commit } = setUp();
  state.isDown = true;
  const loose = await commit(['a']);
  const ordered = await commit(['b'], { sequenceKey: 'k' });
  const relayed = relayOf();
  for (const { ids } of [loose, ordered]) {
    assert.equal(await clock.until(relayed.tailRow(ids[0] ?? '')), 'failed');
  }
  state.isDown = false;
  const again = await clock.until(relayed.tailRow(loose.ids[0] ?? ''));
  assert.equal(again, 'left', 'it backs off');
  await clock.advance(1_000);
  await clock.until(relayed.sweep({ signal: new AbortController().signal }));
  assert.deepEqual(published.toSorted(), ['a', 'b']);
});

test('a row that is gone, or that no trigger tells of, is nothing to do', async () => {
  const { clock, published, relayOf } = setUp();
  assert.equal(await clock.until(relayOf().tailRow('no such row')), 'left');
  await assert.rejects(relayOf().tailRow(''), {
    name: 'ConfigError',
    message: /^id is ""; accepted: a text/,
  });
  assert.deepEqual(published, []);
});

test('without a grace a row is published at once, and its writer finds it sent', async () => {
  const { clock, published, relayOf, commit } = setUp({ grace: '0ms' });
  const { added, ids } = await commit(['a']);
  assert.equal(await clock.until(relayOf().tailRow(ids[0] ?? '')), 'sent');
  await clock.until(added.afterCommit());
  assert.deepEqual(published, ['a']);
});
