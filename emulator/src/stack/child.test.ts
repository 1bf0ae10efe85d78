import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { Agent, get, type IncomingMessage } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { test, type TestContext } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from '../free-ports.ts';
import { until } from '../until.ts';
import { type Child, child, type ChildOptions, listens } from './child.ts';
import { folder, freeBase } from './cli-fixture.ts';

type Clock = Required<ChildOptions>['clock'];

/** A program of the stack with this source, ended with the test. `clock` is made from the lines it has written so far. */
async function program(
  t: TestContext,
  source: (port: number, file: (name: string) => string) => string,
  limits: Required<ChildOptions>['limits'],
  clock?: (lines: readonly string[], file: (name: string) => string) => Clock,
): Promise<Readonly<{ started: Child; port: number; lines: string[] }>> {
  const [file, port] = [folder(t), await freePort()];
  writeFileSync(file('main.mjs'), source(port, file));
  const lines: string[] = [];
  const log = (line: string): void => void lines.push(line);
  const options: ChildOptions = { name: 'slow', args: [file('main.mjs')], env: {}, port, log, limits };
  const started = child({ ...options, ...(clock && { clock: clock(lines, file) }) });
  t.after(() => started.kill());
  return { started, port, lines };
}

/** Time in which nothing passes but what `passes` says at each look: real time depends on what else the machine does. */
function clockOf(passes: () => number): Clock {
  let now = 0;
  return {
    now: () => now,
    async pause(milliseconds) {
      await wait(milliseconds);
      now += passes();
    },
  };
}

/** The most that a look counts. */
const LOOK_MS = 250;
/** Time passes once it has written something. */
const onceHeard = (lines: readonly string[]): Clock => clockOf(() => (lines.length > 0 ? LOOK_MS : 0));

const listen = (port: number): string =>
  `(await import('node:net')).createServer().listen(${port}, '127.0.0.1');`;

test('waits for a program as long as it goes on loading, however long that takes', async (t) => {
  const modules = 24;
  let loaded = 0;
  const { started } = await program(
    t,
    (port, file) => {
      // Each blocks its process, as loading does on a machine that is busy, until the look that allows it.
      const block = `const { existsSync, writeFileSync } = require('node:fs');
        do Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
        while (!existsSync(__filename + '.go'));
        writeFileSync(__filename + '.done', '');`;
      for (let n = 0; n < modules; n += 1) writeFileSync(file(`m${n}.cjs`), block);
      const required = Array.from({ length: modules }, (_, n) => `require('./m${n}.cjs');`).join('\n');
      writeFileSync(file('all.cjs'), required);
      return `import './all.cjs';\n${listen(port)}`;
    },
    { silenceMs: 4_000, totalMs: 600_000 },
    (_lines, file) => {
      writeFileSync(file('m0.cjs.go'), '');
      // A look counts when a module was loaded since the last one, so that a process that gets no time is not silent.
      return clockOf(() => {
        if (!existsSync(file(`m${loaded}.cjs.done`))) return 0;
        loaded += 1;
        writeFileSync(file(`m${loaded}.cjs.go`), '');
        return LOOK_MS;
      });
    },
  );
  await started.start();
  assert.ok(loaded * LOOK_MS > 4_000, `it was to take longer than it may be silent: ${loaded} modules`);
});

test('ends a program that makes no progress, and says so', async (t) => {
  const { started } = await program(
    t,
    () => `console.log('looking for the database'); setInterval(() => {}, 1000);`,
    { silenceMs: 1_000, totalMs: 600_000 },
    onceHeard,
  );
  await assert.rejects(
    started.start(),
    /^Error: slow did not listen on port \d+: it reported nothing for 1 s: looking for the database$/,
  );
});

test('ends a program that writes for ever and does not listen', async (t) => {
  const { started } = await program(
    t,
    () => `setInterval(() => console.log('not yet'), 20);`,
    { silenceMs: 60_000, totalMs: 1_000 },
    onceHeard,
  );
  await assert.rejects(started.start(), /^Error: slow did not listen on port \d+ within 1 s: not yet/);
});

test('a port listens also where this process finds its time over before it looks', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const answer = listens((server.address() as AddressInfo).port, '127.0.0.1', 50);
  // The system connects meanwhile; this process gets no processor.
  process.nextTick(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300));
  assert.equal(await answer, true);
});

test('says how a program ended that ends while it starts', async (t) => {
  const limits = { silenceMs: 60_000, totalMs: 600_000 };
  const cases = [
    [
      `console.error('no such topic'); process.exitCode = 3;`,
      'slow did not start (exit code 3): no such topic',
    ],
    [`process.kill(process.pid, 'SIGKILL');`, 'slow did not start (ended by SIGKILL): it wrote nothing'],
    [`process.kill(process.pid, 'SIGINT');`, 'slow did not start (ended by SIGINT): it wrote nothing'],
  ] as const;
  for (const [source, message] of cases) {
    const { started } = await program(t, () => source, limits);
    await assert.rejects(started.start(), { message });
  }
});

test('Ctrl-C at a terminal is for the program that starts the toolkit, and ends none of its processes', async (t) => {
  const base = await freeBase();
  // As `npm run demo` does, it decides by itself what becomes of the signal. It closes when this test has sent them all.
  const source = `
    const { startToolkit } = await import(${JSON.stringify(new URL('./toolkit.ts', import.meta.url).href)});
    process.on('SIGINT', () => console.log('interrupted'));
    try {
      const toolkit = await startToolkit({ portBase: ${base} });
      for await (const _ of process.stdin);
      await toolkit.close();
      console.log('started');
    } catch (error) {
      console.log(error.message);
      process.exit(1);
    }`;
  const starter = spawn(process.execPath, ['--conditions=source', '--input-type=module', '-e', source], {
    stdio: ['pipe', 'pipe', 'inherit'],
    // A group of its own: what is typed at a terminal goes to all of it.
    detached: true,
  });
  t.after(() => starter.kill('SIGKILL'));
  let said = '';
  starter.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
  const ended = once(starter, 'close');
  // The servers listen first, the functions some seconds later.
  await until(() => listens(base), 'the servers listen');
  const isUp = (): boolean => starter.exitCode === null && starter.signalCode === null;
  for (let times = 0; times < 3 && isUp(); times += 1) {
    try {
      process.kill(-(starter.pid ?? 0), 'SIGINT');
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'ESRCH');
      break;
    }
    await wait(100);
  }
  await until(() => said.includes('interrupted') || !isUp(), 'it was interrupted');
  starter.stdin.end();
  await ended;
  assert.match(said, /^(interrupted\n)+started\n$/);
});

test('a program of the stack never closes an idle connection, which a delivery could be on its way through', async (t) => {
  const { started, port } = await program(
    t,
    (own) =>
      `(await import('node:http')).createServer((_, response) => response.end('ok')).listen(${own}, '127.0.0.1');`,
    { silenceMs: 60_000, totalMs: 600_000 },
  );
  await started.start();
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const answered = once(get({ agent, port, host: '127.0.0.1' }), 'response');
  const [response] = (await answered) as [IncomingMessage];
  response.resume();
  assert.deepEqual([response.headers.connection, response.headers['keep-alive']], ['keep-alive', undefined]);
});
