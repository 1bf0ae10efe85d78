/**
 * `deploy/gcloud.sh` in an empty project, where every API is off and goes on refusing for a while after it was turned
 * on; broken off at each of its commands and run again; and taken away again.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { contents, type Projects, projects, type Ran } from './gcloud-project/project.ts';

const EVERYTHING =
  '--redis net:sub --function orders-once:dedup:orders:orders-unique --function pay:pipeline:payments:payments-ready --outbox pay:orders --enable-services --app-engine-service later'.split(
    ' ',
  );
/** What `gcloud app create` leaves: its API and the app. */
const WITH_APP = ['api appengine', 'app'];

const all = await projects();
after(async () => all.close());
const empty = await all.project(WITH_APP);

const whole = await all.run(EVERYTHING, { state: empty });

test('an empty project gets everything in one run', async () => {
  assert.equal(whole.code, 0, whole.err);
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

test('an API that is off is told from a thing that may be there, and without --enable-services nothing is changed', async () => {
  const { code, err, changes } = await all.run(
    EVERYTHING.filter((word) => word !== '--enable-services'),
    { state: empty },
  );
  assert.equal(code, 1);
  assert.match(err, /APIs are not enabled: .*firestore.*; add --enable-services/);
  assert.deepEqual(changes, []);
});

/** A command without what it is about: `pubsub topics add-iam-policy-binding`. */
const verbOf = (command = ''): string => command.replace(/ (--|[\w.@*-]+ --).*/, '');

/**
 * Each command, two at once. Of a row of the same ones, such as a collection's indexes, the first and the last: what
 * is left behind between them is left behind by either.
 */
async function forEachCommand(
  commands: readonly string[],
  each: (number: number, command: string) => Promise<void>,
): Promise<void> {
  const numbers = commands.flatMap((command, index) =>
    [commands[index - 1], commands[index + 1]].every((other) => verbOf(other) === verbOf(command))
      ? []
      : [[index + 1, command] as const],
  );
  const left = numbers.values();
  const lane = async (): Promise<void> => {
    for (const [number, command] of left) await each(number, command);
  };
  await Promise.all([lane(), lane()]);
}

const sameAs = async (one: Ran, other: Ran, what: string): Promise<void> => {
  assert.deepEqual(await contents(one.state), await contents(other.state), what);
};

test('a run that breaks off at any of its commands is run again, and comes to the same', async () => {
  const again = await all.run(EVERYTHING, { state: whole.state });
  await sameAs(again, whole, 'a second run');
  assert.ok(whole.changes.length > 100);
  await forEachCommand(whole.changes, async (number, command) => {
    const broken = await all.run(EVERYTHING, { state: empty, failAt: number });
    assert.equal(broken.code, 1, `at ${number}, ${command}: ${broken.out}`);
    assert.equal(broken.changes.length, number, `went on after ${command}`);
    const resumed = await all.run(EVERYTHING, { state: broken.state });
    assert.equal(resumed.code, 0, `after ${command}: ${resumed.err}`);
    await sameAs(resumed, whole, `after ${command}`);
  });
});

const destroy = async (from: Ran, more: Parameters<Projects['run']>[1] = {}): Promise<Ran> =>
  all.run([...EVERYTHING, '--destroy'], { state: from.state, ...more });

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
  const gone = await destroy(whole);
  const again = await all.run(EVERYTHING, { state: gone.state });
  assert.equal(again.code, 0, again.err);
  await sameAs(again, whole, 'deployed again');
});

test('--destroy that breaks off at any of its commands is run again, and comes to the same', async () => {
  const gone = await destroy(whole);
  await forEachCommand(gone.changes, async (number, command) => {
    const broken = await destroy(whole, { failAt: number });
    assert.equal(broken.code, 1, `at ${command}`);
    assert.equal(broken.changes.length, number, `went on after ${command}`);
    const resumed = await destroy(broken);
    assert.equal(resumed.code, 0, `after ${command}: ${resumed.err}`);
    await sameAs(resumed, gone, `after ${command}`);
  });
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
