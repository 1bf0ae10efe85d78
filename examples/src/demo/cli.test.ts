import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { childrensCpuMillisecondsDuring } from 'pubsub-guarantees-emulator';

const CLI = fileURLToPath(new URL('cli.ts', import.meta.url));
let folder = '';

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'demo-test-'));
});
after(() => rm(folder, { recursive: true }));

type Ended = Readonly<{ code: number; stdout: string; stderr: string }>;

function demo(...args: string[]): Promise<Ended> {
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      ['--conditions=source', CLI, ...args],
      { timeout: 280_000, env: { ...process.env, INIT_CWD: folder } },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : error.code;
        if (typeof code !== 'number') return reject(error ?? new Error('ended by a signal'));
        resolve({ code, stdout, stderr });
      },
    );
  });
}

async function write(name: string, lines: readonly unknown[]): Promise<string> {
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n');
  await writeFile(join(folder, name), `${text}\n`);
  return name;
}

const refused: readonly (readonly [string, string[], RegExp])[] = [
  ['an unknown option', ['--quick'], /^demo: Unknown option '--quick'.*\n$/],
  ['a missing file', ['--file', 'nowhere.ndjson'], /^demo: .*nowhere\.ndjson: no such file; accepted: .*\n$/],
  [
    'an unknown store',
    ['--store', 'memcached'],
    /^demo: --store is "memcached"; accepted: firestore, redis\n$/,
  ],
];
for (const [name, args, message] of refused) {
  test(`${name} is one line and exit code 2, with less than five seconds of computing`, async () => {
    const took = await childrensCpuMillisecondsDuring(async () => {
      const { code, stdout, stderr } = await demo(...args);
      assert.equal(code, 2);
      assert.equal(stdout, '');
      assert.match(stderr, message);
    });
    assert.ok(took === undefined || took < 5_000, `${took} ms of CPU time`);
  });
}

test('a bad line is named with file, number, field and what is accepted', async () => {
  const file = await write('bad.ndjson', [
    { topic: 'dedup-in', data: 'x' },
    { topic: 'fifo-in', data: 5 },
  ]);
  const { code, stdout, stderr } = await demo('--file', file);
  assert.equal(code, 2);
  assert.equal(stdout, '');
  assert.match(stderr, /^demo: .*bad\.ndjson:2: field data is 5; accepted: a string .*\n$/);
});

test('--help prints how it is used', async () => {
  const { code, stdout } = await demo('--help');
  assert.equal(code, 0);
  assert.match(stdout, /--file FILE/);
});

test('a file of one’s own goes through the stack and a crash; what is invalid is in the dead letters', async () => {
  const step = (publisher: string, number: number): object => ({
    topic: 'fifo-in',
    publisher,
    afterMs: number % 2 === 0 ? 0 : 700,
    data: `step ${number}`,
    attributes: { sequence: String(number) },
    orderingKey: 'key',
  });
  const file = await write('own.ndjson', [
    ...[3, 1, 4, 2, 5].map((number) => step(`p${number % 3}`, number)),
    { topic: 'dedup-in', data: 'no dedupId' },
    { topic: 'dedup-in', data: 'no dedupId' },
    ...[0, 100, 900].map((afterMs) => ({
      topic: 'dedup-in',
      afterMs,
      data: 'pay',
      attributes: { dedupId: 'pay' },
    })),
    { topic: 'delay-in', dataBase64: 'AP/+gMMo', attributes: { delay: '2' } },
    { topic: 'delay-in', data: 'x', attributes: { delay: 'soon', tenant: 'a' } },
    { topic: 'pipeline-in', afterMs: 500, attributes: { kind: 'attributes only', delay: '1' } },
  ]);
  const { code, stdout, stderr } = await demo('--json', '--file', file);
  assert.equal(code, 0, `${stdout}\n${stderr}`);
  const { seconds, maxLatenessMs, ...counts } = JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '');
  assert.deepEqual(counts, {
    published: 13,
    delivered: 10,
    duplicatesPublished: 2,
    duplicatesDelivered: 0,
    early: 0,
    outOfOrder: 0,
    lost: 0,
  });
  assert.equal(typeof seconds, 'number');
  assert.ok(maxLatenessMs >= 0);
  assert.match(stdout, /delay-in line 12 .*: INVALID_ATTRIBUTE: attribute delay is "soon"; accepted/);
});
