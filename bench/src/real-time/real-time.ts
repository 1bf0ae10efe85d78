/**
 * What takes days by the clock of the local stack must take under 300 ms of real time: the cases of the stack's own
 * test, repeated until one run of each was not disturbed. Not part of the tests, which must pass on a busy machine.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const FILE = fileURLToPath(new URL('../../../emulator/src/stack/real-time.test.ts', import.meta.url));
const LINE = /^(?:not )?ok \d+ - (.*)$|^# best of \d+: (\d+) ms/gm;

export async function realTime(print: (line: string) => void): Promise<object> {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--conditions=source', '--test', '--test-reporter=tap', FILE],
    { encoding: 'utf8', env: { ...process.env, TEST_REAL_TIME: '1' } },
  );
  const milliseconds: Record<string, number> = {};
  let name = '';
  for (const [, ended, best] of stdout.matchAll(LINE)) {
    name = ended ?? name;
    if (best !== undefined) milliseconds[name] = Number(best);
  }
  for (const [what, ms] of Object.entries(milliseconds)) print(`${String(ms).padStart(6)} ms  ${what}`);
  if (status !== 0) throw new Error(`a case failed or took 300 ms or more\n${stdout}${stderr}`);
  return { milliseconds };
}
