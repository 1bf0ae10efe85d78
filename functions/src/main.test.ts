import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { freePort, until } from 'pubsub-guarantees-emulator';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const PACKAGE = fileURLToPath(new URL('..', import.meta.url));
const framework = createRequire(import.meta.url).resolve('@google-cloud/functions-framework');

/** A function as a deployed instance starts it, with this environment and nothing else. */
async function start(
  target: string,
  env: Record<string, string>,
): Promise<{ code: number | null; err: string }> {
  const args = [join(dirname(framework), 'main.js'), `--target=${target}`, `--source=${PACKAGE}`, '--port=0'];
  const child = spawn(process.execPath, ['--conditions=source', ...args], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
    // One that does start is ended.
    timeout: 240_000,
  });
  let err = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, err };
}

test('a function without its variables does not start, and names the first one in one line', async () => {
  const { code, err } = await start('dedup', {});
  assert.equal(code, 1);
  assert.equal(err, 'cannot start: GOOGLE_CLOUD_PROJECT is not set; accepted: the project ID\n');
});

test('a function without a dead-letter topic does not start', async () => {
  const { code, err } = await start('fifo', { GOOGLE_CLOUD_PROJECT: 'p', TARGET_TOPIC: 'out' });
  assert.equal(code, 1);
  assert.match(err, /^cannot start: DEAD_LETTER_TOPIC is not set; accepted: [^\n]+\n$/);
});

test('a function that is led to an emulator which no client can reach does not start', async () => {
  const env = { GOOGLE_CLOUD_PROJECT: 'p', TARGET_TOPIC: 'out', DEAD_LETTER_TOPIC: 'dead' };
  const { code, err } = await start('dedup', { ...env, PUBSUB_EMULATOR_HOST: '::1:21000' });
  assert.equal(code, 1);
  assert.match(err, /^cannot start: PUBSUB_EMULATOR_HOST is "::1:21000"; accepted: host:port[^\n]+\n$/);
});

test('an unknown target does not start, and the known ones are named', async () => {
  const { code, err } = await start('nonsense', { GOOGLE_CLOUD_PROJECT: 'p' });
  assert.equal(code, 1);
  assert.match(err, /FUNCTION_TARGET is "nonsense"; accepted: one of dedup, delay, fifo, pipeline, saga/);
});

test('a body that is none is refused by the function itself, and not by the parsers in front of it', async (context) => {
  const port = await freePort();
  const child = spawn(
    process.execPath,
    [
      '--conditions=source',
      join(dirname(framework), 'main.js'),
      '--target=dedup',
      `--source=${PACKAGE}`,
      `--port=${port}`,
      '--signature-type=http',
    ],
    {
      env: {
        GOOGLE_CLOUD_PROJECT: 'p',
        TARGET_TOPIC: 'out',
        DEAD_LETTER_TOPIC: 'dead',
        METADATA_SERVER_DETECTION: 'none',
        PUBSUB_EMULATOR_HOST: '127.0.0.1:1',
        FIRESTORE_EMULATOR_HOST: '127.0.0.1:1',
      },
      stdio: 'ignore',
    },
  );
  context.after(async () => {
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  });
  const post = async (body: string, headers: Record<string, string>): Promise<[number, string]> => {
    const response = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body, headers });
    return [response.status, await response.text()];
  };
  await until(() => {
    assert.equal(child.exitCode, null);
    return fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } }).then(
      () => true,
      () => false,
    );
  }, 'it listens');
  const [status, text] = await post('{', { 'content-type': 'application/json' });
  assert.equal(status, 400);
  assert.match(text, /^\{"error":"the body is not a JSON object; accepted: a Pub\/Sub push/);
});
