import assert from 'node:assert/strict';
import test from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { ack, type Context, type Handler, type LogFields, type Message, silent } from 'pubsub-guarantees';
import type { SubscriptionWindows } from 'pubsub-guarantees/dedup';
import { readConfig } from './config.ts';
import { checkWindowsAtStart } from './windows.ts';

const BASE = { GOOGLE_CLOUD_PROJECT: 'p', TARGET_TOPIC: 'out', DEAD_LETTER_TOPIC: 'dead-letters' };

function setUp(
  environment: Record<string, string>,
  answer: () => Promise<SubscriptionWindows | undefined> = async () => undefined,
  evictionPolicy: Promise<string | undefined> = Promise.resolve(undefined),
  next: Handler = async () => ack(),
) {
  const asked: string[] = [];
  const lines: (LogFields | undefined)[] = [];
  const middleware = checkWindowsAtStart(readConfig({ ...BASE, ...environment }, 'dedup'), {
    log: { ...silent, warn: (message, fields) => void lines.push({ message, ...fields }) },
    subscriptionWindows: (subscription) => {
      asked.push(subscription);
      return answer();
    },
    evictionPolicy,
  });
  const handler = middleware(next);
  const deliver = () => handler({} as Message, { source: 'projects/p/subscriptions/delivered' } as Context);
  const codes = () => lines.map((line) => line?.['code']);
  return { asked, lines, deliver, codes };
}

test('the first delivery asks nothing; the next one asks what is configured, and each window that does not fit is one line', async () => {
  const short = { ackDeadlineMs: 10_000, messageRetentionMs: 31 * 86_400_000 };
  const { asked, lines, codes, deliver } = setUp({ SOURCE_SUBSCRIPTION: 'orders' }, async () => short);
  await deliver();
  await turn();
  assert.deepEqual([asked, lines], [[], []]);
  for (let count = 0; count < 3; count += 1) {
    await deliver();
    await turn();
  }
  assert.deepEqual(asked, ['projects/p/subscriptions/orders']);
  assert.deepEqual(codes(), ['RETENTION_TOO_SHORT', 'ACK_DEADLINE_TOO_SHORT']);
  assert.equal(lines[0]?.['event'], 'windows_do_not_fit');
});

test('otherwise a delivery names it, and does not wait for the answer', async () => {
  const { asked, deliver } = setUp({}, () => new Promise(() => {}));
  assert.deepEqual(await Promise.all([deliver(), deliver()]), [ack(), ack()]);
  assert.deepEqual(asked, []);
  assert.deepEqual(await Promise.all([deliver(), deliver()]), [ack(), ack()]);
  assert.deepEqual(asked, ['projects/p/subscriptions/delivered']);
});

test('a delivery that fails warms the process as well', async () => {
  const { asked, deliver } = setUp(
    {},
    async () => ({}),
    undefined,
    () => Promise.reject(new Error('down')),
  );
  await assert.rejects(deliver(), /down/);
  await assert.rejects(deliver(), /down/);
  assert.equal(asked.length, 1);
});

test('a question without an answer is asked again by later deliveries, and its answer is what counts', async () => {
  const answers = [undefined, { messageRetentionMs: 600_000 }];
  const { asked, codes, deliver } = setUp({ DEDUP_RETENTION: '1h' }, async () => answers.shift());
  for (let count = 0; count < 5; count += 1) {
    await deliver();
    await turn();
  }
  assert.equal(asked.length, 2);
  assert.deepEqual(codes(), []);
});

test('what may not be read is not judged; the environment is all the same', async () => {
  const times = { FUNCTION_TIMEOUT: '61s', DEDUP_RETENTION: '1h' };
  const { asked, codes, deliver } = setUp({ SOURCE_SUBSCRIPTION: 'orders', ...times });
  for (let count = 0; count < 6; count += 1) {
    await deliver();
    await turn();
  }
  assert.equal(asked.length, 3);
  assert.deepEqual(codes(), ['RETENTION_TOO_SHORT']);
});

test('B44: the eviction policy is judged when Redis answers, however late', async () => {
  let answer = (_policy: string): void => {};
  const policy = new Promise<string>((resolve) => (answer = resolve));
  const { codes } = setUp({ SOURCE_SUBSCRIPTION: 'orders' }, undefined, policy);
  await turn();
  assert.deepEqual(codes(), []);
  answer('allkeys-lru');
  await turn();
  assert.deepEqual(codes(), ['RECORDS_EVICTED']);
});

test('a question that fails is one line and changes no delivery', async () => {
  const { lines, deliver } = setUp({}, () => Promise.reject(new Error('no such client')));
  await deliver();
  assert.deepEqual(await deliver(), ack());
  await turn();
  assert.deepEqual(await deliver(), ack());
  await turn();
  assert.match(String(lines[0]?.['error']), /no such client/);
  assert.equal(lines.length, 1);
});

test('the function asks for nothing and logs nothing where the check is off', async () => {
  const off = { SOURCE_SUBSCRIPTION: 'orders', CHECK_WINDOWS: 'off' };
  const { asked, lines, deliver } = setUp(off, undefined, Promise.resolve('allkeys-lru'));
  await deliver();
  await deliver();
  await turn();
  assert.deepEqual([asked, lines], [[], []]);
});
