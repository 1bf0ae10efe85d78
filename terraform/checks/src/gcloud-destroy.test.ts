/**
 * `deploy/gcloud.sh --destroy`: takes away what runs, keeps what holds messages, can be broken off, and be undone.
 */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { EVERYTHING, kindsOf, WITH_APP } from './gcloud-project/kinds.ts';
import { contents, type Projects, projects, type Ran } from './gcloud-project/project.ts';

/** `npm run test:deep` breaks off at each kind of command. */
const IS_DEEP = Number(process.env['TEST_SCHEDULES'] ?? 300) >= 3_000;

const all = await projects();
after(async () => all.close());
const empty = await all.project(WITH_APP);
const whole = await all.run(EVERYTHING, { state: empty });

const sameAs = async (one: Ran, other: Ran, what: string): Promise<void> => {
  assert.deepEqual(await contents(one.state), await contents(other.state), what);
};

const destroy = async (from: Ran, more: Parameters<Projects['run']>[1] = {}): Promise<Ran> =>
  all.run([...EVERYTHING, '--destroy'], { state: from.state, ...more });

const gone = await destroy(whole);

test('--destroy takes away what runs and every right, and keeps, stopped, what holds messages', async () => {
  const { code, err, out, state } = await destroy(whole);
  assert.equal(code, 0, err);
  const left = await contents(state);
  const kinds = Object.keys(left).filter((name) => !/^(indexes|fields|value|app$)/.test(name));
  assert.deepEqual(kinds, [
    'database pubsub-guarantees',
    'pubsub subscriptions orders-once-dead-letters',
    'pubsub subscriptions orders-once-push',
    'pubsub subscriptions pay-dead-letters',
    'pubsub subscriptions pay-push',
    'pubsub subscriptions republisher-dead-letters',
    'pubsub topics orders',
    'pubsub topics orders-once-dead-letters',
    'pubsub topics orders-unique',
    'pubsub topics pay-dead-letters',
    'pubsub topics payments',
    'pubsub topics payments-ready',
    'pubsub topics republisher-dead-letters',
    'redis instances guarantees',
    'role republisher_tasks',
    'state of tasks queues delay',
    'state of tasks queues wake',
    'tasks queues delay',
    'tasks queues wake',
  ]);
  assert.match(left['pubsub subscriptions pay-push'] ?? '', /^--push-endpoint=$/m);
  for (const kept of kinds.filter((name) => !name.startsWith('state'))) {
    const id = kept.split(' ').at(-1) ?? '';
    assert.match(out, new RegExp(`^# kept: .*\\b${id}\\b`, 'm'));
  }
});

test('a deployment after --destroy comes to the same as before', async () => {
  const again = await all.run(EVERYTHING, { state: gone.state });
  assert.equal(again.code, 0, again.err);
  await sameAs(again, whole, 'deployed again');
});

describe('--destroy that breaks off is run again, and comes to the same:', { concurrency: 2 }, () => {
  for (const [number, command] of kindsOf(gone.changes, IS_DEEP)) {
    test(`at ${number}, ${command.slice(0, 60)}`, async () => {
      const broken = await destroy(whole, { failAt: number });
      assert.equal(broken.code, 1);
      assert.equal(broken.changes.length, number, `went on after ${command}`);
      const resumed = await destroy(broken);
      assert.equal(resumed.code, 0, resumed.err);
      await sameAs(resumed, gone, command);
    });
  }
});

test('--destroy of some of the functions changes nothing, because the others use the same queues', async () => {
  const { code, err, changes } = await all.run(
    ['--function', 'orders-once:dedup:orders:orders-unique', '--destroy'],
    { state: whole.state },
  );
  assert.equal(code, 1);
  assert.match(err, /the function pay uses the same queues/);
  assert.deepEqual(changes, []);
});

test('an orchestrator of sagas is taken away like the others, with its topics kept, and others do not go without it', async () => {
  const sagas =
    '--function order-sagas:saga:saga:stock,couriers --enable-services --app-engine-service later'.split(' ');
  const deployed = await all.run(sagas, { state: empty });
  assert.equal(deployed.code, 0, deployed.err);
  const other = ['--function', 'orders-once:dedup:orders:orders-unique', '--destroy'];
  const alone = await all.run(other, { state: deployed.state });
  assert.match(alone.err, /the function order-sagas uses the same queues/);
  assert.deepEqual([alone.code, alone.changes], [1, []]);
  const { code, err, state } = await all.run([...sagas, '--destroy'], { state: deployed.state });
  assert.equal(code, 0, err);
  const own = Object.keys(await contents(state)).filter((name) => /order-sagas|topics|grant/.test(name));
  assert.deepEqual(own, [
    'pubsub subscriptions order-sagas-dead-letters',
    'pubsub subscriptions order-sagas-push',
    'pubsub topics couriers',
    'pubsub topics order-sagas-dead-letters',
    'pubsub topics republisher-dead-letters',
    'pubsub topics saga',
    'pubsub topics stock',
  ]);
});

test('--destroy with --dry-run prints what it would run, and runs nothing', async () => {
  const { code, out, changes } = await all.run([...EVERYTHING, '--destroy', '--dry-run'], {
    state: whole.state,
  });
  assert.equal(code, 0);
  assert.deepEqual(changes, []);
  assert.match(out, /^gcloud functions delete pay /m);
  assert.doesNotMatch(out, /^gcloud .* (create|deploy) /m);
});

test('--destroy in an empty project has nothing to do', async () => {
  const { code, err, state } = await all.run([...EVERYTHING, '--destroy'], { state: empty });
  assert.equal(code, 0, err);
  assert.deepEqual(await contents(state), await contents(empty));
});
