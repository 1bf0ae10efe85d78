/**
 * Messages that are larger than the store can hold: their content is in the payload store until they are done.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../../../shared/src/clock.ts';
import { PermanentError, storeUnavailable } from '../../../shared/src/errors.ts';
import type { Handler, Middleware } from '../../../shared/src/handler.ts';
import { ack, deadLetter, type Outcome, retry } from '../../../shared/src/outcome.ts';
import { memoryPayloads } from '../../../shared/src/payload/memory.ts';
import type { PayloadStore } from '../../../shared/src/payload/payload-store.ts';
import { virtualClock } from '../../../shared/src/testing/virtual-clock.ts';
import { orderedDelivery } from '../../../shared/src/order/in-order.ts';
import { bench, type Bench, CONSUMER, kindOf, LEASE_MS, SOURCE } from './bench.ts';

const LARGE = 'x'.repeat(2_000);
type LargeBench = Bench &
  Readonly<{ live: Set<string>; payloads: PayloadStore; seen: string[]; reading: Handler }>;

/** A bench whose store holds 1,000 bytes; `live`: what the payload store keeps. */
function withPayloads(
  options: Parameters<typeof bench>[0] = {},
  refused: () => boolean = () => false,
): LargeBench {
  const store = memoryPayloads({ clock: virtualClock() });
  const live = new Set<string>();
  const payloads: PayloadStore = {
    ...store,
    async put(...args) {
      if (refused()) throw storeUnavailable('down');
      const ref = await store.put(...args);
      live.add(ref.id);
      return ref;
    },
    async done(ref) {
      await store.done(ref);
      live.delete(ref.id);
    },
  };
  const seen: string[] = [];
  const reading: Handler = async (message) => {
    seen.push(`${message.attributes.sequence} ${message.data.length}`);
    return ack();
  };
  return { ...bench({ maxHeldBytes: 1_000, payloads, ...options }), live, payloads, seen, reading };
}

test('a large message ahead of its turn is in the payload store until it is done', async () => {
  const { worker, live, seen, reading, heldNumbers, state } = withPayloads();
  const { deliver } = worker({ handler: reading });
  for (const number of [3, 2, 3]) assert.equal(kindOf(await deliver(number, { content: LARGE })), 'ack held');
  assert.deepEqual([live.size, heldNumbers()], [2, [2, 3]]);
  assert.equal(kindOf(await deliver(1)), 'ack handled');
  assert.deepEqual([seen, live.size, state().last], [['1 1', '2 2000', '3 2000'], 0, 3]);
});

test('a large message that fails is held, and retried by the sweep', async () => {
  const { clock, worker, live, state } = withPayloads();
  const { deliver } = worker({ handler: async () => retry(new Error('once')) });
  assert.equal(kindOf(await deliver(1, { content: LARGE })), 'ack held');
  assert.deepEqual([live.size, state().attempts], [1, 1]);
  await clock.advance(60_000);
  await worker().sweep();
  assert.deepEqual([live.size, state().last], [0, 1]);
});

test('a payload store that does not answer costs a redelivery, not the message', async () => {
  let isDown = true;
  const { clock, worker, state } = withPayloads({}, () => isDown);
  const { deliver } = worker({ handler: async () => retry(new Error('x')) });
  assert.equal(kindOf(await deliver(2, { content: LARGE })), 'retry STORE_UNAVAILABLE');
  assert.equal(kindOf(await deliver(1, { content: LARGE })), 'retry STORE_UNAVAILABLE');
  await clock.advance(0);
  assert.equal(state().attempts, 1, 'its failure counts all the same');
  isDown = false;
  assert.equal(kindOf(await worker().deliver(1, { content: LARGE })), 'ack handled');
  assert.equal(state().last, 1);
});

test('the same message under another ID, and another content, leave nothing in the payload store', async () => {
  const { worker, live } = withPayloads();
  const { deliver } = worker();
  await deliver(2, { content: LARGE });
  const again = await deliver(2, { content: LARGE, attributes: { dedupId: 'another' } });
  assert.deepEqual([kindOf(again), live.size], ['ack held', 1]);
  const other = await deliver(2, { content: `${LARGE}!` });
  assert.deepEqual([kindOf(other), live.size], ['deadLetter SEQUENCE_CONFLICT', 1]);
});

test('a copy held while its number runs leaves the payload store with it', async () => {
  const { clock, worker, live, state } = withPayloads();
  const slow: Handler = async () => {
    await clock.advance(0);
    await copy();
    return ack();
  };
  const copy = (): Promise<Outcome> => worker().deliver(1, { content: LARGE });
  assert.equal(kindOf(await worker({ handler: slow }).deliver(1, { content: LARGE })), 'ack handled');
  assert.deepEqual([live.size, state().last, state().readyAt], [0, 1, null]);
});

test('a dead letter of a large message has all of its data, from a drain and from an operator', async () => {
  const deadLettered: number[] = [];
  const deadLetters: Middleware = (next) => async (message, context) => {
    const outcome = await next(message, context);
    if (outcome.kind === 'deadLetter') deadLettered.push(message.data.length);
    return outcome.kind === 'deadLetter' ? { ...outcome, published: true } : outcome;
  };
  const bad: Handler = async (message) =>
    message.attributes.sequence === '2' ? deadLetter(new PermanentError('BAD', 'never')) : ack();
  const skips = withPayloads({ onPoison: 'skip', deadLetters });
  const { deliver } = skips.worker({ handler: bad });
  await deliver(2, { content: LARGE });
  await deliver(1);
  assert.deepEqual([deadLettered, skips.state().last, skips.live.size], [[2_000], 2, 0]);

  const blocks = withPayloads();
  const one = blocks.worker({ handler: bad });
  await one.deliver(2, { content: LARGE });
  await one.deliver(1);
  const ref = { consumer: CONSUMER, source: SOURCE, key: 'k' };
  const without = orderedDelivery(blocks.store, { deadLetters });
  await assert.rejects(without.skip(ref, 2), { code: 'NO_PAYLOAD_STORE' });
  const { skip } = orderedDelivery(blocks.store, { deadLetters, payloads: blocks.payloads });
  assert.equal(await skip(ref, 2), true);
  assert.deepEqual([deadLettered, blocks.state().last, blocks.live.size], [[2_000, 2_000], 2, 0]);
});

test('a stream whose content is gone is blocked visibly', async () => {
  const { worker, live, payloads, state } = withPayloads();
  const { deliver } = worker();
  await deliver(2, { content: LARGE });
  const [id = ''] = live;
  await payloads.done({ id, bytes: 0, digest: '' });
  await deliver(1);
  assert.deepEqual([state().last, state().blocked?.code], [1, 'PAYLOAD_DONE']);
});

test('content that is loaded after the lease ended starts nothing: another process may have done the number by then', async () => {
  const payloads = memoryPayloads({ clock: virtualClock() });
  let takesMs = LEASE_MS + 5_000;
  const { clock, worker, runs, state } = bench({
    maxHeldBytes: 1_000,
    payloads: {
      ...payloads,
      async get(ref) {
        const content = await payloads.get(ref);
        await sleep(clock, takesMs);
        return content;
      },
    },
  });
  const { deliver, sweep } = worker();
  assert.equal(kindOf(await deliver(2, { content: LARGE })), 'ack held');
  void deliver(1);
  await clock.advance(LEASE_MS + 1_000);
  takesMs = 0;
  await clock.until(sweep());
  assert.deepEqual([runs.length, state().last], [2, 2]);
  await clock.advance(30_000);
  assert.deepEqual(runs, ['1:a', `2:${LARGE}`]);
});
