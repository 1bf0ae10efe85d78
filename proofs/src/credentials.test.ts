import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

type Told = Readonly<{ name: string; code?: string; message?: string; milliseconds?: number }>;

/**
 * What the process reported, and how it ended. It finds no credentials and no metadata server, and looks for neither.
 */
async function run(client: string, credentials?: string) {
  const home = await mkdtemp(join(tmpdir(), 'no-credentials-'));
  try {
    const child = fork(
      new URL('./without-credentials.ts', import.meta.url),
      [client, ...(credentials === undefined ? [] : [credentials])],
      {
        env: {
          PATH: process.env['PATH'],
          HOME: home,
          METADATA_SERVER_DETECTION: 'none',
          GCE_METADATA_HOST: '127.0.0.1:9',
        },
        stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
        timeout: 240_000,
      },
    );
    const told: Told[] = [];
    let err = '';
    child.on('message', (one: Told) => told.push(one));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (err += text));
    const [code] = (await once(child, 'close')) as [number | null];
    return { told, code, err };
  } finally {
    await rm(home, { recursive: true });
  }
}

const TEXT = /Could not load the default credentials/;

/** The code of each; undefined: it does not reject with one of ours. */
const CLIENTS: readonly (readonly [string, code: string | undefined, text: RegExp])[] = [
  ['publish', 'PUBLISH_DENIED', TEXT],
  ['task', 'TASK_QUEUE_FORBIDDEN', TEXT],
  ['claim', 'STORE_UNAVAILABLE', TEXT],
  ['inbox', 'STORE_UNAVAILABLE', TEXT],
  ['inbox rows', 'STORE_UNAVAILABLE', TEXT],
  ['ledger', 'STORE_UNAVAILABLE', TEXT],
  ['payloads', 'STORE_UNAVAILABLE', TEXT],
  ['outbox', 'STORE_UNAVAILABLE', TEXT],
  ['order', 'STORE_UNAVAILABLE', TEXT],
  ['counters', 'STORE_UNAVAILABLE', TEXT],
  ['counter start', 'STORE_UNAVAILABLE', TEXT],
  ['windows', undefined, /^resolved with undefined$/],
  ['receive', undefined, TEXT],
];

for (const [client, code, text] of CLIENTS) {
  test(`without credentials ${client} fails for that call alone, says why, and the process goes on`, async () => {
    const { told, code: exitCode, err } = await run(client);
    const [first] = told;
    assert.equal(first?.code, code, JSON.stringify(told));
    if (code !== undefined) assert.equal(first?.name, 'TransientError');
    assert.match(first?.message ?? '', text);
    assert.equal(exitCode, 0, err);
    assert.equal(told.at(-1)?.name, 'closed');
  });
}

test('a client that found no credentials looks again at the next call', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'credentials-'));
  const file = join(folder, 'key.json');
  // A key that cannot sign: it is found, so the error is no longer that credentials are missing.
  await writeFile(
    file,
    JSON.stringify({ type: 'service_account', client_email: 'a@b', private_key: 'none' }),
  );
  try {
    for (const client of ['publish', 'task', 'claim', 'ledger']) {
      const { told, code } = await run(client, file);
      assert.deepEqual([code, told.length], [0, 2], client);
      assert.match(told[0]?.message ?? '', TEXT, client);
      assert.doesNotMatch(told[1]?.message ?? '', TEXT, client);
      assert.equal(told[1]?.name, 'TransientError', client);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});
