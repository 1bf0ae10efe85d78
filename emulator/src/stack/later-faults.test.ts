/**
 * Delayed delivery while things go wrong, over real processes and sockets: nothing is lost or early, repeats have one
 * `dedupId`, and where a store is behind there is no second effect.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { until } from '../until.ts';
import { type Arrived, laterFixture } from './later-fixture.ts';
import { startToolkit, type Toolkit } from './toolkit.ts';

const SECOND_MS = 1_000;
const DELAY_S = 60;

let stack: Toolkit;
const lines: string[] = [];
const { publish, pulled, held } = laterFixture(() => stack);

before(async () => {
  stack = await startToolkit({ log: (line) => lines.push(line) });
  stack.clock.freeze();
});
after(() => stack?.close());

type Rule = Readonly<{ service: string; method: string; nth?: readonly number[]; action: object }>;
type Case = Readonly<{
  /** While the message is scheduled. */
  early?: readonly Rule[];
  /** While it is published. `Publish` is about the topic that the republisher publishes to. */
  late?: readonly Rule[];
  /**
   * What may come twice, under one `dedupId`, where no store is behind: a message without an entry in the ledger, whose
   * task ran twice; or any message, because the publish itself was made twice.
   */
  repeats?: 'plain' | 'any';
}>;

const create = (nth: readonly number[], action: object): Rule => ({
  service: 'tasks',
  method: 'CreateTask',
  nth,
  action,
});
const dispatch = (action: object): Rule => ({ service: 'tasks', method: 'dispatch', nth: [1], action });
const republish = (nth: readonly number[], action: object): Rule => ({
  service: 'pubsub',
  method: 'Publish',
  nth,
  action,
});

const CASES: Readonly<Record<string, Case>> = {
  'createTask is done and its reply is lost: the call is made again': {
    early: [create([1], { type: 'lose-reply' })],
  },
  'createTask is done and its reply is lost: the message is delivered again': {
    early: [create([1], { type: 'lose-reply', code: 'INTERNAL' })],
  },
  'createTask is refused for the moment': { early: [create([1, 2], { type: 'fail', code: 'UNAVAILABLE' })] },
  'the function’s answer to Pub/Sub is lost': {
    early: [{ service: 'pubsub', method: 'push', nth: [1], action: { type: 'lose-reply' } }],
  },
  'the republisher answers late, after its caller has gone': {
    late: [republish([1], { type: 'delay', ms: 300 }), dispatch({ type: 'lose-reply' })],
    repeats: 'plain',
  },
  'the task is run twice at once': { late: [dispatch({ type: 'duplicate' })], repeats: 'plain' },
  'the task is run twice at once, while the publish takes its time': {
    late: [republish([1], { type: 'delay', ms: 300 }), dispatch({ type: 'duplicate' })],
    repeats: 'plain',
  },
  'the publish fails': { late: [republish([1], { type: 'fail', code: 'PERMISSION_DENIED' })] },
  'the publish is done and its reply is lost': {
    late: [republish([1], { type: 'lose-reply' })],
    repeats: 'any',
  },
};

/** Messages and where the republisher publishes them. */
const ROUTES = [
  { name: 'delay', route: 'delay', back: 'delay-out', attributes: {} },
  { name: 'delay, by key', route: 'delay', back: 'delay-out', attributes: { scheduleKey: 'k' } },
  { name: 'pipeline, which has a store behind', route: 'pipeline', back: 'pipeline-in', attributes: {} },
] as const;
type Route = (typeof ROUTES)[number];

/** Moves on until the tasks are gone, and a minute more: longer than the lease of a run that died. */
async function ended(out: string): Promise<readonly Arrived[]> {
  const all: Arrived[] = [];
  for (let turn = 0; turn < 60 && held().tasks.pending > 0; turn += 1) {
    await stack.clock.advance(5 * SECOND_MS);
    all.push(...(await pulled(out)));
  }
  await stack.clock.advance(60 * SECOND_MS);
  all.push(...(await pulled(out)));
  assert.equal(held().tasks.pending, 0, lines.slice(-10).join('\n'));
  return all;
}

async function scheduled({ route, attributes }: Route): Promise<number> {
  const dueMs = stack.clock.now() + DELAY_S * SECOND_MS;
  await publish(`${route}-in`, { attributes: { ...attributes, delay: String(DELAY_S) } });
  return dueMs;
}

function assertOnTime(arrived: readonly Arrived[], dueMs: number, most: number): void {
  const shown = () => `${JSON.stringify(arrived)} due ${dueMs}\n${lines.slice(-10).join('\n')}`;
  assert.ok(arrived.length >= 1, `lost: ${shown()}`);
  assert.ok(arrived.length <= most, `too often: ${shown()}`);
  assert.ok(
    arrived.every(({ atMs }) => atMs >= dueMs),
    `early: ${shown()}`,
  );
  assert.equal(new Set(arrived.map(({ attributes }) => attributes['dedupId'])).size, 1, shown());
}

function mostOf({ name, route }: Route, repeats: Case['repeats']): number {
  if (route === 'pipeline' || repeats === undefined) return 1;
  return name === 'delay' || repeats === 'any' ? 2 : 1;
}

for (const each of ROUTES) {
  const out = `${each.route}-out-sub`;

  for (const [name, { early = [], late = [], repeats }] of Object.entries(CASES)) {
    test(`${each.name}: ${name}`, async () => {
      stack.faults.set({ rules: early });
      const dueMs = await scheduled(each);
      await stack.clock.advance(dueMs - stack.clock.now() - 1);
      assert.deepEqual(await pulled(out), []);
      assert.equal(held().tasks.pending, 1, 'tasks of one message');
      const before = stack.faults.log().length;
      assert.ok(before >= early.length, 'the fault did not happen');
      const topic = `projects/${stack.addresses.project}/topics/${each.back}`;
      const rules = late.map((rule) => (rule.method === 'Publish' ? { ...rule, resource: topic } : rule));
      stack.faults.set({ rules });
      const arrived = await ended(out);
      assert.ok(stack.faults.log().length >= late.length, 'the fault did not happen');
      assertOnTime(arrived, dueMs, mostOf(each, repeats));
      stack.faults.clear();
    });
  }
}

test('the functions are killed between the tasks and their answers', async () => {
  // Of every call: so the functions are still at it.
  stack.faults.set({
    rules: [{ service: 'tasks', method: 'CreateTask', action: { type: 'lose-reply' } }],
  });
  const dueMs = stack.clock.now() + DELAY_S * SECOND_MS;
  for (const { name, route, attributes } of ROUTES) {
    await publish(`${route}-in`, { attributes: { ...attributes, name, delay: String(DELAY_S) } }, 0);
  }
  await until(() => held().tasks.pending >= ROUTES.length, 'the tasks are there');
  assert.equal(held().tasks.pending, ROUTES.length);
  await stack.functions.kill();
  stack.faults.clear();
  await stack.functions.start();
  await stack.clock.advance(dueMs - stack.clock.now() - 1);
  const outputs = ['delay-out-sub', 'pipeline-out-sub'];
  for (const out of outputs) assert.deepEqual(await pulled(out), []);
  assert.equal(held().tasks.pending, ROUTES.length, 'the redeliveries found the tasks that were there');
  await stack.clock.advance(1);
  const arrived = (await Promise.all(outputs.map(pulled))).flat();
  for (const { name } of ROUTES) {
    assertOnTime(
      arrived.filter(({ attributes }) => attributes['name'] === name),
      dueMs,
      1,
    );
  }
});
