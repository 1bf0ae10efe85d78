import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contextFor } from '../context.ts';
import { memoryInbox } from '../dedup/inbox-memory.ts';
import { memoryPublisher } from '../testing/memory-publisher.ts';
import { anInstance, inTransaction } from '../testing/saga-samples.ts';
import { virtualClock } from '../testing/virtual-clock.ts';
import { memorySagas } from './memory.ts';
import { sweepSagas } from './sweep.ts';

const MINUTE_MS = 60_000;

/** As many instances as asked for, which were due three minutes ago. */
async function late(count: number) {
  const clock = virtualClock();
  const inbox = memoryInbox({ clock });
  const store = memorySagas(inbox, { clock });
  for (let index = 0; index < count; index += 1) {
    const ref = { consumer: 'order-sagas', saga: 'order', id: `i${index}` };
    const instance = anInstance({ ref, wakeAtMs: clock.now() - 3 * MINUTE_MS });
    await clock.until(inTransaction(inbox, async (transaction) => store.writeIn(transaction, instance)));
  }
  const publisher = memoryPublisher();
  const sweep = sweepSagas(store, publisher, { topic: 'saga', clock });
  return { clock, publisher, sweep, context: contextFor(clock, { consumer: 'order-sagas' }) };
}

test('every instance whose timer is late gets a tick of its own, of whatever arm', async () => {
  const { publisher, sweep, context } = await late(250);
  assert.deepEqual(await sweep(context), { due: 250, done: 250, failed: 0, isWhole: true });
  const ids = publisher.published.map(({ attributes }) => attributes['sagaId']);
  assert.equal(new Set(ids).size, 250);
  for (const { topic, attributes } of publisher.published) {
    assert.equal(topic, 'saga');
    assert.deepEqual([attributes['sagaAction'], attributes['sagaArm']], ['tick', 'sweep']);
  }
});

test('S7: each sweep sends another message, for the last one may be lost', async () => {
  const { publisher, sweep, context } = await late(1);
  await sweep(context);
  await sweep(context);
  const [one, other] = publisher.published.map(({ attributes }) => attributes['dedupId']);
  assert.notEqual(one, other);
});

test('what could not be published stays due, and holds up no other', async () => {
  const { publisher, sweep, context } = await late(3);
  publisher.failOn(2, 'refused');
  assert.deepEqual(await sweep(context), { due: 3, done: 2, failed: 1, isWhole: true });
  assert.equal((await sweep(context)).done, 3);
});

test('a sweep whose time is over says that it has not seen all', async () => {
  const { clock, sweep, context } = await late(3);
  const over = { ...context, deadline: clock.monotonic() };
  assert.deepEqual(await sweep(over), { due: 0, done: 0, failed: 0, isWhole: false });
  const stopped = { ...context, signal: AbortSignal.abort() };
  assert.equal((await sweep(stopped)).isWhole, false);
});

test('instances of another consumer are not looked at', async () => {
  const { clock, sweep } = await late(2);
  assert.equal((await sweep(contextFor(clock, { consumer: 'other' }))).due, 0);
});
