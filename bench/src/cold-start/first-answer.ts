/**
 * A server process from its start to its first answered request: wall-clock time, and the CPU time that it took by
 * then, which other work on the machine disturbs less.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from 'pubsub-guarantees-emulator';

export type Server = Readonly<{
  /** Behind `node`; the port is in the variable PORT. */
  args: readonly string[];
  env: Readonly<Record<string, string>>;
  first: Readonly<{ path: string; headers: Readonly<Record<string, string>>; body: Buffer }>;
}>;

/** `cpuMs` in steps of 10 ms; NaN where /proc does not say. */
export type Start = Readonly<{ wallMs: number; cpuMs: number }>;

const LIMIT_MS = 60_000;
const POLL_MS = 3;
/** Ticks of /proc are hundredths of a second on every Linux that Node runs on. */
const TICK_MS = 10;

export async function firstAnswer({ args, env, first }: Server): Promise<Start> {
  const port = await freePort();
  const begun = performance.now();
  const child = spawn(process.execPath, [...args], {
    env: { ...env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let complaint = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (complaint += text));
  try {
    for (;;) {
      const status = await post(port, first).catch(() => undefined);
      if (status !== undefined) {
        const wallMs = performance.now() - begun;
        if (status >= 300) throw new Error(`the first request was answered ${status}: ${complaint}`);
        return { wallMs, cpuMs: await cpuMs(child) };
      }
      if (child.exitCode !== null) throw new Error(`it ended before it answered: ${complaint}`);
      if (performance.now() - begun > LIMIT_MS) throw new Error(`no answer within ${LIMIT_MS} ms`);
      await wait(POLL_MS);
    }
  } finally {
    if (child.exitCode === null && child.signalCode === null) {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    }
  }
}

function post(port: number, { path, headers, body }: Server['first']): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: '127.0.0.1', port, path, method: 'POST', headers, agent: false },
      (response) => {
        response.resume().once('end', () => resolve(response.statusCode ?? 0));
      },
    );
    sent.once('error', reject);
    sent.end(body);
  });
}

async function cpuMs({ pid }: ChildProcess): Promise<number> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // Fields 14 and 15, counted behind the name, which may hold spaces.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  } catch {
    return Number.NaN;
  }
}
