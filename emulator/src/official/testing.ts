/** For the tests: a stand-in for an emulator, and whether processes and ports are gone. */
import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { listens } from '../stack/child.ts';
import type { LaunchOptions } from './launch.ts';

/** Options that start a program of Node as if it were an emulator: `port` is the name of its port in the program. */
export function standIn(port: number, program: string): LaunchOptions {
  return {
    title: 'the stand-in',
    command: process.execPath,
    args: ['-e', `const port = ${port}; ${program}`],
    port,
    readyLine: /listening on \d+/,
    answers: () => listens(port),
    log: () => undefined,
  };
}

/** The program of one that behaves. */
export const LISTENS = `
  require('node:net').createServer().listen(port, '127.0.0.1', () => console.log('listening on ' + port));`;

/** Throws when one of the processes, or something on the port, is there after two minutes. */
export async function untilGone(pids: readonly number[], ports: readonly number[]): Promise<void> {
  let left: readonly string[] = [];
  for (let look = 0; look < 6_000; look += 1, await wait(20)) {
    const open = await Promise.all(ports.map((port) => listens(port)));
    left = [
      ...pids.filter(isRunning).map((pid) => `process ${pid}`),
      ...ports.filter((_, index) => open[index]).map((port) => `port ${port}`),
    ];
    if (left.length === 0) return;
  }
  throw new Error(`still there: ${left.join(', ')}`);
}

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    // Ended, and its new parent has not asked for its exit code: some containers have no process that does.
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return process.platform !== 'linux';
  }
}
