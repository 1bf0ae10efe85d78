/** A redis-server of its own for a benchmark: on loopback, saving nothing, ended by its own process ID. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { freePort } from 'pubsub-guarantees-emulator';

export type RunningRedis = Readonly<{ port: number; close(): Promise<void> }>;

/** Undefined, with a line that says so, where redis-server is not on the PATH. */
export async function startRedis(print: (line: string) => void): Promise<RunningRedis | undefined> {
  if (spawnSync('redis-server', ['--version'], { stdio: 'ignore' }).status !== 0) {
    print('skipped: no redis-server on the PATH');
    return undefined;
  }
  const directory = await mkdtemp(join(tmpdir(), 'bench-redis-'));
  const port = await freePort();
  const flags = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const server = spawn('redis-server', [...flags, '--dir', directory], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const close = async (): Promise<void> => {
    if (server.exitCode === null && server.signalCode === null) {
      const exited = once(server, 'exit');
      server.kill('SIGKILL');
      await exited;
    }
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await untilReady(server);
  } catch (error) {
    await close();
    throw error;
  }
  return { port, close };
}

async function untilReady({ stdout }: ChildProcess): Promise<void> {
  if (stdout === null) throw new Error('redis-server has no output to watch');
  for await (const line of createInterface({ input: stdout })) {
    if (!/ready to accept connections/i.test(line)) continue;
    stdout.resume();
    return;
  }
  throw new Error('redis-server ended before it was ready');
}
