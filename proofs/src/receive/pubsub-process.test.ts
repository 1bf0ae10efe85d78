import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import test, { type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { PubSub } from '@google-cloud/pubsub';
import { startPubsub, systemClock, until } from 'pubsub-guarantees-emulator';
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
  const { child, heard, exited } = start(t, server.address);
  await publish('a');
  await until(() => heard.length === 1);
  await publish('b');
  await until(() => server.stats().outstanding === 2, 'b waits there');
  child.kill('SIGTERM');
  await until(() => server.stats().outstanding === 1, 'b is given back');
  // The platform sends SIGTERM twice.
  child.kill('SIGTERM');
  child.send('finish');
  assert.deepEqual(await exited, [null, 'SIGTERM']);
  assert.deepEqual(heard, ['begin a', 'end a']);
  await until(() => server.stats().outstanding === 0);
  assert.equal(server.stats().backlog, 1, 'a is acked, b is given back');
});

test('a process that listens to SIGTERM itself is drained, and ends as it decides', async (t) => {
  const { server, publish } = await setUp(t);
  const { child, heard, exited } = start(t, server.address, 'own listener');
  await publish('a');
  await until(() => heard.length === 1);
  child.kill('SIGTERM');
  await until(() => heard.length === 2);
  child.send('finish');
  await until(() => server.stats().outstanding + server.stats().backlog === 0, 'a is acked');
  child.send('exit');
  assert.deepEqual(await exited, [7, null]);
  assert.deepEqual(heard, ['begin a', 'told', 'end a']);
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
  let began = 0;
  /** How many had begun by then, in the time of the second handler itself. */
  const afterTwelveSeconds = Promise.withResolvers<number>();
  const receiver = receive(
    subscription,
    async () => {
      began += 1;
      const mine = began;
      if (mine === 1) await pause(12_500);
      // The second message takes longer than it may, once.
      if (mine === 2) {
        setTimeout(() => afterTwelveSeconds.resolve(began), 12_000);
        await new Promise(() => {});
      }
      return ack();
    },
    { consumer: 'c', handlerTimeout: '13s', concurrency: 10, drainOnSigterm: false },
  );
  t.after(() => receiver.close());
  await publish('slow');
  await until(() => began === 1);
  await publish('stuck');
  assert.equal(await afterTwelveSeconds.promise, 2, 'neither comes again while its handler may run');
  await until(() => server.stats().outstanding + server.stats().backlog === 0);
  assert.equal(began, 3, 'the stuck one, when its time was over');
});
