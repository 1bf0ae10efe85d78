/** For tests of the command: it runs as a process of its own, and is killed with its test whatever happens. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { assertFree } from '../grpc-server.ts';
import { until } from '../until.ts';
import { listens } from './child.ts';

export const CLI = fileURLToPath(new URL('../cli.ts', import.meta.url));

export type Run = Readonly<{
  process: ChildProcess;
  out: () => string;
  err: () => string;
  ended: Promise<number | null>;
}>;

export function run(t: TestContext, args: readonly string[], env: NodeJS.ProcessEnv = {}): Run {
  const started = spawn(process.execPath, ['--conditions=source', CLI, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    // What one has compiled the next need not.
    env: { ...process.env, ...env },
  });
  let out = '';
  let err = '';
  started.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  started.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
  const ended = once(started, 'close').then(([code]) => code as number | null);
  t.after(() => started.kill('SIGKILL'));
  return { process: started, out: () => out, err: () => err, ended };
}

/** What `--json` prints when everything is ready. */
export async function ready<Addresses>({ process: started, out, err }: Run): Promise<Addresses> {
  await until(
    () => {
      assert.equal(started.exitCode, null, err());
      return out().includes('\n');
    },
    () => `the command is ready; standard error: ${err()}`,
  );
  assert.match(out(), /^\{.*\}\n$/, `one line of JSON; standard error: ${err()}`);
  return JSON.parse(out()) as Addresses;
}

const FIRST_BASE = 12_000;
const BASES = 800;
const givenBases = new Set<number>();

/** Ten free ports in a row, below those that systems and `freePorts` hand out, and not the same twice. */
export async function freeBase(): Promise<number> {
  for (let attempt = 0; attempt < BASES; attempt += 1) {
    const base = FIRST_BASE + 10 * Math.floor(Math.random() * BASES);
    if (givenBases.has(base)) continue;
    givenBases.add(base);
    const ports = Array.from({ length: 10 }, (_, index) => base + index);
    const free = await Promise.allSettled(ports.map(assertFree));
    if (free.every(({ status }) => status === 'fulfilled')) return base;
  }
  throw new Error('no ten free ports in a row');
}

/** Of every `host:port` and URL in the addresses. */
export function portsIn(addresses: object): readonly number[] {
  return Object.values(addresses).flatMap((value: unknown) => {
    if (typeof value === 'object' && value !== null) return portsIn(value);
    const [, port] = /:(\d+)$/.exec(String(value)) ?? [];
    return port === undefined ? [] : [Number(port)];
  });
}

/** Rejects when one of them is still taken after two minutes. */
export async function allFree(ports: readonly number[]): Promise<void> {
  let open: readonly number[] = ports;
  await until(
    async () => {
      const answers = await Promise.all(ports.map((port) => listens(port)));
      open = ports.filter((_, index) => answers[index]);
      return open.length === 0;
    },
    () => `every port is free again, and not ${open.join(', ')}`,
  );
}

/** Gone with the test. */
export function folder(t: TestContext): (name: string) => string {
  const path = mkdtempSync(join(tmpdir(), 'emulator-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return (name) => join(path, name);
}
