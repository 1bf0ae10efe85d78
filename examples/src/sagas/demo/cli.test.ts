/** The demo as a user runs it, shorter. Its full length is for `npm run demo:saga`, kills by the dozen for `test:kills`. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const CLI = fileURLToPath(new URL('./cli.ts', import.meta.url));

function demo(...args: string[]): Promise<Readonly<{ code: number; out: string; err: string }>> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ['--conditions=source', CLI, ...args],
      { timeout: 290_000 },
      (error, out, err) => {
        resolve({ code: error === null ? 0 : Number(error.code ?? -1), out, err });
      },
    );
  });
}

test('a wrong option is one line and exit code 2, before anything is started', async () => {
  for (const [args, message] of [
    [['--orders', '0'], /^demo: --orders is "0"; accepted: 1 to 2000\n$/],
    [['--kills', 'all'], /^demo: --kills is "all"; accepted: 0 to 500\n$/],
    [['--colour'], /^demo: Unknown option '--colour'/],
  ] as const) {
    const { code, out, err } = await demo(...args);
    assert.deepEqual([code, out], [2, '']);
    assert.match(err, message);
  }
});

test('sixteen sagas end whole while two processes are killed, and the last line says so', async () => {
  const { code, out, err } = await demo('--orders', '16', '--kills', '2', '--limit', '270');
  assert.equal(code, 0, err + out);
  const { seconds, ...report } = JSON.parse(out.trimEnd().split('\n').at(-1) ?? '') as Record<string, number>;
  assert.ok(Number(seconds) > 0);
  const { completed = 0, compensated = 0, ...rest } = report;
  assert.equal(completed + compensated, 16);
  assert.ok(compensated >= 7, 'no courier, no dish, no answer');
  assert.deepEqual(rest, { sagas: 16, parked: 0, effectsTwice: 0, halfDone: 0 });
  assert.match(out, /^SIGKILL: saga 1, payments 1, couriers 0, kitchen 0, notices 0; .*: 1$/m);
});

test('sagas that are open when the time is over are no success', async () => {
  const { code, out } = await demo('--orders', '16', '--kills', '0', '--limit', '1', '--json');
  const { sagas = 0, completed = 0, compensated = 0 } = JSON.parse(out) as Record<string, number>;
  assert.ok(completed + compensated < sagas || sagas === 0, out);
  assert.equal(code, 1);
});
