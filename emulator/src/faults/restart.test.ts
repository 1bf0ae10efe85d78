import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../clock.ts';
import { startFixture } from '../cloud-tasks/fixture.ts';
import { testBed } from '../firestore/testing.ts';
import { manualClock } from '../manual-clock.ts';
import { testServer, texts, until } from '../pubsub/test-server.ts';
import { createFaults } from './index.ts';

/** The kernel of this machine accepts or refuses at once, whatever else the process does. */
const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const answer = (yes: boolean) => (): void => {
      socket.destroy();
      resolve(yes);
    };
    socket.once('connect', answer(true)).once('error', answer(false));
  });

/** A server with a topic and a subscription, a real publisher and a real subscriber of it. */
async function talking(t: TestContext) {
  const faults = createFaults();
  const server = await testServer(t, systemClock(), undefined, faults);
  await server.create('orders', 'work');
  const topic = server.pubsub.topic('orders');
  const subscription = server.pubsub.subscription('work', { streamingOptions: { maxStreams: 1 } });
  const got: string[] = [];
  const errors: unknown[] = [];
  subscription.on('message', (message) => {
    got.push(message.data.toString());
    message.ack();
  });
  subscription.on('error', (error) => errors.push(error));
  const publish = (text: string) => topic.publishMessage({ data: Buffer.from(text) });
  await publish('before');
  await until(() => got.length === 1);
  return {
    ...server,
    faults,
    publish,
    got,
    errors,
    stop: () => subscription.close(),
    open: () => subscription.open(),
  };
}

test('a real publisher and subscriber survive a restart that keeps the state', async (t) => {
  const { faults, publish, got, errors, server, stop } = await talking(t);
  await faults.restart('pubsub', { state: 'kept', downMs: 0 });
  await publish('after');
  await until(() => got.includes('after'));
  await stop();
  assert.deepEqual(errors, []);
  assert.deepEqual([server.stats().topics, server.stats().subscriptions], [1, 1]);
  assert.equal(faults.log()[0]?.method, 'restart');
});

test('they survive one that loses the state as well, once topic and subscription are there again', async (t) => {
  const { faults, publish, got, errors, create, server, stop, open } = await talking(t);
  await faults.restart('pubsub', { state: 'lost', downMs: 0 });
  assert.equal(server.stats().topics, 0);
  await assert.rejects(publish('nowhere'), { code: 5 });
  await until(() => errors.length > 0);
  assert.equal(
    (errors[0] as { code?: number }).code,
    5,
    'the subscriber hears that its subscription is gone',
  );
  await create('orders', 'work');
  open();
  await publish('after');
  await until(() => got.includes('after'));
  await stop();
  assert.deepEqual(got, ['before', 'after']);
});

test('a rule restarts the service in the middle of a publish, which the real client makes again', async (t) => {
  const { faults, publish, got, stop } = await talking(t);
  faults.set({
    rules: [{ service: 'pubsub', method: 'Publish', nth: 2, action: { type: 'restart', state: 'kept' } }],
  });
  for (const text of ['1', '2', '3']) await publish(text);
  await until(() => ['1', '2', '3'].every((text) => got.includes(text)));
  await stop();
  assert.deepEqual(faults.fired(), [1]);
});

test('the port is closed for as long as the clock says, and what is kept comes back as it was', async (t) => {
  const clock = manualClock();
  const faults = createFaults();
  const { create, publish, pull, ack, server } = await testServer(t, clock, undefined, faults);
  await create('orders', 'work', { ackDeadlineSeconds: 60 });
  await publish('orders', { data: Buffer.from('a') }, { data: Buffer.from('b') });
  const [first] = await pull('work', 1);
  await faults.restart('pubsub', { state: 'kept', downMs: 5_000 });
  assert.equal(await listens(server.port), false);
  await assert.rejects(
    faults.restart('pubsub', { state: 'kept', downMs: 0 }),
    /service is "pubsub", which is down/,
  );
  clock.advance(4_999);
  assert.equal(await listens(server.port), false);
  clock.advance(1);
  await until(() => server.stats().backlog > 0);
  await ack('work', first!);
  clock.advance(60_000);
  // A lease may or may not outlive a restart; a message that was acknowledged in vain comes again.
  assert.match(texts(await pull('work')), /b/);
  assert.equal(await listens(server.port), true);
});

test('what is saved while it is down is what it comes back with, and what is loaded takes the place of that', async (t) => {
  const clock = manualClock();
  const faults = createFaults();
  const { create, server } = await testServer(t, clock, undefined, faults);
  const empty = server.save();
  await create('orders', 'work');
  const full = server.save();
  await faults.restart('pubsub', { state: 'kept', downMs: 1_000 });
  assert.deepEqual([server.save(), server.stats().topics], [full, 0]);
  server.load(empty);
  clock.advance(1_000);
  await until(() => server.stats().topics === 0);
  assert.equal(await listens(server.port), true);
  await faults.restart('pubsub', { state: 'lost', downMs: 1_000 });
  server.load(full);
  assert.throws(() => server.load({ topics: 1 }));
  assert.equal(server.stats().topics, 0);
  clock.advance(1_000);
  assert.equal(server.stats().topics, 1);
});

test('a server that is closed while it is down stays closed', async (t) => {
  const clock = manualClock();
  const faults = createFaults();
  const { server } = await testServer(t, clock, undefined, faults);
  await faults.restart('pubsub', { state: 'lost', downMs: 1_000 });
  await server.close();
  clock.advance(1_000);
  assert.equal(await listens(server.port), false);
  await assert.rejects(faults.restart('pubsub', { state: 'kept', downMs: 0 }), /does not run here/);
});

test('Firestore restarts: its documents are there or gone, its real client and listener go on', async (t) => {
  const faults = createFaults();
  const bed = await testBed(systemClock(), { faults });
  const doc = bed.db.doc('orders/one');
  const seen: unknown[] = [];
  const stop = doc.onSnapshot((snapshot) => seen.push(snapshot.get('n')));
  t.after(async () => {
    stop();
    await bed.close();
  });
  await doc.set({ n: 1 });
  await until(() => seen.includes(1));
  await faults.restart('firestore', { state: 'kept', downMs: 0 });
  assert.equal((await doc.get()).get('n'), 1);
  await doc.set({ n: 2 });
  await until(() => seen.includes(2));
  await faults.restart('firestore', { state: 'lost', downMs: 0 });
  assert.equal((await doc.get()).exists, false);
  // A client that is ended while its listener still tries has an unhandled rejection of its own.
  await until(() => seen.at(-1) === undefined);
});

test('Cloud Tasks restarts: its queues are there or gone, and a task that was kept is dispatched when it is due', async (t) => {
  const faults = createFaults();
  const fixture = await startFixture({ faults });
  t.after(fixture.close);
  const { client, parent, queue, target, clock, tasks } = fixture;
  await client.createQueue({ parent, queue: { name: queue } });
  const scheduleTime = { seconds: clock.now() / 1000 + 60 };
  const task = { httpRequest: { url: `${target.url}/late` }, scheduleTime };
  await client.createTask({ parent: queue, task });
  await faults.restart('tasks', { state: 'kept', downMs: 30_000 });
  const list = () => tasks.rest('GET', `/v2/${queue}`, '', Buffer.alloc(0)).then((answer) => answer?.status);
  assert.equal(await list(), 503, 'its REST form is down as well');
  clock.advance(30_000);
  await until(() => tasks.stats().queues === 1, 'it is up again');
  assert.equal((await client.getQueue({ name: queue }))[0].name, queue);
  clock.advance(30_000);
  await until(() => target.received.length === 1, 'the task is dispatched');
  await faults.restart('tasks', { state: 'lost', downMs: 0 });
  assert.equal(await list(), 404);
});
