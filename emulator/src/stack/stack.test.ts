import assert from 'node:assert/strict';
import { after, before, test, type TestContext } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { seedFrom } from '../seed/seed.ts';
import { allFree, portsIn } from './cli-fixture.ts';
import { type Stack, startStack } from './stack.ts';

// Otherwise Google's clients first look for a metadata server.
process.env['METADATA_SERVER_DETECTION'] = 'none';

const SEED = seedFrom({
  topics: { orders: { subscriptions: ['billing'] } },
  queues: ['emails'],
  firestore: { documents: { 'users/alice': { age: 7 } } },
});
const HOUR_MS = 3_600_000;

let stack: Stack;
before(async () => {
  stack = await startStack({ seed: SEED });
});
after(() => stack?.close());

type Answer = Readonly<{ status: number; body: Record<string, unknown> }>;

async function ask(method: string, path: string, body?: string | object, of = stack): Promise<Answer> {
  const response = await fetch(`${of.addresses.control}${path}`, {
    method,
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Answer['body'] };
}

const v1 = (path: string): string => `/v1/projects/demo-project/${path}`;

async function publish(data: string, of = stack): Promise<void> {
  const messages = [{ data: Buffer.from(data).toString('base64') }];
  const { status, body } = await ask('POST', v1('topics/orders:publish'), { messages }, of);
  assert.equal(status, 200, JSON.stringify(body));
}

type Received = Readonly<{ ackId: string; message: { data: string } }>;

async function pull(of = stack): Promise<readonly string[]> {
  const request = { maxMessages: 100, returnImmediately: true };
  const { body } = await ask('POST', v1('subscriptions/billing:pull'), request, of);
  const received = (body['receivedMessages'] ?? []) as readonly Received[];
  return received.map(({ message }) => Buffer.from(message.data, 'base64').toString()).toSorted();
}

function pubsubClient(t: TestContext, of = stack): PubSub {
  const client = new PubSub({
    projectId: 'demo-project',
    apiEndpoint: of.addresses.pubsub,
    emulatorMode: true,
  });
  t.after(() => client.close());
  return client;
}

function firestoreClient(t: TestContext, of = stack): Firestore {
  const client = new Firestore({ projectId: 'demo-project', host: of.addresses.firestore, ssl: false });
  t.after(() => client.terminate());
  return client;
}

test('a reset brings back what was seeded, and nothing else, in milliseconds', async (t) => {
  const firestore = firestoreClient(t);
  await publish('gone');
  await ask('POST', '/v2/projects/demo-project/locations/us-central1/queues/emails/tasks', {
    task: { httpRequest: { url: 'http://127.0.0.1:1/' }, scheduleTime: '2090-01-01T00:00:00Z' },
  });
  await pubsubClient(t).createTopic('other');
  await firestore.doc('users/alice').set({ age: 8 });
  await firestore.doc('users/bob').set({});
  stack.faults.set({
    rules: [{ service: 'pubsub', method: 'Publish', action: { type: 'fail', code: 'ABORTED' } }],
  });
  stack.clock.freeze();
  await stack.clock.advance(HOUR_MS);
  const before = stack.clock.now();
  const started = performance.now();
  await stack.reset();
  t.diagnostic(`reset: ${(performance.now() - started).toFixed(1)} ms`);
  assert.deepEqual(await pull(), []);
  const {
    pubsub,
    tasks,
    firestore: documents,
  } = stack.state() as unknown as Record<string, Record<string, number>>;
  assert.deepEqual(
    [pubsub?.['topics'], tasks?.['queues'], tasks?.['pending'], documents?.['documents']],
    [1, 1, 0, 1],
  );
  assert.equal((await firestore.doc('users/alice').get()).get('age'), 7);
  assert.equal(stack.clock.isFrozen(), false);
  assert.ok(stack.clock.now() >= before, 'the clock never goes back');
  await publish('after');
  assert.deepEqual(await pull(), ['after']);
  await stack.reset();
});

test('a seeded subscription expires when no client uses it, and a reset brings it back with its whole time', async () => {
  await publish('unread');
  const subscriptions = () => (stack.state() as unknown as { pubsub: { subscriptions: number } }).pubsub;
  stack.clock.freeze();
  await stack.clock.runUntilIdle(400 * 24 * HOUR_MS);
  assert.equal(subscriptions().subscriptions, 1);
  await stack.clock.advance(31 * 24 * HOUR_MS);
  assert.equal(subscriptions().subscriptions, 0);
  await stack.reset();
  stack.clock.freeze();
  await stack.clock.advance(30 * 24 * HOUR_MS);
  await publish('after');
  assert.deepEqual(await pull(), ['after']);
  await stack.reset();
});

test('what was saved over HTTP is loaded by another stack, at its time', async (t) => {
  const other = await startStack();
  t.after(() => other.close());
  await stack.clock.advance(HOUR_MS);
  await publish('saved');
  const { body: saved } = await ask('GET', '/save');
  assert.equal((await ask('POST', '/load', saved, other)).status, 200);
  assert.ok(other.clock.now() - Date.now() > HOUR_MS / 2);
  assert.deepEqual(await pull(other), ['saved']);
  assert.equal((await firestoreClient(t, other).doc('users/alice').get()).get('age'), 7);
  await other.reset();
  assert.equal((other.state() as { pubsub: { topics: number } }).pubsub.topics, 0);
  await stack.reset();
});

test('a state that is refused changes nothing, and is reported in one line', async () => {
  await publish('kept');
  const saved = stack.save();
  for (const [bad, says] of [
    ['{', /^the body is not JSON: /],
    [{ ...saved, version: 2 }, /^version is 2; accepted: 1$/],
    [{ ...saved, now: saved.now + HOUR_MS, tasks: { bogus: 1 } }, /^tasks/],
  ] as const) {
    const { status, body } = await ask('POST', '/load', bad);
    assert.equal(status, 400);
    assert.match(String(body['error']), says);
    assert.equal(String(body['error']).includes('\n'), false);
  }
  assert.ok(stack.clock.now() < saved.now + HOUR_MS);
  assert.deepEqual(await pull(), ['kept']);
  await stack.reset();
});

test('two stacks with equal traffic do not see each other', async (t) => {
  const stacks = await Promise.all([startStack({ seed: SEED }), startStack({ seed: SEED })]);
  t.after(() => Promise.all(stacks.map((each) => each.close())));
  await Promise.all(
    stacks.flatMap((each, name) => [
      ...Array.from({ length: 20 }, (_, index) => publish(`${name}-${index + 10}`, each)),
      firestoreClient(t, each).doc('users/alice').set({ name }),
    ]),
  );
  for (const [name, each] of stacks.entries()) {
    const own = Array.from({ length: 20 }, (_, index) => `${name}-${index + 10}`);
    assert.deepEqual(await pull(each), own);
    assert.equal((await firestoreClient(t, each).doc('users/alice').get()).get('name'), name);
  }
  await stacks[0].clock.advance(HOUR_MS);
  assert.ok(Math.abs(stacks[1].clock.now() - Date.now()) < HOUR_MS / 2);
  const ports = stacks.map(({ addresses }) => portsIn(addresses));
  assert.equal(new Set(ports.flat()).size, 8);
  await stacks[0].close();
  await allFree(ports[0] ?? []);
  await publish('still', stacks[1]);
});

test('faults that were set over HTTP hit a real client, and are reported', async (t) => {
  const client = pubsubClient(t);
  const action = { type: 'fail', code: 'PERMISSION_DENIED', message: 'on request' };
  const plan = { rules: [{ service: 'pubsub', method: 'Publish', nth: [1], action }] };
  assert.equal((await ask('POST', '/faults', plan)).status, 200);
  await assert.rejects(client.topic('orders').publishMessage({ data: Buffer.from('a') }), { code: 7 });
  await client.topic('orders').publishMessage({ data: Buffer.from('b') });
  assert.equal(stack.state().faults, 1);
  const { body } = await ask('GET', '/log');
  const [record] = body['records'] as readonly { method: string; n: number }[];
  assert.deepEqual([record?.method, record?.n], ['Publish', 1]);
  const refused = await ask('POST', '/faults', { rules: [{ service: 'redis' }] });
  assert.equal(refused.status, 400);
  await stack.reset();
  assert.equal(stack.state().faults, 0);
});

test('what is not implemented is counted by the name of its method, for a real client', async (t) => {
  const client = pubsubClient(t);
  const bigqueryConfig = { table: 'p.d.t' };
  await assert.rejects(client.topic('orders').createSubscription('to-bigquery', { bigqueryConfig }), {
    code: 12,
  });
  const { body } = await ask('GET', '/state');
  const { pubsub } = body['unimplemented'] as { pubsub: Record<string, number> };
  assert.equal(pubsub['google.pubsub.v1.Subscriber/CreateSubscription'], 1);
});

test('so is what the REST form has not, whatever it names', async () => {
  const project = '/v1/projects/demo-project';
  for (const path of ['/topics', '/topics/a:publish', '/topics/b', '/databases/(default)/documents/x/y']) {
    assert.equal((await ask('GET', `${project}${path}`)).status, 501);
  }
  await ask('PUT', `${project}/topics/c`, {});
  const { body } = await ask('GET', '/state');
  const { pubsub, firestore } = body['unimplemented'] as Record<string, Record<string, number>>;
  const counted = Object.entries({ ...pubsub, ...firestore }).filter(([name]) => name.includes('/v1/'));
  assert.deepEqual(Object.fromEntries(counted), {
    'GET /v1/projects/…/topics': 1,
    'GET /v1/projects/…/topics/…:publish': 1,
    'GET /v1/projects/…/topics/…': 1,
    'GET /v1/projects/…/databases/…/documents/…/y': 1,
    'PUT /v1/projects/…/topics/…': 1,
  });
});

test('a reset brings up at once what a fault has taken down, with the state of the start', async () => {
  await stack.faults.restart('pubsub', { state: 'lost', downMs: 3_600_000 });
  for (let turn = 0; turn < 5; turn++) {
    assert.equal((await ask('POST', v1('subscriptions/billing:pull'), { maxMessages: 1 })).status, 503);
  }
  await stack.reset();
  assert.equal(stack.state().clock.nextDueMs, undefined, 'nothing comes of the old time');
  await publish('back');
  assert.deepEqual(await pull(), ['back']);
});

test('paths, methods and bodies that are none are refused with one line', async () => {
  const refusals = await Promise.all([
    ask('GET', '/bogus'),
    ask('PUT', '/state', ''),
    ask('GET', '/reset'),
    ask('POST', '/save', ''),
    ask('PUT', '/faults', ''),
    ask('POST', '/clock/advance', '{'),
    ask('POST', '/faults', '{'),
    ask('POST', '/reset/now', 'x'.repeat(17 * 1024 * 1024)),
  ]);
  assert.deepEqual(
    refusals.map(({ status }) => status),
    [404, 405, 405, 405, 405, 400, 400, 413],
  );
  for (const { body } of refusals) assert.equal(typeof body['error'], 'string');
});

test('the control API closes no idle connection: a request that is being sent would be lost with it', async () => {
  const response = await fetch(`${stack.addresses.control}/healthz`);
  await response.text();
  // Node announces here after how many seconds it closes.
  assert.equal(response.headers.get('keep-alive'), null);
});

test('only the services that were chosen are started, and typed', async (t) => {
  const only = await startStack({ services: ['tasks'] });
  t.after(() => only.close());
  assert.deepEqual(Object.keys(only.addresses).toSorted(), ['control', 'project', 'tasks']);
  // @ts-expect-error there is no Pub/Sub
  assert.equal(only.addresses.pubsub, undefined);
  const answer = await fetch(`${only.addresses.control}${v1('topics/a:publish')}`, { method: 'POST' });
  assert.equal(answer.status, 404);
  const plan = {
    rules: [{ service: 'pubsub', method: 'Publish', action: { type: 'fail', code: 'ABORTED' } }],
  };
  assert.throws(() => only.faults.set(plan), /rules\[0\]\.service is "pubsub", which does not run here/);
});

test('a reset ends a move of the clock that is in progress', async () => {
  await ask('POST', '/v2/projects/demo-project/locations/us-central1/queues/emails/tasks', {
    task: { httpRequest: { url: 'http://127.0.0.1:1/' } },
  });
  const move = stack.clock.advance(1_000 * HOUR_MS).then(
    () => 'made',
    () => 'ended',
  );
  await wait(5);
  await stack.reset();
  assert.equal(await move, 'ended');
  const now = stack.clock.now();
  await wait(20);
  assert.ok(stack.clock.now() > now, 'in real time again');
});

test('options that cannot be are refused with one line', async () => {
  const services = ['redis'] as unknown as readonly ['pubsub'];
  await assert.rejects(
    startStack({ services }),
    /^Error: services is \["redis"\]; accepted: one or more of pubsub/,
  );
  await assert.rejects(
    startStack({ ports: { pubsub: 70_000 } }),
    /^Error: the port of pubsub is 70000; accepted/,
  );
  await assert.rejects(startStack({ seed: SEED, state: {} }), /^Error: seed and state cannot both be given/);
  await assert.rejects(startStack({ state: {} }), /^StateError: version is undefined; accepted: 1$/);
  await assert.rejects(startStack({ faults: { rules: 5 } }), /rules is 5/);
  await assert.rejects(
    startStack({ external: { pubsub: 'x' } }),
    /^Error: the address of Pub\/Sub is "x"; accepted/,
  );
  await assert.rejects(
    startStack({ external: { pubsub: '127.0.0.1:1' } }),
    /no Pub\/Sub emulator answers on 127/,
  );
});
