/**
 * What the function `fifo` does beside its deliveries, as processes on the local stack whose clock is stopped and
 * whose sweeps come only when they are called: wake-ups, repair of gaps, the relay of the outbox, the start of streams.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Firestore } from '@google-cloud/firestore';
import { type Publisher, silent } from 'pubsub-guarantees';
import { outbox, relay } from 'pubsub-guarantees/outbox';
import type { PayloadStore } from 'pubsub-guarantees/payload';
import { firestoreCounters } from 'pubsub-guarantees/order/firestore';
import { firestoreOutbox } from 'pubsub-guarantees/outbox/firestore';
import { firestorePayloads } from 'pubsub-guarantees/payload/firestore';
import {
  freePorts,
  PROGRAM_PRELOAD,
  seedFrom,
  type Stack,
  startStack,
  until,
} from 'pubsub-guarantees-emulator';

const PROJECT = 'demo-project';
const SECOND_MS = 1_000;
/** As Pub/Sub names the subscription in a push. */
const SOURCE = `projects/${PROJECT}/subscriptions/fifo-in-sub`;
/** `late` has come later than its publishers, whose collections have a prefix of their own. */
const FUNCTIONS = {
  fifo: { OUTBOX: 'on', ORDER_GAP_TIMEOUT: '30s' },
  late: { OUTBOX: 'on', ORDER_GAP_TIMEOUT: '30s', ORDER_START: 'counter', COLLECTION_PREFIX: 'shop' },
  ending: { COLLECTION_PREFIX: 'ending' },
} as const;
type Name = keyof typeof FUNCTIONS;
const NAMES: readonly Name[] = ['fifo', 'late', 'ending'];

const PACKAGE = fileURLToPath(new URL('..', import.meta.url));
const framework = createRequire(import.meta.url).resolve('@google-cloud/functions-framework');
process.env['METADATA_SERVER_DETECTION'] ??= 'none';

let stack: Stack;
let firestore: Firestore;
const ports = new Map<Name, number>();
const children: ChildProcess[] = [];
const processes = new Map<Name, ChildProcess>();
const lines: string[] = [];
const urlOf = (name: Name): string => `http://127.0.0.1:${ports.get(name)}`;

async function launch(name: Name): Promise<void> {
  const { pubsub, firestore: store, tasks, control } = stack.addresses;
  const args = [`--target=fifo`, `--source=${PACKAGE}`, `--port=${ports.get(name)}`, '--signature-type=http'];
  const child = spawn(
    process.execPath,
    ['--conditions=source', '--import', PROGRAM_PRELOAD, join(dirname(framework), 'main.js'), ...args],
    {
      env: {
        PATH: process.env['PATH'] ?? '',
        GOOGLE_CLOUD_PROJECT: PROJECT,
        PUBSUB_EMULATOR_HOST: pubsub,
        FIRESTORE_EMULATOR_HOST: store,
        CLOUD_TASKS_EMULATOR_HOST: tasks,
        LOCAL_STACK_CONTROL: control,
        METADATA_SERVER_DETECTION: 'none',
        CONSUMER: name,
        TARGET_TOPIC: `${name}-out`,
        DEAD_LETTER_TOPIC: 'dead-letters',
        WAKE_QUEUE: 'wake',
        TASKS_LOCATION: 'us-central1',
        WAKE_URL: urlOf(name),
        WAKE_SERVICE_ACCOUNT: 'push@demo-project.iam.gserviceaccount.com',
        ...FUNCTIONS[name],
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  children.push(child);
  processes.set(name, child);
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => lines.push(String(text)));
  await until(
    () => {
      assert.equal(child.exitCode, null, lines.join(''));
      return fetch(urlOf(name)).then(
        () => true,
        () => false,
      );
    },
    () => `it listens\n${lines.join('')}`,
  );
}

before(async () => {
  const free = await freePorts(NAMES.length);
  for (const [index, name] of NAMES.entries()) ports.set(name, free[index] ?? 0);
  const lasting = { expirationPeriod: 'never' };
  const pushed = (name: Name) => ({
    [`${name}-in-sub`]: {
      topic: `${name}-in`,
      pushConfig: { pushEndpoint: `${urlOf(name)}/` },
      retryPolicy: { minimumBackoff: '1s', maximumBackoff: '2s' },
      ackDeadlineSeconds: 60,
      ...lasting,
    },
    [`${name}-out-sub`]: { topic: `${name}-out`, ackDeadlineSeconds: 600, ...lasting },
  });
  stack = await startStack({
    seed: seedFrom({
      topics: [...NAMES.flatMap((name) => [`${name}-in`, `${name}-out`]), 'dead-letters'],
      subscriptions: {
        ...pushed('fifo'),
        ...pushed('late'),
        ...pushed('ending'),
        'dead-letters-sub': { topic: 'dead-letters', ackDeadlineSeconds: 600, ...lasting },
      },
      queues: { wake: { retryConfig: { maxAttempts: 5, minBackoff: '1s', maxBackoff: '5s' } } },
    }),
  });
  stack.clock.freeze();
  const [host = '', port] = stack.addresses.firestore.split(':');
  firestore = new Firestore({ projectId: PROJECT, host, port: Number(port), ssl: false });
  await Promise.all(NAMES.map(launch));
});
after(async () => {
  const gone = children.flatMap((child) => (child.exitCode === null ? [once(child, 'exit')] : []));
  for (const child of children) child.kill('SIGKILL');
  await Promise.all(gone);
  await firestore?.terminate();
  await stack?.close();
});

async function rest<Answer>(path: string, body: object): Promise<Answer> {
  const url = `${stack.addresses.control}/v1/projects/${PROJECT}/${path}`;
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text) as Answer;
}

type Pulled = Readonly<{ ackId: string; message: { data?: string; attributes?: Record<string, string> } }>;

/** Sends, and moves the clock: when this resolves what was pushed is answered. */
async function publish(name: Name, sequenceKey: string, numbers: readonly number[]): Promise<void> {
  for (const number of numbers) {
    const attributes = { sequenceKey, sequence: String(number) };
    await rest(`topics/${name}-in:publish`, {
      messages: [{ data: Buffer.from(`${sequenceKey} ${number}`).toString('base64'), attributes }],
    });
  }
  await stack.clock.advance(100);
}

async function arrived(id: string): Promise<readonly string[]> {
  const base = `subscriptions/${id}-sub`;
  const request = { maxMessages: 100, returnImmediately: true };
  const { receivedMessages = [] } = await rest<{ receivedMessages?: Pulled[] }>(`${base}:pull`, request);
  if (receivedMessages.length === 0) return [];
  await rest(`${base}:acknowledge`, { ackIds: receivedMessages.map(({ ackId }) => ackId) });
  return receivedMessages.map(({ message }) => Buffer.from(message.data ?? '', 'base64').toString());
}

async function post(name: Name, path: string, body = '', headers: Record<string, string> = {}) {
  const response = await fetch(`${urlOf(name)}${path}`, { method: 'POST', body, headers });
  return { status: response.status, answer: (await response.json()) as Record<string, unknown> };
}

/** Until a stream of `fifo` is stored as waiting for a number: on a busy machine that is a little later than its push. */
async function waiting(key: string): Promise<void> {
  const streams = firestore.collectionGroup('pubsub-guarantees-order-streams').where('key', '==', key);
  const isWaiting = async () =>
    (await streams.get()).docs.some((found) => found.get('waitingSince') !== null);
  await until(isWaiting, `${key} waits`);
}

type Swept = Readonly<Record<'order' | 'outbox', Readonly<Record<string, number>>>>;
/** A whole one: on a busy machine a sweep may use up its time, and the next one goes on behind it. The figures are sums. */
async function sweep(name: Name): Promise<Swept> {
  const sums: Record<keyof Swept, Record<string, number>> = { order: {}, outbox: {} };
  await until(async () => {
    const { status, answer } = await post(name, '/sweep');
    assert.equal(status, 200, JSON.stringify(answer));
    let isWhole = true;
    for (const part of ['order', 'outbox'] as const) {
      for (const [figure, value] of Object.entries((answer as Swept)[part] ?? {})) {
        if (typeof value === 'number') sums[part][figure] = (sums[part][figure] ?? 0) + value;
        else isWhole &&= value;
      }
    }
    return isWhole;
  }, `a whole sweep of ${name}`);
  return sums;
}

/** A message for each text, each in a transaction of its own; the process that commits publishes nothing. */
async function commit(
  store: ReturnType<typeof firestoreOutbox>,
  sequenceKey: string,
  topic: string,
  texts: readonly string[],
  payloads?: PayloadStore,
): Promise<void> {
  const box = outbox(store, { ...(payloads !== undefined && { payloads }) });
  for (const text of texts) {
    const message = {
      topic: `projects/${PROJECT}/topics/${topic}`,
      data: Buffer.from(text),
      attributes: {},
    };
    await box.prepare(message);
    await firestore.runTransaction(async (transaction) => {
      const slot = await box.reserve(transaction, { sequenceKey });
      slot.add(message);
    });
  }
}

test('a next message that failed is tried again by a wake-up, with no sweep, and what waited for it follows', async () => {
  const rule = { service: 'pubsub', method: 'Publish', resource: '*/fifo-out', times: 2 };
  stack.faults.set({ rules: [{ ...rule, action: { type: 'fail', code: 'PERMISSION_DENIED' } }] });
  await publish('fifo', 'woken', [1, 2, 3]);
  assert.deepEqual(await arrived('fifo-out'), []);
  const { tasks } = stack.state() as unknown as { tasks: { pending: number } };
  assert.equal(tasks.pending, 1, 'one task, however often it was asked for');
  // A permission is not granted within a second: pauses of ten, each rounded up to a second of the clock. A process
  // works out what time it is at the store from its last read, so what it takes in real time, on a busy machine, comes
  // on top.
  const out: string[] = [];
  for (let seconds = 0; seconds < 60 && out.length < 3; seconds += 1) {
    await stack.clock.advance(SECOND_MS);
    out.push(...(await arrived('fifo-out')));
  }
  assert.deepEqual(out, ['woken 1', 'woken 2', 'woken 3'], lines.slice(-5).join(''));
  stack.faults.clear();
});

test('a wake-up that names no stream is refused with a reason, and not for ever', async () => {
  const known = (key: string, consumer = 'fifo') => JSON.stringify({ v: 2, consumer, source: SOURCE, key });
  await publish('fifo', 'known', [1]);
  await arrived('fifo-out');
  const idle = await post('fifo', '/wake', known('known'));
  assert.deepEqual([idle.status, idle.answer['kind']], [200, 'left']);
  const refused: [string, number, RegExp][] = [
    ['', 400, /the body is no wake-up; accepted: /],
    ['{"v":1,"consumer":"fifo","key":"known"}', 400, /the body is no wake-up; accepted: /],
    ['x'.repeat(20_000), 400, /at most 16384 bytes/],
    [known('known', 'another'), 400, /the wake-up is for "another"; accepted: fifo/],
    [known('unknown'), 404, /no message of sequenceKey #[0-9a-f]{12} has come to fifo/],
  ];
  for (const [body, expected, error] of refused) {
    const { status, answer } = await post('fifo', '/wake', body);
    assert.equal(status, expected, body.slice(0, 50));
    assert.match(String(answer['error']), error);
    const last = await post('fifo', '/wake', body, { 'X-CloudTasks-TaskRetryCount': '4' });
    assert.equal(last.status, 200, 'the queue must not call again');
    assert.match(String(last.answer['error']), error);
  }
  assert.match(lines.join(''), /"event":"wake_refused"/);
});

test('with the store down a wake-up is called again, and nothing is lost', async () => {
  await publish('fifo', 'down', [1]);
  await arrived('fifo-out');
  stack.faults.set({
    rules: [{ service: 'firestore', method: '*', action: { type: 'fail', code: 'PERMISSION_DENIED' } }],
  });
  const { status } = await post(
    'fifo',
    '/wake',
    JSON.stringify({ v: 2, consumer: 'fifo', source: SOURCE, key: 'down' }),
  );
  stack.faults.clear();
  assert.equal(status, 503);
});

test('a row that a killed publisher left behind is published by the sweep, and comes out in order', async () => {
  const script = `
    import { Firestore } from '@google-cloud/firestore';
    import { outbox } from 'pubsub-guarantees/outbox';
    import { firestoreOutbox } from 'pubsub-guarantees/outbox/firestore';
    const firestore = new Firestore({ projectId: '${PROJECT}' });
    const store = firestoreOutbox(firestore);
    const box = outbox(store);
    for (const text of ['paid', 'shipped']) {
      await firestore.runTransaction(async (transaction) => {
        const slot = await box.reserve(transaction, { sequenceKey: 'order-7' });
        slot.add({ topic: 'projects/${PROJECT}/topics/fifo-in', data: Buffer.from(text), attributes: {} });
      });
    }
    process.kill(process.pid, 'SIGKILL');`;
  const child = spawn(process.execPath, ['--conditions=source', '--input-type=module', '-e', script], {
    cwd: PACKAGE,
    env: { ...process.env, FIRESTORE_EMULATOR_HOST: stack.addresses.firestore },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [, signal] = (await once(child, 'exit')) as [number | null, string | null];
  assert.equal(signal, 'SIGKILL');
  const { outbox: relayed } = await sweep('fifo');
  assert.deepEqual([relayed['due'], relayed['done']], [2, 2], JSON.stringify(relayed));
  await stack.clock.advance(100);
  assert.deepEqual(await arrived('fifo-out'), ['paid', 'shipped']);
  assert.equal((await sweep('fifo')).outbox['due'], 0);
});

test('a number that was lost on the way is published again from its row, and the stream goes on', async () => {
  const store = firestoreOutbox(firestore);
  await commit(store, 'order-8', 'fifo-in', ['first', 'second', 'third']);
  // What was published is marked as sent, and the second of them never arrives.
  const publisher: Publisher = {
    async publish({ data, attributes }) {
      const bytes = Buffer.from(data);
      if (bytes.toString() === 'second') return 'lost';
      const message = { data: bytes.toString('base64'), attributes };
      await rest('topics/fifo-in:publish', { messages: [message] });
      return 'sent';
    },
  };
  const { signal } = new AbortController();
  assert.equal((await relay(store, publisher, { log: silent }).sweep({ signal })).done, 3);
  await stack.clock.advance(100);
  assert.deepEqual(await arrived('fifo-out'), ['first']);
  await waiting('order-8');
  assert.equal((await sweep('fifo')).order['repaired'], 0, 'not before ORDER_GAP_TIMEOUT');
  await stack.clock.advance(30 * SECOND_MS);
  assert.equal((await sweep('fifo')).order['repaired'], 1);
  await stack.clock.advance(100);
  assert.deepEqual(await arrived('fifo-out'), ['second', 'third']);
});

test('a consumer that comes later begins at its publishers’ counter: nothing of its backlog is skipped', async () => {
  const counters = firestoreCounters(firestore, { collection: 'shop-counters' });
  await counters.take('old', { id: 'before', count: 200_000, epoch: 'e' });
  // Of what was numbered before, three are in the backlog, and not in order.
  await publish('late', 'old', [200_000, 199_998, 199_999]);
  await sweep('late');
  assert.deepEqual(await arrived('late-out'), []);
  await stack.clock.advance(30 * SECOND_MS);
  await sweep('late');
  assert.deepEqual(await arrived('late-out'), ['old 199998', 'old 199999', 'old 200000']);
  await publish('late', 'old', [200_002, 200_001, 199_997]);
  assert.deepEqual(await arrived('late-out'), ['old 200001', 'old 200002']);
  assert.deepEqual(await arrived('dead-letters'), ['old 199997'], 'later than its time, and visible');
});

test('a stream that is as new as its consumer begins at once, from the outbox under the function’s prefix', async () => {
  const names = { rows: 'shop-outbox-rows', streams: 'shop-outbox-streams', counters: 'shop-counters' };
  const payloads = firestorePayloads(firestore, { collection: 'shop-payload' });
  const large = 'x'.repeat(1_200_000);
  await commit(firestoreOutbox(firestore, names), 'new', 'late-in', ['one', large, 'three'], payloads);
  assert.equal((await sweep('late')).outbox['done'], 3);
  await stack.clock.advance(100);
  const lengths = (await arrived('late-out')).map((text) => text.length);
  assert.deepEqual(lengths, ['one'.length, large.length, 'three'.length]);
});

test('P18: a process that is ended in the middle of a batch counts what has run, and its stream is free at once', async () => {
  // The clock is stopped: a lease would last for ever. The first publish goes out, the second is kept back.
  const rule = { service: 'pubsub', method: 'Publish', resource: '*/ending-out', nth: 2, times: 1 };
  stack.faults.set({ rules: [{ ...rule, action: { type: 'delay', ms: 4 * SECOND_MS } }] });
  await publish('ending', 'k', [2, 3]);
  const publishing = publish('ending', 'k', [1]);
  const streams = firestore.collectionGroup('ending-order-streams');
  const state = async () => (await streams.get()).docs[0]?.data() ?? {};
  await until(async () => (await arrived('ending-out')).length > 0, 'the first comes out');
  assert.notEqual((await state())['owner'], null);
  const child = processes.get('ending');
  assert.ok(child !== undefined);
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  assert.deepEqual(await exited, [0, null]);
  stack.faults.clear();
  const { owner, last, attempts } = await state();
  assert.deepEqual([owner, Number(last) >= 1, attempts], [null, true, 0]);
  await launch('ending');
  await publishing;
  await stack.clock.advance(5 * SECOND_MS);
  await sweep('ending');
  assert.equal((await state())['last'], 3);
});
