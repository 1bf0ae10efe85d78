import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { until } from '../until.ts';
import { listens } from './child.ts';
import { allFree, folder, freeBase, portsIn, ready, run } from './cli-fixture.ts';
import type { StackAddresses } from './stack.ts';

const BIN = fileURLToPath(new URL('../../bin/pubsub-guarantees-emulator.js', import.meta.url));

test('answers a state that is refused with one line that names its file, and exit code 2', async (t) => {
  const file = folder(t)('state.json');
  writeFileSync(file, '{"version":7}');
  const refused = run(t, ['--quiet', '--port-base', '0', '--load', file]);
  assert.equal(await refused.ended, 2, refused.err());
  assert.equal(refused.err(), `error: ${file}: version is 7; accepted: 1\n`);
});

test('answers faults of a service that does not run with one line that names their file, and exit code 2', async (t) => {
  const file = folder(t)('faults.json');
  writeFileSync(file, '{"rules":[{"service":"pubsub","action":{"type":"fail"}}]}');
  const refused = run(t, ['--quiet', '--port-base', '0', '--services', 'tasks', '--faults', file]);
  assert.equal(await refused.ended, 2, refused.err());
  assert.equal(refused.err(), `error: ${file}: rules[0].service is "pubsub", which does not run here\n`);
});

test('the servers alone leave no port after SIGKILL', async (t) => {
  const stack = run(t, ['--json', '--port-base', String(await freeBase())]);
  const ports = portsIn(await ready<StackAddresses>(stack));
  assert.equal(ports.length, 4);
  stack.process.kill('SIGKILL');
  await stack.ended;
  await allFree(ports);
});

test('a start that fails half-way leaves nothing, and names the port that is taken', async (t) => {
  const base = await freeBase();
  const holder = createServer().listen(base + 3, '127.0.0.1');
  await once(holder, 'listening');
  t.after(() => holder.close());
  const stack = run(t, ['--quiet', '--port-base', String(base)]);
  assert.equal(await stack.ended, 1);
  assert.equal(stack.err(), `error: port ${base + 3} on 127.0.0.1 is taken by another process\n`);
  await allFree([base, base + 1, base + 2]);
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
  await until(() => stack.out().includes('Ctrl-C'), 'it is ready');
  const exports = stack.out().match(/^ {2}export .*$/gm) ?? [];
  const planned = await printed('--print-env', ...args);
  assert.deepEqual(
    exports.map((line) => line.trim()),
    planned.trimEnd().split('\n'),
    'the package’s own command plans the same, without a build',
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
  stack.process.kill('SIGINT');
  assert.equal(await stack.ended, 0);
  await allFree([port, base + 3]);
});

test('what it writes when ready is gone after SIGTERM, what it saves then another starts from; it says what it could not save', async (t) => {
  const inside = folder(t);
  const [seed, env, state] = [inside('seed.json'), inside('env'), inside('state.json')];
  const base = String(await freeBase());
  const call = async (control: string, path: string, body: object): Promise<unknown> => {
    const url = `${control}/v1/projects/demo-project/${path}`;
    return (await fetch(url, { method: 'POST', body: JSON.stringify(body) })).json();
  };
  writeFileSync(env, 'export PUBSUB_EMULATOR_HOST=stale\n');
  writeFileSync(seed, '{"topics":{"orders":{"subscriptions":["billing"]}}}');
  const args = ['--json', '--port-base', base];
  const first = run(t, [...args, '--seed', seed, '--save', state, '--write-env', env]);
  const addresses = await ready<StackAddresses>(first);
  const shell = spawn('sh', ['-c', '. "$0"; echo "$PUBSUB_EMULATOR_HOST $LOCAL_STACK_CONTROL"', env]);
  const [said] = (await once(shell.stdout.setEncoding('utf8'), 'data')) as [string];
  assert.equal(said, `${addresses.pubsub} ${addresses.control}\n`);
  await call(addresses.control, 'topics/orders:publish', { messages: [{ data: 'c2F2ZWQ=' }] });
  first.process.kill('SIGTERM');
  assert.equal(await first.ended, 0, first.err());
  assert.equal(existsSync(env), false);
  await allFree(portsIn(addresses));

  mkdirSync(inside('gone'));
  const second = run(t, [...args, '--load', state, '--save', inside('gone/state.json')]);
  const { control } = await ready<StackAddresses>(second);
  const pulled = await call(control, 'subscriptions/billing:pull', { maxMessages: 10 });
  assert.match(JSON.stringify(pulled), /"data":"c2F2ZWQ="/);
  rmdirSync(inside('gone'));
  second.process.kill('SIGHUP');
  assert.equal(await second.ended, 1);
  assert.match(second.err(), /^error: \S+gone\/state\.json cannot be written: ENOENT.*\n$/m);
  await allFree(portsIn(addresses));
});

test('a command that is running when the stack is stopped is stopped first, its exit code is printed, and the state is saved', async (t) => {
  const inside = folder(t);
  const [env, state] = [inside('env'), inside('state.json')];
  const args = ['--quiet', '--port-base', '0', '--save', state, '--write-env', env];
  const stack = run(t, [
    ...args,
    '--',
    'sh',
    '-c',
    'trap "exit 5" TERM; echo up; while :; do sleep 0.05; done',
  ]);
  await until(() => stack.out(), 'the command runs');
  stack.process.kill('SIGTERM');
  assert.equal(await stack.ended, 5, stack.err());
  assert.equal(existsSync(env), false);
  assert.equal((JSON.parse(readFileSync(state, 'utf8')) as { version: number }).version, 1);
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
  await allFree(portsIn({ address }));
});

test('a command that cannot be run is one line and exit code 127', async (t) => {
  const stack = run(t, ['--quiet', '--port-base', '0', '--', '/nowhere/program']);
  assert.equal(await stack.ended, 127);
  assert.match(stack.err(), /^error: \/nowhere\/program cannot be run: .*ENOENT\n$/);
});

/** What the package's own command prints. */
function printed(...args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [BIN, ...args], (error, stdout) => (error ? reject(error) : resolve(stdout)));
  });
}
