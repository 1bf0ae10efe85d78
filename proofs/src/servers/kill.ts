import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** SIGKILL to a server that still runs. Resolves when it is gone. */
export async function kill(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const exited = once(server, 'exit');
  server.kill('SIGKILL');
  await exited;
}
