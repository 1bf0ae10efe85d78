import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { PubSub } from '@google-cloud/pubsub';
import { freePort, startFirestore, startPubsub, systemClock, until } from 'pubsub-guarantees-emulator';

const PACKAGE = fileURLToPath(new URL('..', import.meta.url));
/** What a deployment preloads to have traces: an SDK with a context manager. */
const SDK_FILE = new URL('../../proofs/src/telemetry/sdk.ts', import.meta.url).href;
const PRELOAD = `data:text/javascript,import { registerSdk } from "${SDK_FILE}"; registerSdk();`;
const framework = createRequire(import.meta.url).resolve('@google-cloud/functions-framework');

const TRACE = 'a'.repeat(32);
const SPAN = 'b'.repeat(16);
process.env['METADATA_SERVER_DETECTION'] ??= 'none';

/** The function `dedup` as a deployed instance starts it, on the local servers; answers with what it forwards. */
async function start(t: TestContext, flags: readonly string[]) {
  const clock = systemClock();
  const [pubsub, firestore, port] = await Promise.all([
    startPubsub({ clock }),
    startFirestore({ clock }),
    freePort(),
  ]);
  const client = new PubSub({ projectId: 'demo', apiEndpoint: pubsub.address, emulatorMode: true });
  for (const topic of ['out', 'dead-letters']) await client.createTopic(topic);
  await client.createSubscription('out', 'out-sub');
  const args = [
    join(dirname(framework), 'main.js'),
    '--target=dedup',
    `--source=${PACKAGE}`,
    `--port=${port}`,
  ];
  const child = spawn(process.execPath, ['--conditions=source', ...flags, ...args, '--signature-type=http'], {
    env: {
      GOOGLE_CLOUD_PROJECT: 'demo',
      TARGET_TOPIC: 'out',
      DEAD_LETTER_TOPIC: 'dead-letters',
      LOG_LEVEL: 'debug',
      METADATA_SERVER_DETECTION: 'none',
      PUBSUB_EMULATOR_HOST: pubsub.address,
      FIRESTORE_EMULATOR_HOST: firestore.address,
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  t.after(async () => {
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
    await client.close();
    await Promise.all([pubsub.close(), firestore.close()]);
  });
  const url = `http://127.0.0.1:${port}/`;
  await until(() => {
    assert.equal(child.exitCode, null);
    return fetch(url, { headers: { connection: 'close' } }).then(
      () => true,
      () => false,
    );
  }, 'it listens');
  const push = async (attributes: Record<string, string>): Promise<Record<string, string>> => {
    const message = {
      messageId: '42',
      publishTime: new Date().toISOString(),
      data: 'aGVsbG8=',
      attributes,
    };
    const body = JSON.stringify({ message, subscription: 'projects/demo/subscriptions/orders' });
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(url, { method: 'POST', body, headers });
    assert.equal(response.status, 204, await response.text());
    const subscription = client.subscription('out-sub');
    const arrived = once(subscription, 'message');
    const [received] = (await arrived) as [{ attributes: Record<string, string>; ack(): void }];
    received.ack();
    await subscription.close();
    return received.attributes;
  };
  const lines = () =>
    output
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { push, lines };
}

test('a deployed function with an SDK keeps the publisher’s trace and names it in its log', async (t) => {
  const { push, lines } = await start(t, ['--import', PRELOAD]);
  const { traceparent = '', ...others } = await push({ googclient_traceparent: `00-${TRACE}-${SPAN}-01` });
  assert.match(traceparent, new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`));
  assert.doesNotMatch(traceparent, new RegExp(SPAN), 'the function’s own span');
  assert.deepEqual(Object.keys(others).toSorted(), ['dedupId', 'originPublishTime']);
  const done = await until(() => lines().find(({ message }) => message === 'done'), 'its line is read');
  assert.equal(done['severity'], 'DEBUG');
  assert.equal(done['logging.googleapis.com/trace'], `projects/demo/traces/${TRACE}`);
  assert.deepEqual(done['logging.googleapis.com/labels'], { consumer: 'dedup', function: 'dedup' });
});

test('a deployed function without an SDK passes the publisher’s trace on unchanged', async (t) => {
  const { push, lines } = await start(t, []);
  const { traceparent } = await push({ googclient_traceparent: `00-${TRACE}-${SPAN}-01` });
  assert.equal(traceparent, `00-${TRACE}-${SPAN}-01`);
  const done = await until(() => lines().find(({ message }) => message === 'done'), 'its line is read');
  assert.equal(done['logging.googleapis.com/trace'], `projects/demo/traces/${TRACE}`);
});
