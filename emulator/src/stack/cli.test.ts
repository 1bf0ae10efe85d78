import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { listens } from './child.ts';
import { allFree, CLI, freeBase, portsIn, ready, run } from './cli-fixture.ts';
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

/** Seconds for a program that only prints. */
let usual: number | undefined;

async function secondsOf(work: Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work;
  return (performance.now() - start) / 1_000;
}

for (const [args, says] of REFUSED) {
  test(`answers "${args.join(' ')}" with one line and a non-zero exit within five seconds`, async (t) => {
    usual ??= await secondsOf(run(t, ['--help']).ended);
    const stack = run(t, ['--toolkit', ...args]);
    const took = await secondsOf(stack.ended.then((code) => assert.notEqual(code, 0)));
    assert.match(stack.err(), says);
    assert.equal(stack.err().trimEnd().split('\n').length, 1);
    // On a busy machine a program that does nothing takes its time too.
    assert.ok(took < 5 + 10 * usual, `${took} s, where --help took ${usual} s`);
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
    assert.ok(await allFree(ports), 'every port is free again');
  });
}

test('a signal while it starts ends it at once, with nothing left running', async (t) => {
  const base = await freeBase();
  const stack = run(t, ['--toolkit', '--json', '--port-base', String(base)]);
  const ports = Array.from({ length: 9 }, (_, index) => base + index);
  // The servers listen first, the functions some seconds later.
  for (let turn = 0; turn < 12_000 && !(await listens(base)); turn++) await wait(10);
  stack.process.kill('SIGTERM');
  assert.equal(await stack.ended, 130);
  assert.equal(stack.out(), '');
  await wait(1_500);
  assert.ok(await allFree(ports), 'no process of the stack has come up after it');
});

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
  assert.ok(await allFree(ports), 'every port is free again');
});
