import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { childrensCpuMillisecondsDuring } from '../spent.ts';
import { until } from '../until.ts';
import { listens } from './child.ts';
import { allFree, CLI, folder, freeBase, portsIn, ready, run } from './cli-fixture.ts';
import type { ToolkitAddresses } from './toolkit.ts';

const REFUSED: readonly (readonly [args: readonly string[], says: RegExp])[] = [
  [['--port-base', 'x'], /^error: --port-base is "x"; accepted: a whole number from 1024 to \d+, or 0\n$/],
  [['--port-base', '80'], /^error: --port-base is "80"/],
  [['--port-base', '65535'], /^error: --port-base is "65535"/],
  [['--store', 'mysql'], /^error: --store is "mysql"; accepted: firestore, redis\n$/],
  [['--store', 'redis'], /^error: --store redis needs --redis-url/],
  [['--store', 'redis', '--redis-url', 'nonsense'], /^error: --redis-url is "nonsense"/],
  [['--store', 'redis', '--redis-url', 'redis://127.0.0.1:1'], /^error: no Redis answers on 127.0.0.1:1/],
  [['--redis-url', 'redis://127.0.0.1:1'], /^error: --redis-url is only for --store redis\n$/],
  [['--nonsense'], /^error: Unknown option '--nonsense'/],
  [['more'], /^error: Unexpected argument 'more'/],
];

for (const [args, says] of REFUSED) {
  test(`answers "${args.join(' ')}" with one line and a non-zero exit, with less than five seconds of computing`, async (t) => {
    const stack = run(t, ['--toolkit', ...args]);
    const took = await childrensCpuMillisecondsDuring(async () => assert.notEqual(await stack.ended, 0));
    assert.match(stack.err(), says);
    assert.equal(stack.err().trimEnd().split('\n').length, 1);
    assert.ok(took === undefined || took < 5_000, `${took} ms of CPU time`);
  });
}

test('names a port that is taken', async (t) => {
  const base = await freeBase();
  const holder = createServer().listen(base + 3, '127.0.0.1');
  await once(holder, 'listening');
  t.after(() => holder.close());
  const stack = run(t, ['--toolkit', '--quiet', '--port-base', String(base)]);
  assert.notEqual(await stack.ended, 0);
  assert.equal(stack.err(), `error: port ${base + 3} on 127.0.0.1 is taken by another process\n`);
});

for (const signal of ['SIGTERM', 'SIGINT', 'SIGKILL'] as const) {
  test(`leaves nothing running after ${signal}`, async (t) => {
    const stack = run(t, ['--toolkit', '--json', '--port-base', String(await freeBase())]);
    const addresses = await ready<ToolkitAddresses>(stack);
    const ports = portsIn(addresses);
    assert.deepEqual(
      await Promise.all(ports.map((port) => listens(port))),
      ports.map(() => true),
    );
    stack.process.kill(signal);
    const code = await stack.ended;
    if (signal !== 'SIGKILL') assert.equal(code, 0);
    await allFree(ports);
  });
}

test('a signal while it starts ends it at once, with nothing left running', async (t) => {
  const [base, sagas] = [await freeBase(), folder(t)('sagas.mjs')];
  // One of its programs goes on starting, so that the signal meets a start however slow this process is.
  writeFileSync(sagas, 'await new Promise(() => setInterval(() => undefined, 1_000));');
  const stack = run(t, ['--toolkit', '--json', '--port-base', String(base), '--sagas', sagas]);
  const ports = Array.from({ length: 10 }, (_, index) => base + index);
  // The servers listen first, the functions some seconds later.
  await until(() => listens(base), 'the servers listen');
  stack.process.kill('SIGTERM');
  assert.equal(await stack.ended, 130);
  assert.equal(stack.out(), '');
  // One that has not come as far as its port would come up later.
  await until(() => programsAt(ports).length === 0, 'its programs have ended');
  await allFree(ports);
});

/** The processes that were told one of these ports, by their command lines. Linux; elsewhere none. */
function programsAt(ports: readonly number[]): readonly string[] {
  if (!existsSync('/proc/self/cmdline')) return [];
  return readdirSync('/proc').filter((pid) => {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      return ports.some((port) => words.includes(`--port=${port}`));
    } catch {
      return false;
    }
  });
}

test('leaves nothing running when npm, which passes a signal on to its shell alone, is ended', async (t) => {
  const base = await freeBase();
  // The shell does not replace itself with the program, as the one that npm uses does not.
  const shell = spawn(
    'sh',
    ['-c', `"$NODE" --conditions=source "$CLI" --toolkit --json --port-base ${base}; true`],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, NODE: process.execPath, CLI, npm_lifecycle_event: 'start' },
    },
  );
  t.after(() => shell.kill('SIGKILL'));
  const [line] = (await once(shell.stdout.setEncoding('utf8'), 'data')) as [string];
  const ports = portsIn(JSON.parse(line) as ToolkitAddresses);
  shell.kill('SIGTERM');
  await allFree(ports);
});
