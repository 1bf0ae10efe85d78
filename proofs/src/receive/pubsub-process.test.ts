import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import test, { type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { PubSub } from '@google-cloud/pubsub';
import { startPubsub, systemClock } from 'pubsub-guarantees-emulator';
import { ack } from '../../../shared/src/outcome.ts';
import { drainOnSigterm } from '../../../shared/src/receive/drain-on-sigterm.ts';
import { receive } from '../../../shared/src/receive/pubsub.ts';

// Otherwise the client looks for a machine of Google's to run on, and warns that there is none.
process.env['METADATA_SERVER_DETECTION'] = 'none';

async function setUp(t: TestContext) {
  const server = await startPubsub({ clock: systemClock() });
  const client = new PubSub({ apiEndpoint: server.address, projectId: 'test-project' });
  t.after(async () => {
    await client.close();
    await server.close();
  });
  const [topic] = await client.createTopic('topic-1');
  const [subscription] = await topic.createSubscription('sub-1', { ackDeadlineSeconds: 10 });
  const publish = (text: string): Promise<string> => topic.publishMessage({ data: Buffer.from(text) });
  return { server, publish, subscription };
}

/** A process that is killed after the test if it has not ended. */
function start(t: TestContext, address: string, ...args: string[]) {
  const child = fork(new URL('./pubsub-drained.ts', import.meta.url), [address, 'sub-1', ...args]);
  const heard: string[] = [];
  child.on('message', (text: string) => heard.push(text));
  const exited = once(child, 'exit');
  t.after(() => child.exitCode === null && child.signalCode === null && child.kill('SIGKILL'));
  return { child, heard, exited };
}

test('on SIGTERM a process takes no more, finishes and acks what runs, and ends by the signal', async (t) => {
  const { server, publish } = await setUp(t);
  const { child, heard, exited } = start(t, server.address, '600');
  await publish('a');
  await untilTrue(() => heard.length === 1);
  await publish('b');
  await pause(100);
  child.kill('SIGTERM');
  // The platform sends SIGTERM twice.
  await pause(50);
  child.kill('SIGTERM');
  assert.deepEqual(await exited, [null, 'SIGTERM']);
  assert.deepEqual(heard, ['begin a', 'end a']);
  await untilTrue(() => server.stats().outstanding === 0);
  assert.equal(server.stats().backlog, 1, 'a is acked, b is given back');
});

test('a process that listens to SIGTERM itself is drained, and ends as it decides', async (t) => {
  const { server, publish } = await setUp(t);
  const { child, heard, exited } = start(t, server.address, '200', 'own listener');
  await publish('a');
  await untilTrue(() => heard.length === 1);
  child.kill('SIGTERM');
  assert.deepEqual(await exited, [7, null]);
  assert.deepEqual(heard, ['begin a', 'end a']);
  assert.deepEqual([server.stats().outstanding, server.stats().backlog], [0, 0]);
});

test('any number of receivers share one listener, which goes when the last is closed', () => {
  const before = process.listenerCount('SIGTERM');
  const forget = Array.from({ length: 20 }, () => drainOnSigterm(async () => {}));
  assert.equal(process.listenerCount('SIGTERM'), before + 1);
  for (const one of forget) one();
  assert.equal(process.listenerCount('SIGTERM'), before);
});

test('B53: a handler longer than the ack deadline keeps its message, and one that runs beyond its time does not', async (t) => {
  const { server, publish, subscription } = await setUp(t);
  const began: number[] = [];
  const receiver = receive(
    subscription,
    async () => {
      began.push(performance.now());
      // The second message takes longer than it may, once.
      if (began.length === 2) await new Promise(() => {});
      if (began.length === 1) await pause(12_500);
      return ack();
    },
    { consumer: 'c', handlerTimeout: '13s', concurrency: 10, drainOnSigterm: false },
  );
  t.after(() => receiver.close());
  await publish('slow');
  await untilTrue(() => began.length === 1);
  await publish('stuck');
  await pause(12_000);
  assert.equal(began.length, 2, 'neither is delivered again while its handler may run');
  await untilTrue(() => server.stats().outstanding + server.stats().backlog === 0);
  assert.equal(began.length, 3, 'the stuck one, when its time was over');
});

async function untilTrue(condition: () => boolean): Promise<void> {
  for (let turn = 0; turn < 12_000 && !condition(); turn += 1) await pause(10);
  assert.ok(condition(), 'did not come true within fifteen seconds');
}
