import { type ChildProcess, spawn } from 'node:child_process';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { findOfficial } from './find.ts';
import { isRunning, untilGone } from './testing.ts';
import { kernelEnds } from './tied.ts';

const FIXTURE = fileURLToPath(new URL('./stopping-fixture.ts', import.meta.url));
const NODE = [process.execPath, '--conditions=source', FIXTURE];

type Started = Readonly<{
  /** The fixture, or the shell that runs it. */
  child: ChildProcess;
  self: number;
  pid: number;
  guardPid: number;
  port: number;
}>;

async function start(t: TestContext, args: readonly string[], shell = false): Promise<Started> {
  const [file = '', ...rest] = shell
    ? ['/bin/sh', '-c', '"$@"; exit $?', 'sh', ...NODE, ...args]
    : [...NODE, ...args];
  const { npm_lifecycle_event: _, ...env } = process.env;
  const child = spawn(file, rest, {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: shell ? { ...env, npm_lifecycle_event: 'start' } : env,
    // A process group of its own, as a shell gives to a command.
    detached: true,
  });
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const started = JSON.parse(line) as Omit<Started, 'child'>;
  t.after(() => {
    for (const pid of [started.self, started.pid, started.guardPid])
      if (isRunning(pid)) process.kill(pid, 'SIGKILL');
  });
  assert.ok(isRunning(started.pid) && isRunning(started.guardPid), 'the emulator and its guard run');
  return { child, ...started };
}

/** Each way to end, with what the kernel does for us on Linux and without. */
const WAYS: readonly Readonly<{ title: string; how?: string; shell?: true; end(started: Started): void }>[] =
  [
    { title: 'close()', how: 'close', end: ({ self }) => process.kill(self, 'SIGUSR2') },
    { title: 'SIGTERM', end: ({ self }) => process.kill(self, 'SIGTERM') },
    { title: 'SIGINT to the process group', end: ({ self }) => process.kill(-self, 'SIGINT') },
    { title: 'SIGHUP', end: ({ self }) => process.kill(self, 'SIGHUP') },
    {
      title: 'an exception that no code catches',
      how: 'throw',
      end: ({ self }) => process.kill(self, 'SIGUSR2'),
    },
    { title: 'SIGKILL', end: ({ self }) => process.kill(self, 'SIGKILL') },
    { title: 'SIGKILL of the process group', end: ({ self }) => process.kill(-self, 'SIGKILL') },
    { title: "the death of npm's shell", shell: true, end: ({ child }) => child.kill('SIGKILL') },
  ];

for (const ties of ['kernel', 'guard-only']) {
  test(`no emulator is left behind (${ties})`, { concurrency: 3 }, async (t) => {
    const each = WAYS.map(({ title, how = 'wait', shell, end }) =>
      t.test(`after ${title}`, async (t) => {
        const started = await start(t, [how, 'stand-in', ties], shell);
        end(started);
        await untilGone([started.self, started.pid, started.guardPid], [started.port]);
      }),
    );
    await Promise.all(each);
  });

  test(`an emulator ends with its guard (${ties})`, async (t) => {
    const started = await start(t, ['wait', 'stand-in', ties]);
    process.kill(started.guardPid, 'SIGKILL');
    await untilGone([started.pid, started.guardPid], [started.port]);
    assert.ok(isRunning(started.self));
    process.kill(started.self, 'SIGTERM');
    await untilGone([started.self], []);
  });
}

test('no emulator is left behind when its owner and its guard are killed in the same moment', {
  skip: !kernelEnds() && 'needs Linux and a setpriv with --pdeathsig',
}, async (t) => {
  const started = await start(t, ['wait', 'stand-in', 'kernel']);
  process.kill(started.guardPid, 'SIGSTOP');
  process.kill(started.self, 'SIGKILL');
  await untilGone([started.self, started.pid], [started.port]);
  process.kill(started.guardPid, 'SIGKILL');
  await untilGone([started.guardPid], []);
});

const found = findOfficial({ services: ['pubsub'] });

test('no JVM is left behind after SIGKILL', { skip: !found.ok && found.missing }, async (t) => {
  const started = await start(t, ['wait', 'java']);
  process.kill(started.self, 'SIGKILL');
  await untilGone([started.self, started.pid, started.guardPid], [started.port]);
});
