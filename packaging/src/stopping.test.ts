/**
 * SIGTERM while requests are in flight, as a platform sends it to an instance that it takes away: what can be finished is
 * finished and answered; the process releases the claim or lease of the rest, so that another instance runs it at once.
 */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { DEPLOYABLES } from './deployables.ts';
import { type Gate, gate } from './gate.ts';
import { inFlight } from './in-flight.ts';
import { push, type Servers, startServers } from './local-servers.ts';
import { deployedFiles, writePackage } from './package.ts';
import { type Started, started } from './started.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const AT_ONCE = 5;
/** Of a process that has ended in order. One that reaches its own limit of eight seconds, below the platforms' ten, ends with 1. */
const IN_TIME = 0;
const TOO_LATE = 1;

let servers: Servers;
/** Inside the repository, whose node_modules has the locked versions. */
let out: string;

before(async () => {
  servers = await startServers();
  await mkdir(join(ROOT, 'packaging/dist'), { recursive: true });
  out = await mkdtemp(join(ROOT, 'packaging/dist/stopping-'));
  for (const deployable of DEPLOYABLES) {
    await writePackage(await deployedFiles(ROOT, deployable), deployable.name, out);
  }
});
after(async () => {
  await rm(out, { recursive: true, force: true });
  await servers.close();
});

const PUBSUB = 'PUBSUB_EMULATOR_HOST';
type Target = 'dedup' | 'delay' | 'fifo' | 'pipeline' | 'republisher';

/** `pubsub`: where its Pub/Sub is, if not where it really is. */
const run = async (target: Target, pubsub?: string): Promise<Started> =>
  started({
    folder: join(out, target === 'republisher' ? 'republisher' : 'functions'),
    env: { ...servers.env, CHECK_WINDOWS: 'off', ...(pubsub !== undefined && { [PUBSUB]: pubsub }) },
    ...(target !== 'republisher' && { target }),
  });

let streams = 0;
type Sent = Readonly<{ path: string; body: string; headers?: Readonly<Record<string, string>> }>;

/** Each of its own key: none waits for another. */
function delivery(target: Target): Sent {
  streams += 1;
  const id = `stopped-${target}-${streams}`;
  if (target === 'republisher') {
    // No task: it goes to the dead letters, which is a publish as any other.
    return { path: '/republish', body: `{${id}`, headers: { 'X-AppEngine-QueueName': 'delay-queue' } };
  }
  const ordered = target === 'fifo' || target === 'pipeline';
  return { path: '/', body: push(id, ordered ? { sequence: '1', sequenceKey: id } : {}) };
}

const isDone = (status: number): boolean => status === 204 || status === 200;

describe('what is in flight when SIGTERM comes', () => {
  const targets: readonly Target[] = ['dedup', 'delay', 'fifo', 'pipeline', 'republisher'];
  for (const target of targets.flatMap((name) => [name, name])) {
    test(`is finished and answered: ${target}`, async (t) => {
      const held: Gate = await gate(servers.env[PUBSUB] ?? '');
      t.after(held.close);
      const process = await run(target, held.address);
      t.after(process.close);
      const answers = await Promise.all(
        Array.from({ length: AT_ONCE }, async () => {
          const { path, body, headers } = delivery(target);
          return inFlight(`${process.url}${path}`, body, headers);
        }),
      );
      const end = process.signal('SIGTERM');
      held.open();
      const statuses = await Promise.all(answers.map(async ({ answer }) => (await answer).status));
      assert.ok(statuses.every(isDone), String(statuses));
      assert.equal((await end).code, IN_TIME);
    });
  }
});

describe('what cannot be finished when SIGTERM comes', { concurrency: true }, () => {
  for (const target of ['dedup', 'fifo', 'pipeline'] as const) {
    test(`is released, and another instance runs it at once: ${target}`, async (t) => {
      const held = await gate(servers.env[PUBSUB] ?? '');
      t.after(held.close);
      const first = await run(target, held.address);
      t.after(first.close);
      const sent = Array.from({ length: AT_ONCE }, () => delivery(target));
      const answers = await Promise.all(
        sent.map(async ({ path, body }) => inFlight(`${first.url}${path}`, body)),
      );
      const { code, written } = await first.signal('SIGTERM');
      const statuses = await Promise.all(answers.map(async ({ answer }) => (await answer).status));
      assert.deepEqual([code, statuses], [IN_TIME, Array.from({ length: AT_ONCE }, () => 503)], written);

      const second = await run(target);
      t.after(second.close);
      const again = await Promise.all(
        sent.map(async ({ path, body }) => (await second.post(path, body)).status),
      );
      assert.deepEqual(
        again,
        Array.from({ length: AT_ONCE }, () => 204),
      );
    });
  }
});

test('a task that cannot be finished when SIGTERM comes is answered, so that its queue sends it again', async (t) => {
  const held = await gate(servers.env[PUBSUB] ?? '');
  t.after(held.close);
  const process = await run('republisher', held.address);
  t.after(process.close);
  const { path, body, headers } = delivery('republisher');
  const { answer } = await inFlight(`${process.url}${path}`, body, headers);
  // It waits for its publish, which never ends, until its own limit: no other process ended it.
  assert.equal((await process.signal('SIGTERM')).code, TOO_LATE);
  assert.equal((await answer).status, 503);
});

test('a process without requests ends at once', async (t) => {
  for (const target of ['dedup', 'republisher'] as const) {
    const process = await run(target);
    t.after(process.close);
    assert.equal((await process.signal('SIGTERM')).code, IN_TIME);
  }
});

test('an idle connection that is kept alive holds nothing up', async (t) => {
  const process = await run('dedup');
  t.after(process.close);
  const { path, body } = delivery('dedup');
  assert.equal((await process.post(path, body)).status, 204);
  assert.equal((await process.signal('SIGTERM')).code, IN_TIME);
});
