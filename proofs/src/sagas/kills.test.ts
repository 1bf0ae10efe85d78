/**
 * Sagas while the orchestrator and the participants are killed with SIGKILL, one after the other: each ends completed or
 * compensated, no effect is there twice, none is half done, none is open. The run is the demo's, as a process of its own, on
 * the local stack; what it judges by is the participants' own book.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const DEMO = fileURLToPath(new URL('../../../examples/src/sagas/demo/cli.ts', import.meta.url));

/** A few by default, since each costs the start of a process; `npm run test:kills` takes 50. */
const KILLS = Number(process.env['TEST_KILLS'] ?? 2);
const SAGAS = Math.max(16, 4 * KILLS);
/** Far above what the run needs: a busy machine takes several seconds for the start of a process. */
const LIMIT_SECONDS = 120 + 30 * KILLS;

test(`orchestrator and participants killed ${KILLS} times: ${SAGAS} sagas end whole`, async (t) => {
  const args = ['--orders', SAGAS, '--kills', KILLS, '--limit', Math.min(LIMIT_SECONDS, 3_600)].map(String);
  const { code, out, err } = await new Promise<Readonly<{ code: number; out: string; err: string }>>(
    (resolve) => {
      execFile(process.execPath, ['--conditions=source', DEMO, ...args], (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code ?? -1), out: stdout, err: stderr });
      });
    },
  );
  t.diagnostic(out);
  const last = out.trimEnd().split('\n').at(-1) ?? '';
  assert.ok(last.startsWith('{'), `no figures: ${out}${err}`);
  const {
    completed = 0,
    compensated = 0,
    seconds: _seconds,
    ...rest
  } = JSON.parse(last) as Record<string, number>;
  assert.equal(completed + compensated, SAGAS, 'none is open');
  assert.ok(completed > 0 && compensated > 0, 'both ends were seen');
  assert.deepEqual(rest, { sagas: SAGAS, parked: 0, effectsTwice: 0, halfDone: 0 });
  const killed = /^SIGKILL: (.*);/m.exec(out)?.[1]?.matchAll(/ (\d+)/g) ?? [];
  const counts = [...killed].map(([, count]) => Number(count));
  assert.equal(counts.length, 5, 'the orchestrator and four participants');
  assert.equal(
    counts.reduce((sum, count) => sum + count, 0),
    KILLS,
  );
  assert.ok(Math.max(...counts) - Math.min(...counts) <= 1, 'each process has its share');
  assert.equal(code, 0);
});
