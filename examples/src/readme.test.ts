/** What the README prints must run as it is printed. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startToolkit, until } from 'pubsub-guarantees-emulator';

const README = new URL('../../README.md', import.meta.url);
/** Beside the sources, so that imports resolve as they do for a file in this folder; not kept in git. */
const FOLDER = new URL('../dist/readme/', import.meta.url);
/** A line about a delivery that comes again: on a busy machine a claim takes longer than its limit. */
const TRIED_AGAIN = /"outcome":"retry","code":"(?:STORE_UNAVAILABLE|IN_PROGRESS_ELSEWHERE)"/;

test('the first handler of the README charges once for two publishes, and ends on SIGTERM', async (t) => {
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(await readFile(README, 'utf8')) ?? [];
  assert.ok(code.includes('dedup('), 'the README has a handler');
  assert.ok(code.split('\n').filter((line) => line.trim() !== '').length <= 15, 'at most 15 lines to type');
  await mkdir(FOLDER, { recursive: true });
  const file = fileURLToPath(new URL('subscriber.ts', FOLDER));
  await writeFile(file, code);

  const stack = await startToolkit();
  t.after(() => stack.close());
  const { pubsub, firestore, control, project } = stack.addresses;
  const subscriber = spawn(process.execPath, ['--conditions=source', file], {
    env: {
      ...process.env,
      PUBSUB_EMULATOR_HOST: pubsub,
      FIRESTORE_EMULATOR_HOST: firestore,
      GOOGLE_CLOUD_PROJECT: project,
      METADATA_SERVER_DETECTION: 'none',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.after(() => subscriber.kill('SIGKILL'));
  const errors: string[] = [];
  subscriber.stderr.setEncoding('utf8').on('data', (text: string) => errors.push(text));
  const lines: string[] = [];
  createInterface(subscriber.stdout).on('line', (line) => lines.push(line));

  const publish = async (data: string, dedupId: string): Promise<void> => {
    const messages = [{ data: Buffer.from(data).toString('base64'), attributes: { dedupId } }];
    const url = `${control}/v1/projects/${project}/topics/dedup-out:publish`;
    const response = await fetch(url, { method: 'POST', body: JSON.stringify({ messages }) });
    assert.equal(response.status, 200);
  };
  // Straight to the topic that it reads, so that nothing but its own handler removes the repeat.
  await publish('order 1', 'order-1');
  await publish('order 1', 'order-1');
  await publish('last', 'order-2');
  const isAnswered = (): boolean => {
    const { outstanding, backlog } = stack.state().pubsub as { outstanding: number; backlog: number };
    return outstanding + backlog === 0;
  };
  await until(
    () => {
      assert.equal(subscriber.exitCode, null, errors.join(''));
      return lines.length > 1 && isAnswered();
    },
    () => `all three are answered: ${lines.join()}${errors.join('')}`,
  );
  assert.deepEqual(
    lines
      .map((line) => /^charging (.*) under \d+$/.exec(line)?.[1])
      .toSorted((a = '', b = '') => a.localeCompare(b)),
    ['last', 'order 1'],
    errors.join(''),
  );
  subscriber.kill('SIGTERM');
  // It drains, and then ends with the signal.
  const [exitCode, signal] = (await once(subscriber, 'close')) as [number | null, string | null];
  const unexpected = errors
    .join('')
    .split('\n')
    .filter((line) => line !== '' && !TRIED_AGAIN.test(line));
  assert.deepEqual([exitCode, signal, unexpected], [null, 'SIGTERM', []]);
});
