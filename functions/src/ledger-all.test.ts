/**
 * `DELAY_LEDGER=all` end to end: the function and the republisher as processes that are killed, two queues that are
 * purged, calls that fail, and payloads that no task holds, on a clock that is stopped.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  freePorts,
  PROGRAM_PRELOAD,
  seedFrom,
  type Stack,
  startStack,
  until,
} from 'pubsub-guarantees-emulator';

const PROJECT = 'demo-project';
const QUEUES = ['delay-1', 'delay-2'];
const SECOND_MS = 1_000;

let stack: Stack;
let [functionPort, republisherPort] = [0, 0];
const lines: string[] = [];
const children = new Map<'function' | 'republisher', ChildProcess>();

const common = (): Record<string, string> => {
  const { pubsub, firestore, tasks, control } = stack.addresses;
  return {
    PATH: process.env['PATH'] ?? '',
    GOOGLE_CLOUD_PROJECT: PROJECT,
    PUBSUB_EMULATOR_HOST: pubsub,
    FIRESTORE_EMULATOR_HOST: firestore,
    CLOUD_TASKS_EMULATOR_HOST: tasks,
    LOCAL_STACK_CONTROL: control,
    METADATA_SERVER_DETECTION: 'none',
    DEAD_LETTER_TOPIC: 'dead-letters',
    DELAY_QUEUES: QUEUES.join(','),
    TASKS_LOCATION: 'us-central1',
  };
};

const framework = join(
  dirname(createRequire(import.meta.url).resolve('@google-cloud/functions-framework')),
  'main.js',
);
const [functions, republisher] = ['../', '../../appengine/src/main.ts'].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
) as [string, string];

const PROGRAMS = {
  function: () => ({
    port: functionPort,
    args: [framework, '--target=delay', `--source=${functions}`, `--port=${functionPort}`],
    env: {
      FUNCTION_TARGET: 'delay',
      FUNCTION_SIGNATURE_TYPE: 'http',
      CONSUMER: 'delay',
      TARGET_TOPIC: 'later-out',
      DELAY_LEDGER: 'all',
    },
  }),
  republisher: () => ({
    port: republisherPort,
    args: [republisher],
    env: { PORT: String(republisherPort), GAE_ENV: 'standard', ALLOWED_TOPICS: 'later-out' },
  }),
} as const;
type Program = keyof typeof PROGRAMS;

async function launch(name: Program): Promise<void> {
  const { port, args, env } = PROGRAMS[name]();
  const child = spawn(process.execPath, ['--conditions=source', '--import', PROGRAM_PRELOAD, ...args], {
    env: { ...common(), NODE_ENV: 'production', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (text) => lines.push(`[${name}] ${String(text).trim()}`));
  }
  children.set(name, child);
  await until(
    () => listens(port),
    () => `${name} listens\n${lines.slice(-8).join('\n')}`,
  );
}

/** As a crash: nothing of it goes on. */
async function kill(name: Program): Promise<void> {
  const child = children.get(name)!;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await gone;
}

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    const answer = (is: boolean) => (): void => {
      socket.destroy();
      resolve(is);
    };
    socket.once('connect', answer(true)).once('error', answer(false));
  });

async function rest<Answer>(method: 'PUT' | 'POST', path: string, body: object): Promise<Answer> {
  const url = `${stack.addresses.control}/${path.replace('PROJECT', PROJECT)}`;
  const response = await fetch(url, { method, body: JSON.stringify(body) });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text) as Answer;
}

before(async () => {
  [functionPort, republisherPort] = (await freePorts(2)) as [number, number];
  const pushConfig = { pushEndpoint: `http://127.0.0.1:${functionPort}/` };
  const retryPolicy = { minimumBackoff: '1s', maximumBackoff: '2s' };
  const retryConfig = { maxAttempts: -1, minBackoff: '1s', maxBackoff: '5s' };
  const lasting = { expirationPeriod: 'never' };
  stack = await startStack({
    appEngine: `http://127.0.0.1:${republisherPort}`,
    seed: seedFrom({
      topics: ['later-in', 'later-out', 'dead-letters'],
      subscriptions: {
        'later-in-sub': { topic: 'later-in', pushConfig, retryPolicy, ackDeadlineSeconds: 60, ...lasting },
        'later-out-sub': { topic: 'later-out', ackDeadlineSeconds: 600, ...lasting },
        'dead-letters-sub': { topic: 'dead-letters', ackDeadlineSeconds: 600, ...lasting },
      },
      queues: Object.fromEntries(QUEUES.map((id) => [id, { retryConfig }])),
    }),
  });
  stack.clock.freeze();
  await Promise.all([launch('function'), launch('republisher')]);
});
after(async () => {
  await Promise.all([...children.keys()].map(kill));
  await stack?.close();
});

type Sent = Readonly<{ name: string; data?: Buffer; attributes: Record<string, string> }>;
async function publish(messages: readonly Sent[]): Promise<void> {
  await rest('POST', 'v1/projects/PROJECT/topics/later-in:publish', {
    messages: messages.map(({ name, data = Buffer.from(name), attributes }) => ({
      data: data.toString('base64'),
      attributes: { ...attributes, name },
    })),
  });
}

type Arrived = Readonly<{ name: string; dedupId: string | undefined; digest: string; atMs: number }>;
type Pulled = Readonly<{
  ackId: string;
  message: { data?: string; attributes: Record<string, string>; publishTime: string };
}>;
async function pulled(id: string): Promise<readonly Arrived[]> {
  const all: Arrived[] = [];
  for (let look = 0; look < 100; look += 1) {
    const base = `v1/projects/PROJECT/subscriptions/${id}-sub`;
    const request = { maxMessages: 100, returnImmediately: true };
    const { receivedMessages = [] } = await rest<{ receivedMessages?: Pulled[] }>(
      'POST',
      `${base}:pull`,
      request,
    );
    if (receivedMessages.length === 0) return all;
    await rest('POST', `${base}:acknowledge`, { ackIds: receivedMessages.map(({ ackId }) => ackId) });
    for (const { data = '', attributes, publishTime } of receivedMessages.map(({ message }) => message)) {
      const digest = digestOf(Buffer.from(data, 'base64'));
      const name = attributes['name'] ?? '';
      all.push({ name, dedupId: attributes['dedupId'], digest, atMs: Date.parse(publishTime) });
    }
  }
  return assert.fail('the subscription does not end');
}
const digestOf = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex');

const tasks = (): number => (stack.state() as unknown as { tasks: { pending: number } }).tasks.pending;
const sweep = async (): Promise<void> => {
  const response = await fetch(`http://127.0.0.1:${functionPort}/sweep`, { method: 'POST' });
  assert.equal(response.status, 200, await response.text());
};
/** Moves on step by step, each with a turn of the sweep. */
async function settle(turns: number, stepMs: number): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) {
    await stack.clock.advance(stepMs);
    await sweep();
  }
}
/** Half a second in some calls, so that a kill finds others before, in and after them. */
const slow = (service: string, method: string, nth: readonly number[]) => ({
  service,
  method,
  nth,
  action: { type: 'delay', ms: 500 },
});
/** Once so many calls were slow: in the middle of them. */
async function killedDuring(name: Program, method: string, calls: number): Promise<void> {
  const met = (): number => stack.faults.log().filter((fault) => fault.method === method).length;
  await until(
    () => met() >= calls,
    () => `${calls} calls of ${method}, and not ${met()}`,
  );
  await kill(name);
  await launch(name);
}

test('killed at work, purged and refused: each message comes, none early, repeats under one dedupId', async () => {
  const dueMs = stack.clock.now() + 600 * SECOND_MS;
  const at = new Date(dueMs).toISOString();
  const large = (): Buffer => randomBytes(150_000);
  const wanted: Sent[] = [
    ...Array.from({ length: 8 }, (_, n) => ({ name: `plain ${n}`, attributes: { deliverAt: at } })),
    { name: 'large', data: large(), attributes: { deliverAt: at } },
    { name: 'key', attributes: { scheduleKey: 'k', deliverAt: at } },
    { name: 'key, large', data: large(), attributes: { scheduleKey: 'l', deliverAt: at } },
    { name: 'attributes alone', data: Buffer.alloc(0), attributes: { deliverAt: at } },
  ];
  const unwanted: Sent[] = [
    { name: 'replaced by a larger one', attributes: { scheduleKey: 'r', deliverAt: at } },
    { name: 'replaced by a smaller one', data: large(), attributes: { scheduleKey: 's', deliverAt: at } },
    { name: 'cancelled', data: large(), attributes: { scheduleKey: 'c', deliverAt: at } },
  ];
  const replacing: Sent[] = [
    { name: 'the larger one', data: large(), attributes: { scheduleKey: 'r', deliverAt: at } },
    { name: 'the smaller one', attributes: { scheduleKey: 's', deliverAt: at } },
  ];
  stack.faults.set({
    rules: [
      { service: 'tasks', method: 'CreateTask', nth: [1], action: { type: 'lose-reply' } },
      slow('tasks', 'CreateTask', [2, 4, 6]),
      slow('firestore', 'Commit', [3, 5, 7, 9]),
    ],
  });
  await publish([...wanted, ...unwanted]);
  const moved = stack.clock.advance(10);
  await killedDuring('function', 'CreateTask', 3);
  await moved;
  await settle(3, 2 * SECOND_MS);
  await publish([...replacing, { name: 'cancel', attributes: { scheduleKey: 'c', cancel: 'true' } }]);
  await settle(3, 2 * SECOND_MS);
  stack.faults.clear();
  assert.equal(tasks(), wanted.length + unwanted.length + replacing.length, 'one task for each schedule');

  for (const id of QUEUES) {
    await rest('POST', `v2/projects/PROJECT/locations/us-central1/queues/${id}:purge`, {});
  }
  await stack.clock.advance(dueMs - stack.clock.now() - 1);
  assert.deepEqual([await pulled('later-out'), tasks()], [[], 0]);
  // Lost for as long as the sweep takes a task for late.
  await settle(1, 600 * SECOND_MS - SECOND_MS);
  assert.equal(tasks(), 0);

  // One call may carry many messages: how many calls there will be depends on how the tasks come in.
  stack.faults.set({ rules: [slow('pubsub', 'Publish', [1, 2, 4, 5, 7, 8])] });
  await stack.clock.advance(2 * SECOND_MS);
  const recovering = sweep();
  await killedDuring('republisher', 'Publish', 1);
  await recovering;
  stack.faults.clear();
  await settle(8, 10 * SECOND_MS);

  const arrived = await pulled('later-out');
  const shown = (): string => JSON.stringify([arrived, lines.slice(-8)], undefined, 1);
  const due = [...wanted, ...replacing];
  assert.deepEqual([...new Set(arrived.map(({ name }) => name))].sort(), due.map(({ name }) => name).sort());
  for (const { name, data = Buffer.from(name) } of due) {
    const mine = arrived.filter((each) => each.name === name);
    assert.deepEqual([...new Set(mine.map(({ digest }) => digest))], [digestOf(data)], name);
    assert.equal(new Set(mine.map(({ dedupId }) => dedupId)).size, 1, shown());
    assert.ok(
      mine.every(({ atMs }) => atMs >= dueMs),
      shown(),
    );
  }
  assert.deepEqual([await pulled('dead-letters'), tasks()], [[], 0]);
  const ended = arrived.length;
  await settle(4, 1_200 * SECOND_MS);
  assert.deepEqual([await pulled('later-out'), tasks()], [[], 0], `after ${ended}`);
  assert.doesNotMatch(lines.join('\n'), /plain \d|attributes alone/, 'the log holds a payload');
});
