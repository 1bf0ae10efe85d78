import assert from 'node:assert/strict';
import { test } from 'node:test';
import { outboxConfig } from './outbox-config.ts';
import { wakeConfig } from './wake-config.ts';

const ALL = {
  WAKE_QUEUE: 'wake',
  TASKS_LOCATION: 'us-central1',
  WAKE_URL: 'https://fifo-123.us-central1.run.app',
  WAKE_SERVICE_ACCOUNT: 'push@p.iam.gserviceaccount.com',
};

test('nothing is woken unless there is a queue for it', () => {
  assert.equal(wakeConfig({}, 'p', true), undefined);
  assert.equal(wakeConfig({ WAKE_QUEUE: '' }, 'p', false), undefined);
});

test('a queue, this function’s address and an account make wake-ups', () => {
  assert.deepEqual(wakeConfig(ALL, 'p', true), {
    queue: 'projects/p/locations/us-central1/queues/wake',
    url: 'https://fifo-123.us-central1.run.app',
    serviceAccount: 'push@p.iam.gserviceaccount.com',
  });
  const local = { ...ALL, CLOUD_TASKS_EMULATOR_HOST: '127.0.0.1:7', WAKE_URL: 'http://127.0.0.1:8/' };
  assert.equal(wakeConfig(local, 'p', true)?.url, 'http://127.0.0.1:8/');
});

test('what is missing, wrong or without effect is refused by its name', () => {
  const { WAKE_QUEUE: _, ...withoutQueue } = ALL;
  const wrong: [object, boolean, RegExp][] = [
    [withoutQueue, true, /^WAKE_URL is "https.*; accepted: only with WAKE_QUEUE/],
    [ALL, false, /^WAKE_QUEUE is "wake"; accepted: only for fifo and pipeline/],
    [{ ...ALL, TASKS_LOCATION: '' }, true, /^TASKS_LOCATION is not set; accepted: .*WAKE_QUEUE/],
    [{ ...ALL, WAKE_QUEUE: 'a/b' }, true, /^WAKE_QUEUE is "a\/b"; accepted: a queue ID/],
    [{ ...ALL, WAKE_URL: '' }, true, /^WAKE_URL is not set; accepted: the https URL/],
    [{ ...ALL, WAKE_URL: 'fifo' }, true, /^WAKE_URL is "fifo"; accepted/],
    [{ ...ALL, WAKE_URL: 'https://host/fifo' }, true, /^WAKE_URL is .*; accepted: .* without a path/],
    [{ ...ALL, WAKE_SERVICE_ACCOUNT: '' }, true, /^WAKE_SERVICE_ACCOUNT is not set; accepted: the e-mail/],
    [{ ...ALL, WAKE_SERVICE_ACCOUNT: 'me' }, true, /^WAKE_SERVICE_ACCOUNT is "me"; accepted/],
  ];
  for (const [environment, hasStreams, message] of wrong) {
    assert.throws(() => wakeConfig(environment as Record<string, string>, 'p', hasStreams), { message });
  }
});

test('the outbox is off unless it is turned on, and the counters have no scope', () => {
  assert.deepEqual(outboxConfig({}, false), { isOn: false });
  assert.deepEqual(outboxConfig({ OUTBOX: 'on', COUNTER_SCOPE: 'orders' }, false), {
    isOn: true,
    counterScope: 'orders',
  });
  assert.deepEqual(outboxConfig({ COUNTER_SCOPE: 'orders' }, true), { isOn: false, counterScope: 'orders' });
  assert.deepEqual(outboxConfig({ OUTBOX: 'on', OUTBOX_SHARDS: '32' }, false), { isOn: true, shards: 32 });
  for (const value of ['0', '257', '1.5', 'x'])
    assert.throws(() => outboxConfig({ OUTBOX: 'on', OUTBOX_SHARDS: value }, false), /from 1 to 256/);
  assert.throws(() => outboxConfig({ OUTBOX_SHARDS: '32' }, false), /accepted: only with OUTBOX=on/);
  assert.throws(() => outboxConfig({ OUTBOX: 'yes' }, false), /OUTBOX is "yes"; accepted: off or on/);
  assert.throws(
    () => outboxConfig({ COUNTER_SCOPE: 'orders' }, false),
    /COUNTER_SCOPE is "orders"; accepted: only with OUTBOX=on or ORDER_START=counter/,
  );
});
