/**
 * A dead letter that is sent again keeps its place: its version is that of its first publish, so what was asked for
 * since then stands.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '../../../shared/src/message.ts';
import { play, reasonOf } from './play.ts';

const KEY = 'order/1';

/** As an operator publishes it again now, with the time of its first publish. */
const again = (fresh: Message, first: Message): Message => ({
  ...fresh,
  attributes: { ...fresh.attributes, originPublishTime: first.publishTime.toISOString() },
});

test('a dead letter that is sent again does not replace a newer schedule of its key', async () => {
  const { clock, deliver, message, published } = play();
  const old = message({ scheduleKey: KEY, delay: '600' }, 'old');
  await clock.advance(1_000);
  assert.equal(reasonOf(await deliver(message({ scheduleKey: KEY, delay: '600' }, 'new'))), 'scheduled');
  await clock.advance(1_000);
  const relaunched = again(message({ scheduleKey: KEY, delay: '600' }, 'old'), old);
  assert.equal(reasonOf(await deliver(relaunched)), 'stale');
  await clock.advance(3_600_000);
  assert.deepEqual(published(), ['new']);
});

test('a cancel that is sent again does not withdraw a newer schedule', async () => {
  const { clock, deliver, message, published } = play();
  const old = message({ scheduleKey: KEY, cancel: 'true' });
  await clock.advance(1_000);
  await deliver(message({ scheduleKey: KEY, delay: '600' }, 'new'));
  assert.equal(reasonOf(await deliver(again(message({ scheduleKey: KEY, cancel: 'true' }), old))), 'stale');
  await clock.advance(3_600_000);
  assert.deepEqual(published(), ['new']);
});

test('a dead letter that is sent again is scheduled where nothing newer is there, also over its own end', async () => {
  const { clock, deliver, message, published, target } = play();
  const first = message({ scheduleKey: KEY, delay: '1' }, 'first');
  await deliver(first);
  await clock.advance(60_000);
  assert.deepEqual(published(), ['first']);
  const relaunched = again(message({ scheduleKey: KEY, delay: '1' }, 'again'), first);
  assert.equal(reasonOf(await deliver(relaunched)), 'scheduled');
  await clock.advance(60_000);
  assert.deepEqual(published(), ['first', 'again']);
  assert.equal(target.published[1]?.attributes['originPublishTime'], first.publishTime.toISOString());
});

test('an originPublishTime ahead of the publish time gives no later place: a publisher cannot claim the future', async () => {
  const { clock, deliver, message, published } = play();
  const claims = { originPublishTime: '2031-01-01T00:00:00Z' };
  await deliver(message({ scheduleKey: KEY, delay: '600', ...claims }, 'claims'));
  await clock.advance(1_000);
  assert.equal(reasonOf(await deliver(message({ scheduleKey: KEY, delay: '600' }, 'later'))), 'scheduled');
  await clock.advance(3_600_000);
  assert.deepEqual(published(), ['later']);
});

test('an originPublishTime that is no time, or the epoch, counts as none', async () => {
  const { clock, deliver, message, published } = play();
  await deliver(message({ scheduleKey: KEY, delay: '600' }, 'first'));
  for (const originPublishTime of ['yesterday', '1970-01-01T00:00:00Z', '']) {
    await clock.advance(1_000);
    const next = message({ scheduleKey: KEY, delay: '600', originPublishTime }, originPublishTime);
    assert.equal(reasonOf(await deliver(next)), 'scheduled', originPublishTime);
  }
  await clock.advance(3_600_000);
  assert.deepEqual(published(), ['']);
});
