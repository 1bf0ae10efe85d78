/** What docs/operations.md prints for dead letters must run as it is printed. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Message, PubSub } from '@google-cloud/pubsub';
import { startStack } from 'pubsub-guarantees-emulator';

const DOCUMENT = new URL('../../docs/operations.md', import.meta.url);
/** Beside the sources, so that imports resolve as they do for a file in this folder; not kept in git. */
const FOLDER = new URL('../dist/redrive/', import.meta.url);
const FIRST = '2029-05-06T07:08:09.010Z';

test('dead letters are published again as they were, with the time of their first publish', async (t) => {
  const [, code = ''] =
    /```js\n(\/\/ node redrive\.mjs[\s\S]*?)```/.exec(await readFile(DOCUMENT, 'utf8')) ?? [];
  assert.ok(code.includes('publishMessage('), 'the document has the script');
  await mkdir(FOLDER, { recursive: true });
  const file = fileURLToPath(new URL('redrive.mjs', FOLDER));
  await writeFile(file, code);

  process.env['METADATA_SERVER_DETECTION'] ??= 'none';
  const stack = await startStack();
  const projectId = 'demo-project';
  const pubsub = new PubSub({ projectId, apiEndpoint: stack.addresses.pubsub });
  // In this order: a subscriber whose server goes first waits for it, or says so.
  let end = async (): Promise<void> => undefined;
  t.after(async () => {
    await end();
    await pubsub.close();
    await stack.close();
  });
  const [source] = await pubsub.createTopic('source');
  const [received] = await source.createSubscription('received');
  const [dead] = await pubsub.createTopic('dead');
  await dead.createSubscription('dead');
  const ours = { scheduleKey: 'k', delay: '60', dedupId: 'd', originPublishTime: FIRST };
  const why = { deadLetterReason: 'TASK_REFUSED', deadLetterError: 'no' };
  const whose = { deadLetterConsumer: 'delay', deadLetterSource: 'projects/p/subscriptions/s' };
  const byPubsub = {
    CloudPubSubDeadLetterSourceTopicPublishTime: FIRST.replace('Z', '+00:00'),
    CloudPubSubDeadLetterSourceDeliveryCount: '5',
  };
  for (const attributes of [
    { ...ours, ...why, ...whose },
    { n: '2', ...byPubsub },
    { n: '3', ...why },
  ]) {
    await dead.publishMessage({ data: Buffer.from('x'), attributes });
  }

  const all = Promise.withResolvers<void>();
  const arrived: Message[] = [];
  received.on('message', (message: Message) => {
    message.ack();
    // On a busy machine one may come again before its acknowledgement arrives.
    if (arrived.some(({ id }) => id === message.id)) return;
    if (arrived.push(message) === 3) all.resolve();
  });
  const script = spawn(process.execPath, [file, 'dead', 'source'], {
    env: {
      ...process.env,
      PUBSUB_EMULATOR_HOST: stack.addresses.pubsub,
      GOOGLE_CLOUD_PROJECT: projectId,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const gone = once(script, 'exit');
  end = async () => {
    script.kill('SIGKILL');
    await gone;
    await received.close();
  };
  await all.promise;

  const attributesOf = (n: string | undefined) =>
    arrived.find(({ attributes }) => attributes['n'] === n)?.attributes ?? {};
  assert.deepEqual({ ...attributesOf(undefined) }, ours);
  assert.deepEqual({ ...attributesOf('2') }, { n: '2', originPublishTime: FIRST.replace('Z', '+00:00') });
  const { n, originPublishTime = '', ...others } = attributesOf('3');
  assert.deepEqual([n, others], ['3', {}]);
  const itself = arrived.find(({ attributes }) => attributes['n'] === '3')?.publishTime.getTime() ?? 0;
  assert.ok(Date.parse(originPublishTime) <= itself, 'its own publish time is the best that is known');
});
