import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { DEPLOYABLES } from './deployables.ts';
import { deployedFiles, writePackage } from './package.ts';
import { DEFINITIONS_FILE, packDefinitions } from './saga-definitions.ts';
import { type Started, started } from './started.ts';
import { type Servers, push, startServers } from './local-servers.ts';
import { readWorkspaces } from './workspaces.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const RECORDED = new URL('./recorded-packages.ts', import.meta.url).href;
const FIRESTORE = ['@google-cloud/firestore', '@google-cloud/firestore-api'];

let servers: Servers;
/** Inside the repository, whose node_modules has the locked versions. */
let out: string;
let scratch: string;

before(async () => {
  servers = await startServers();
  scratch = await mkdtemp(join(tmpdir(), 'packaging-loaded-'));
  await mkdir(join(ROOT, 'packaging/dist'), { recursive: true });
  out = await mkdtemp(join(ROOT, 'packaging/dist/loaded-'));
  for (const deployable of DEPLOYABLES) {
    await writePackage(await deployedFiles(ROOT, deployable), deployable.name, out);
  }
});

after(async () => {
  await rm(out, { recursive: true, force: true });
  await rm(scratch, { recursive: true, force: true });
  await servers.close();
});

type Running = Started & Readonly<{ loaded(): Promise<ReadonlySet<string>> }>;

let count = 0;
async function run(target: string | undefined, env: Record<string, string> = {}): Promise<Running> {
  const file = join(scratch, `packages-${(count += 1)}`);
  await writeFile(file, '');
  const process = await started({
    folder: join(out, target === undefined ? 'republisher' : 'functions'),
    env: { ...servers.env, ...env, PACKAGES_FILE: file },
    ...(target !== undefined && { target }),
    nodeOptions: [`--import=${RECORDED}`],
  });
  return { ...process, loaded: async () => new Set((await readFile(file, 'utf8')).split('\n')) };
}

function assertLoaded(
  loaded: ReadonlySet<string>,
  wanted: readonly string[],
  unwanted: readonly string[],
): void {
  for (const name of wanted) assert.ok(loaded.has(name), `${name} is not loaded`);
  for (const name of unwanted) assert.ok(!loaded.has(name), `${name} is loaded`);
}

test('dedup over Redis loads no Firestore and no Cloud Tasks', async (t) => {
  const running = await run('dedup', {
    DEDUP_STORE: 'redis',
    REDIS_URL: 'redis://127.0.0.1:1',
    DEDUP_LEASE: '1s',
  });
  t.after(running.close);
  // Redis is not there, so the delivery is refused; by then everything that it needs is loaded.
  assert.equal((await running.post('/', push('redis'))).status, 503);
  assertLoaded(
    await running.loaded(),
    ['ioredis', '@google-cloud/pubsub'],
    [...FIRESTORE, '@google-cloud/tasks'],
  );
});

test('dedup over Firestore loads no Redis and no Cloud Tasks', async (t) => {
  const running = await run('dedup');
  t.after(running.close);
  assert.equal((await running.post('/', push('firestore'))).status, 204);
  assertLoaded(await running.loaded(), FIRESTORE, ['ioredis', '@google-cloud/tasks']);
});

test('fifo loads no Redis and no Cloud Tasks', async (t) => {
  const running = await run('fifo');
  t.after(running.close);
  assert.equal((await running.post('/', push('f', { sequence: '1', sequenceKey: 'f' }))).status, 204);
  assertLoaded(await running.loaded(), FIRESTORE, ['ioredis', '@google-cloud/tasks']);
});

test('saga runs the definitions that are packed beside it, and loads no Redis', async (t) => {
  const sagas = join(out, 'functions', DEFINITIONS_FILE);
  const file = join(ROOT, 'examples/src/sagas/definitions.ts');
  await writeFile(sagas, await packDefinitions(ROOT, await readWorkspaces(ROOT), file));
  const running = await run('saga', { TARGET_TOPIC: '', SAGA_TOPIC: 'incoming', SAGA_MODULE: sagas });
  t.after(running.close);
  const order = JSON.stringify({ id: 'o1', total: 1, to: 'here', dish: 'rice' });
  const body = push(order, { saga: 'food-order', sagaId: 'o1', sagaAction: 'start', sagaVersion: '1' });
  // It is committed, and its command has no topic here: it stays in the outbox, and the delivery comes again.
  assert.equal((await running.post('/', body)).status, 503);
  assertLoaded(await running.loaded(), [...FIRESTORE, '@google-cloud/tasks'], ['ioredis']);
});

test('delay without a ledger and without payloads never loads Firestore', async (t) => {
  const running = await run('delay', { DELAY_LEDGER: 'off', DELAY_PAYLOADS: 'off' });
  t.after(running.close);
  assert.equal((await running.post('/', push('off', { delay: '3600' }))).status, 204);
  assertLoaded(await running.loaded(), ['@google-cloud/tasks'], [...FIRESTORE, 'ioredis']);
});

test('delay loads Firestore with the first message that has a schedule key, and not before', async (t) => {
  const running = await run('delay');
  t.after(running.close);
  assert.equal((await running.post('/', push('plain', { delay: '3600' }))).status, 204);
  assertLoaded(await running.loaded(), ['@google-cloud/tasks'], FIRESTORE);
  assert.equal((await running.post('/', push('keyed', { delay: '3600', scheduleKey: 'k' }))).status, 204);
  assertLoaded(await running.loaded(), FIRESTORE, ['ioredis']);
});

test('the republisher loads no Firestore for a health page and a task that refers to nothing', async (t) => {
  const running = await run(undefined);
  t.after(running.close);
  assert.equal(await fetch(`${running.url}/health`).then((response) => response.text()), 'ok');
  // No task: it goes to the dead letters, which is a publish as any other.
  const answer = await running.post('/republish', '{', { 'X-AppEngine-QueueName': 'delay-queue' });
  assert.equal(answer.status, 200);
  assertLoaded(await running.loaded(), ['@google-cloud/pubsub'], [...FIRESTORE, 'ioredis']);
});
