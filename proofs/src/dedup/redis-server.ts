/**
 * A real Redis server for tests: on a free port of the loopback interface, saving nothing, ended by its own process ID.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { freePort } from 'pubsub-guarantees-emulator';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { kill } from '../servers/kill.ts';

export type RunningRedis = Readonly<{ port: number; close(): Promise<void> }>;

export const hasRedisServer = (): boolean =>
  spawnSync('redis-server', ['--version'], { stdio: 'ignore' }).status === 0;

export async function startRedis(port?: number, flags: readonly string[] = []): Promise<RunningRedis> {
  const directory = await mkdtemp(join(tmpdir(), 'redis-'));
  const chosen = port ?? (await freePort());
  const fixed = ['--port', String(chosen), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const server = spawn('redis-server', [...fixed, '--dir', directory, ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await ready(server);
  return {
    port: chosen,
    async close() {
      await kill(server);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function ready(server: ChildProcess): Promise<void> {
  if (server.stdout === null) throw new Error('redis-server has no output to watch');
  const lines = createInterface({ input: server.stdout });
  for await (const line of lines) {
    if (/ready to accept connections/i.test(line)) {
      server.stdout.resume();
      return;
    }
  }
  throw new Error('redis-server ended before it was ready');
}
