/**
 * `npm run test:polyglot`: Google's Python and Go clients against the stack, each as its users have it. A language that
 * is not on this machine is skipped with a line; one that is there and cannot get its libraries is a failure.
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Stack, startStack } from '../stack/stack.ts';

const PROGRAMS = fileURLToPath(new URL('../../polyglot', import.meta.url));
const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/pubsub-guarantees', import.meta.url));
/** The first build of the Go clients takes minutes. */
const LIMIT_MS = 600_000;

// Each language has a stack of its own, whose clock it moves.
let stack: Stack;
beforeEach(async () => {
  stack = await startStack();
});
afterEach(() => stack?.close());

void test('Google’s Python clients', { timeout: LIMIT_MS }, async (t) => {
  if (!answers('python3', '-c', 'import venv, ensurepip'))
    return t.skip('python3 with venv is not installed');
  const requirements = join(PROGRAMS, 'python/requirements.txt');
  const venv = join(CACHE, `python-${fingerprint(requirements)}`);
  const python = join(venv, 'bin/python');
  const installed = join(venv, 'bin/.installed');
  if (!existsSync(installed)) {
    await run(t, 'python3', ['-m', 'venv', '--clear', venv]);
    await run(t, python, [
      '-m',
      'pip',
      'install',
      '--quiet',
      '--disable-pip-version-check',
      '-r',
      requirements,
    ]);
    await run(t, python, ['-c', `open(${JSON.stringify(installed)}, 'w').close()`]);
  }
  await run(t, python, [join(PROGRAMS, 'python/check.py')]);
});

void test('Google’s Go clients', { timeout: LIMIT_MS }, async (t) => {
  if (!answers('go', 'version')) return t.skip('go is not installed');
  const program = join(CACHE, 'polyglot-go');
  await run(t, 'go', ['build', '-o', program, '.'], join(PROGRAMS, 'go'));
  await run(t, program, []);
});

function answers(command: string, ...args: readonly string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore', timeout: 30_000 }).status === 0;
}

function fingerprint(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex').slice(0, 12);
}

/** Rejects with what the program wrote unless it ends with 0. */
async function run(t: TestContext, command: string, args: readonly string[], cwd = PROGRAMS): Promise<void> {
  const { pubsub, firestore, tasks, control } = stack.addresses;
  const child = spawn(command, args, {
    cwd,
    signal: t.signal,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      PUBSUB_EMULATOR_HOST: pubsub,
      FIRESTORE_EMULATOR_HOST: firestore,
      CLOUD_TASKS_EMULATOR_HOST: tasks,
      LOCAL_STACK_CONTROL: control,
    },
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (said += text));
  }
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve));
  if (code !== 0) throw new Error(`${command} ended with ${String(code)}:\n${said}`);
  for (const line of said.split('\n')) if (line.startsWith('ok ')) t.diagnostic(line);
}
