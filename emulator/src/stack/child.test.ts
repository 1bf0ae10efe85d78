import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Agent, get, type IncomingMessage } from 'node:http';
import { test, type TestContext } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from '../free-ports.ts';
import { type Child, child, type ChildOptions, listens } from './child.ts';
import { folder, freeBase } from './cli-fixture.ts';

/** A program of the stack with this source, ended with the test. */
async function program(
  t: TestContext,
  source: (port: number, file: (name: string) => string) => string,
  limits: Required<ChildOptions>['limits'],
): Promise<Readonly<{ started: Child; port: number; lines: string[] }>> {
  const [file, port] = [folder(t), await freePort()];
  writeFileSync(file('main.mjs'), source(port, file));
  const lines: string[] = [];
  const log = (line: string): void => void lines.push(line);
  const started = child({ name: 'slow', args: [file('main.mjs')], env: {}, port, log, limits });
  t.after(() => started.kill());
  return { started, port, lines };
}

const listen = (port: number): string =>
  `(await import('node:net')).createServer().listen(${port}, '127.0.0.1');`;

test('waits for a program as long as it goes on loading, however long that takes', async (t) => {
  const modules = 80;
  const { started } = await program(
    t,
    (port, file) => {
      // Each blocks its process, as loading does on a machine that is busy.
      const block = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);';
      for (let n = 0; n < modules; n += 1) writeFileSync(file(`m${n}.cjs`), block);
      const required = Array.from({ length: modules }, (_, n) => `require('./m${n}.cjs');`).join('\n');
      writeFileSync(file('all.cjs'), required);
      return `import './all.cjs';\n${listen(port)}`;
    },
    { silenceMs: 4_000, totalMs: 600_000 },
  );
  const start = performance.now();
  await started.start();
  assert.ok(performance.now() - start > 4_000, 'it was to take longer than it may be silent');
});

test('ends a program that makes no progress, and says so', async (t) => {
  const { started } = await program(
    t,
    () => `console.log('looking for the database'); setInterval(() => {}, 1000);`,
    { silenceMs: 1_000, totalMs: 600_000 },
  );
  await assert.rejects(
    started.start(),
    /^Error: slow did not listen on port \d+: it reported nothing for 1 s: looking for the database$/,
  );
});

test('ends a program that writes for ever and does not listen', async (t) => {
  const { started } = await program(t, () => `setInterval(() => console.log('not yet'), 20);`, {
    silenceMs: 60_000,
    totalMs: 1_000,
  });
  await assert.rejects(started.start(), /^Error: slow did not listen on port \d+ within 1 s: not yet/);
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
  // As `npm run demo` does, it decides by itself what becomes of the signal.
  const source = `
    const { startToolkit } = await import(${JSON.stringify(new URL('./toolkit.ts', import.meta.url).href)});
    process.on('SIGINT', () => console.log('interrupted'));
    try {
      const toolkit = await startToolkit({ portBase: ${base} });
      await toolkit.close();
      console.log('started');
    } catch (error) {
      console.log(error.message);
    }`;
  const starter = spawn(process.execPath, ['--conditions=source', '--input-type=module', '-e', source], {
    stdio: ['ignore', 'pipe', 'inherit'],
    // A group of its own: what is typed at a terminal goes to all of it.
    detached: true,
  });
  t.after(() => starter.kill('SIGKILL'));
  let said = '';
  starter.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
  const ended = once(starter, 'close');
  // The servers listen first, the functions some seconds later.
  for (let round = 0; round < 2_400 && !(await listens(base)); round += 1) await wait(25);
  // A quick machine has started and closed the toolkit before the last of them.
  for (let times = 0; times < 3 && starter.exitCode === null; times += 1) {
    try {
      process.kill(-(starter.pid ?? 0), 'SIGINT');
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'ESRCH');
      break;
    }
    await wait(100);
  }
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
