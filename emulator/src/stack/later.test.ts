/**
 * Later with a ledger and a payload store through the whole toolkit: Firestore refuses a query whose index the deployed
 * database would not have, and removes what has expired as the deployed policies do.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { laterFixture } from './later-fixture.ts';
import { startToolkit, type Toolkit } from './toolkit.ts';

const [SECOND_MS, MINUTE_MS, DAY_MS] = [1_000, 60_000, 86_400_000];

/** The indexes of each collection group, and nothing else: see docs/reference.md. */
const INDEXED = {
  'pubsub-guarantees-claims': [],
  'pubsub-guarantees-order-streams': ['readyAt', 'waitingSince', 'blocked.at'],
  'pubsub-guarantees-order-held': ['number'],
  'pubsub-guarantees-counters': [],
  'pubsub-guarantees-outbox-rows': ['pendingAt', 'place'],
  'pubsub-guarantees-outbox-streams': ['blockedAt DESCENDING'],
  'pubsub-guarantees-payload': ['expiresAt'],
  'pubsub-guarantees-payload-chunks': ['expiresAt', 'unfinishedAt'],
  'pubsub-guarantees-schedules': ['sweep', 'byKey', 'byDueTime'],
};
const EXPIRING = ['claims', 'payload', 'payload-chunks', 'schedules'];

const fieldOverrides = Object.entries(INDEXED).flatMap(([collectionGroup, fields]) => [
  { collectionGroup, fieldPath: '*', indexes: [] },
  ...fields.map((field) => {
    const [fieldPath, order = 'ASCENDING'] = field.split(' ');
    return { collectionGroup, fieldPath, indexes: [{ queryScope: 'COLLECTION', order }] };
  }),
]);

let stack: Toolkit;
const lines: string[] = [];
const { publish, pulled, purge, held } = laterFixture(() => stack);

before(async () => {
  stack = await startToolkit({
    log: (line) => lines.push(line),
    indexes: { mode: 'enforce', definitions: { fieldOverrides } },
    ttl: EXPIRING.map((name) => ({ collectionGroup: `pubsub-guarantees-${name}`, field: 'expiresAt' })),
  });
  stack.clock.freeze();
});
after(() => stack?.close());

const texts = async (subscription: string): Promise<readonly string[]> =>
  (await pulled(subscription)).map(({ data }) => data.toString());

for (const route of ['delay', 'pipeline']) {
  const out = `${route}-out-sub`;
  const send = (text: string, attributes: Record<string, string>): Promise<void> =>
    publish(`${route}-in`, { data: Buffer.from(text), attributes });

  test(`${route}: a later message of a key replaces the former, and comes once, when it is due`, async () => {
    await send('old', { scheduleKey: 'dinner', delay: '60' });
    await send('new', { scheduleKey: 'dinner', delay: '120' });
    // A second has passed since.
    await stack.clock.advance(119 * SECOND_MS - 1);
    assert.deepEqual(await texts(out), []);
    await stack.clock.advance(1);
    assert.deepEqual(await texts(out), ['new']);
    await stack.clock.advance(DAY_MS);
    assert.deepEqual(await texts(out), []);
  });

  test(`${route}: what is withdrawn never comes, and its key is free for what is newer`, async () => {
    await send('withdrawn', { scheduleKey: 'train', delay: '60' });
    await send('', { scheduleKey: 'train', cancel: 'true' });
    await stack.clock.advance(DAY_MS);
    assert.deepEqual(await texts(out), []);
    await send('anew', { scheduleKey: 'train', delay: '1' });
    assert.deepEqual(await texts(out), ['anew']);
  });

  test(`${route}: three million bytes arrive byte for byte when they are due, with a key and without`, async () => {
    const data = randomBytes(3_000_000);
    for (const attributes of [{ delay: '60' }, { delay: '60', scheduleKey: 'film' }]) {
      const before = stack.clock.now();
      await publish(`${route}-in`, { data, attributes });
      await stack.clock.advance(59 * SECOND_MS - 1);
      assert.deepEqual(await pulled(out), []);
      await stack.clock.advance(1);
      const [arrived, ...more] = await pulled(out);
      assert.ok(arrived?.data.equals(data) === true, 'other bytes');
      assert.deepEqual([arrived?.atMs, more.length], [before + 60 * SECOND_MS, 0]);
    }
  });

  test(`${route}: a task that is purged comes back by the sweep`, async () => {
    await send('purged', { scheduleKey: 'lost', delay: '60' });
    await purge();
    await stack.clock.advance(5 * MINUTE_MS);
    assert.deepEqual(await texts(out), []);
    // Lost ten minutes after its due time; the sweep of one move gives it a task, which the next one runs.
    await stack.clock.advance(10 * MINUTE_MS);
    await stack.clock.advance(SECOND_MS);
    assert.deepEqual(await texts(out), ['purged']);
  });
}

test('no sweep has failed, no query lacked an index, and after the retention nothing is left', async () => {
  assert.deepEqual(
    // A store that did not answer in time is no failed sweep: the next one looks again.
    lines.filter(
      (line) =>
        /\[sweep\]|FAILED_PRECONDITION|needs an index/.test(line) &&
        !/\[sweep\] .*no answer to .* within \d+ ms/.test(line),
    ),
    [],
  );
  assert.ok(held().firestore.documents > 0);
  await stack.clock.advance(64 * DAY_MS);
  // How far the relay of the outbox has looked stays.
  assert.deepEqual([held().firestore.documents, held().tasks.pending], [1, 0]);
});

test('0, 1 s, 29, 30, 31 and 90 days and ten years: each comes once, when it is due, in the expected number of tasks', async () => {
  const days = [0, 1 / 86_400, 29, 30, 31, 90, 3_650];
  const seconds = days.map((count) => Math.round(count * 86_400));
  const { dispatched } = held().tasks;
  const start = stack.clock.now();
  for (const delay of seconds) await publish('delay-in', { attributes: { delay: String(delay) } }, 0);
  await stack.clock.advance(0);
  for (const delay of seconds) {
    const dueMs = start + delay * SECOND_MS;
    if (delay > 0) {
      await stack.clock.advance(dueMs - stack.clock.now() - 1);
      assert.deepEqual(await pulled('delay-out-sub'), [], `${delay} s: early`);
      await stack.clock.advance(1);
    }
    const arrived = await pulled('delay-out-sub');
    assert.deepEqual(
      arrived.map(({ atMs }) => atMs),
      [dueMs],
      `${delay} s`,
    );
  }
  // 29.5 days at most from task to task.
  const tasks = seconds.map((delay) => Math.ceil(delay / (29.5 * 86_400)));
  assert.equal(
    held().tasks.dispatched - dispatched,
    tasks.reduce((sum, count) => sum + count),
  );
  await publish('delay-in', { attributes: { delay: String(3_650 * 86_400 + 1) } });
  const [refused] = await pulled('dead-letters-sub');
  assert.equal(refused?.attributes['deadLetterReason'], 'INVALID_ATTRIBUTE');
});
