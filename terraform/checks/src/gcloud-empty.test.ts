/**
 * `deploy/gcloud.sh` in an empty project, where every API is off and goes on refusing for a while after it was turned
 * on; and broken off at each kind of its commands and run again.
 */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { EVERYTHING, kindsOf, WITH_APP } from './gcloud-project/kinds.ts';
import { contents, projects, type Ran } from './gcloud-project/project.ts';

/** `npm run test:deep` breaks off at each kind of command. */
const IS_DEEP = Number(process.env['TEST_SCHEDULES'] ?? 300) >= 3_000;

const all = await projects();
after(async () => all.close());
const empty = await all.project(WITH_APP);

const whole = await all.run(EVERYTHING, { state: empty });

test('an empty project gets everything in one run', async () => {
  assert.equal(whole.code, 0, whole.err);
  assert.ok(whole.changes.length > 100);
  const has = Object.keys(await contents(whole.state));
  for (const thing of [
    'database pubsub-guarantees',
    'pubsub subscriptions pay-push',
    'functions orders-once',
    'tasks queues delay',
    'job pay-sweep',
    'value guarantees-redis-url',
    'alert pubsub-guarantees: backlog of pay',
  ]) {
    assert.ok(has.includes(thing), `${thing} is not in ${has.join(', ')}`);
  }
});

test('the APIs come first, because nothing can be asked for without them', () => {
  assert.match(whole.changes[0] ?? '', /^services enable /);
});

test('an API that is off is not taken for a thing that is missing, and without --enable-services nothing is changed', async () => {
  const { code, err, changes } = await all.run(
    EVERYTHING.filter((word) => word !== '--enable-services'),
    { state: empty },
  );
  assert.equal(code, 1);
  assert.match(err, /APIs are not enabled: .*firestore.*; add --enable-services/);
  assert.deepEqual(changes, []);
});

const sameAs = async (one: Ran, other: Ran, what: string): Promise<void> => {
  assert.deepEqual(await contents(one.state), await contents(other.state), what);
};

test('a second run comes to the same', async () => {
  const again = await all.run(EVERYTHING, { state: whole.state });
  await sameAs(again, whole, 'a second run');
});

// A test each, so that a busy machine's time limit is for one.
describe('a run that breaks off is run again, and comes to the same:', { concurrency: 2 }, () => {
  for (const [number, command] of kindsOf(whole.changes, IS_DEEP)) {
    test(`at ${number}, ${command.slice(0, 60)}`, async () => {
      const broken = await all.run(EVERYTHING, { state: empty, failAt: number });
      assert.equal(broken.code, 1, broken.out);
      assert.equal(broken.changes.length, number, `went on after ${command}`);
      const resumed = await all.run(EVERYTHING, { state: broken.state });
      assert.equal(resumed.code, 0, resumed.err);
      await sameAs(resumed, whole, command);
    });
  }
});
