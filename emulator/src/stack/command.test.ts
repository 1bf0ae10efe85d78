import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { listens } from './child.ts';
import { allFree, folder, freeBase, portsIn, ready, run } from './cli-fixture.ts';
import type { StackAddresses } from './stack.ts';

const BIN = fileURLToPath(new URL('../../bin/pubsub-guarantees-emulator.js', import.meta.url));

for (const [option, text, says] of [
  ['seed', 'topics:\n  ok-topic:\n  goog-bad:\n', /^error: \S+:3: topics\.goog-bad: .*goog/],
  ['load', '{"version":7}', /^error: \S+: version is 7; accepted: 1$/],
  ['faults', '{ "rules": [{ "service": "redis" }] }', /^error: \S+: rules\[0\]\.service is "redis"/],
] as const) {
  test(`answers a --${option} file that is refused with one line that names it, and exit code 2`, async (t) => {
    const file = folder(t)('file');
    writeFileSync(file, text);
    const refused = run(t, ['--quiet', '--port-base', '0', `--${option}`, file]);
    assert.equal(await refused.ended, 2, refused.err());
    assert.match(refused.err().trimEnd(), says);
    assert.ok(refused.err().includes(file));
    assert.equal(refused.err().trimEnd().includes('\n'), false);
  });
}

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGKILL'] as const) {
  test(`the servers alone leave no port after ${signal}`, async (t) => {
    const stack = run(t, ['--json', '--port-base', String(await freeBase())]);
    const addresses = await ready<StackAddresses>(stack);
    const ports = portsIn(addresses);
    assert.equal(ports.length, 4);
    stack.process.kill(signal);
    const code = await stack.ended;
    if (signal !== 'SIGKILL') assert.equal(code, 0);
    assert.ok(await allFree(ports), 'every port is free again');
  });
}

test('a start that fails half-way leaves nothing, and names the port that is taken', async (t) => {
  const base = await freeBase();
  const holder = createServer().listen(base + 3, '127.0.0.1');
  await once(holder, 'listening');
  t.after(() => holder.close());
  const stack = run(t, ['--quiet', '--port-base', String(base)]);
  assert.equal(await stack.ended, 1);
  assert.equal(stack.err(), `error: port ${base + 3} on 127.0.0.1 is taken by another process\n`);
  assert.ok(await allFree([base, base + 1, base + 2]));
});

test('prints what was chosen and no more, as lines that a shell takes', async (t) => {
  const [base, port] = [await freeBase(), await freeBase()];
  const args = [
    '--services',
    'tasks',
    '--port-base',
    String(base),
    '--tasks-port',
    String(port),
    '--project',
    'shop',
  ];
  const stack = run(t, args);
  for (let turn = 0; turn < 800 && !stack.out().includes('Ctrl-C'); turn++) await wait(25);
  const exports = stack.out().match(/^ {2}export .*$/gm) ?? [];
  const planned = run(t, ['--print-env', ...args]);
  assert.equal(await planned.ended, 0);
  assert.deepEqual(
    exports.map((line) => line.trim()),
    planned.out().trimEnd().split('\n'),
  );
  const names = exports.map((line) => /export (\w+)=/.exec(line)?.[1]);
  assert.deepEqual(names, [
    'CLOUD_TASKS_EMULATOR_HOST',
    'LOCAL_STACK_CONTROL',
    'GOOGLE_CLOUD_PROJECT',
    'METADATA_SERVER_DETECTION',
    'CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDTASKS',
    'CLOUDSDK_AUTH_DISABLE_CREDENTIALS',
    'CLOUDSDK_CORE_PROJECT',
  ]);
  assert.ok(stack.out().includes(`CLOUD_TASKS_EMULATOR_HOST=127.0.0.1:${port}\n`));
  assert.equal(await listens(base), false, 'no Pub/Sub');
});

test('--write-env is there when everything is ready, can be sourced, and is gone afterwards', async (t) => {
  const file = folder(t)('env');
  writeFileSync(file, 'export PUBSUB_EMULATOR_HOST=stale\n');
  const stack = run(t, ['--json', '--port-base', '0', '--write-env', file]);
  const { pubsub, control } = await ready<StackAddresses>(stack);
  const shell = spawn('sh', ['-c', '. "$0"; echo "$PUBSUB_EMULATOR_HOST $LOCAL_STACK_CONTROL"', file]);
  const [said] = (await once(shell.stdout.setEncoding('utf8'), 'data')) as [string];
  assert.equal(said, `${pubsub} ${control}\n`);
  stack.process.kill('SIGTERM');
  assert.equal(await stack.ended, 0);
  assert.equal(existsSync(file), false);
});

test('what --save writes when it is stopped, --load starts from in another process', async (t) => {
  const file = folder(t)('state.json');
  const base = await freeBase();
  const call = async (path: string, body: object): Promise<unknown> => {
    const url = `http://127.0.0.1:${base + 3}/v1/projects/demo-project/${path}`;
    return (await fetch(url, { method: 'POST', body: JSON.stringify(body) })).json();
  };
  const seed = folder(t)('seed.json');
  writeFileSync(seed, '{"topics":{"orders":{"subscriptions":["billing"]}}}');
  const first = run(t, ['--json', '--port-base', String(base), '--seed', seed, '--save', file]);
  await ready(first);
  await call('topics/orders:publish', { messages: [{ data: 'c2F2ZWQ=' }] });
  first.process.kill('SIGTERM');
  assert.equal(await first.ended, 0, first.err());
  const second = run(t, ['--json', '--port-base', String(base), '--load', file]);
  await ready(second);
  const pulled = await call('subscriptions/billing:pull', { maxMessages: 10 });
  assert.match(JSON.stringify(pulled), /"data":"c2F2ZWQ="/);
});

test('a state that cannot be written is told, and the stack ends all the same', async (t) => {
  const stack = run(t, ['--json', '--port-base', '0', '--save', '/nowhere/state.json']);
  const addresses = await ready<StackAddresses>(stack);
  stack.process.kill('SIGTERM');
  assert.equal(await stack.ended, 1);
  assert.match(stack.err(), /^error: \/nowhere\/state\.json cannot be written: ENOENT.*\n$/m);
  assert.ok(await allFree(portsIn(addresses)));
});

test('a command behind -- finds the stack, and its exit code is the end of both', async (t) => {
  const script = `
    fetch(process.env.LOCAL_STACK_CONTROL + '/state').then((answer) => answer.json()).then(({ addresses }) => {
      console.log(addresses.pubsub === process.env.PUBSUB_EMULATOR_HOST, process.env.PUBSUB_EMULATOR_HOST);
      process.exit(7);
    });`;
  const stack = run(t, ['--port-base', '0', '--', process.execPath, '-e', script]);
  assert.equal(await stack.ended, 7, stack.err());
  const [, same, address = ''] = /^(true|false) (\S+)\n$/.exec(stack.out()) ?? [];
  assert.equal(same, 'true', `${stack.out()}${stack.err()}`);
  assert.ok(await allFree(portsIn({ address })));
});

test('a command that cannot be run is one line and exit code 127', async (t) => {
  const stack = run(t, ['--quiet', '--port-base', '0', '--', '/nowhere/program']);
  assert.equal(await stack.ended, 127);
  assert.match(stack.err(), /^error: \/nowhere\/program cannot be run: .*ENOENT\n$/);
});

test('the package’s own command runs without a build', async () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  const printed = await new Promise<string>((resolve, reject) => {
    execFile(process.execPath, [BIN, '--version'], (error, stdout) =>
      error ? reject(error) : resolve(stdout),
    );
  });
  assert.equal(printed, `${version}\n`);
});
