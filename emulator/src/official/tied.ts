/**
 * Starts a program that ends with this process, however that ends, and with its guard. Where Linux can do it
 * (`setpriv` of util-linux), the kernel itself ends the program when its parent is gone, which also covers the one
 * case that a guard cannot: parent and guard killed in the same moment.
 *
 * The kernel counts the thread that started the program as its parent: started in a worker, it ends with the worker.
 */
import { type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process';
import type { Readable } from 'node:stream';
import { type Guard, guard } from './guard.ts';

export type Tied = Readonly<{
  child: ChildProcessByStdio<null, Readable, Readable>;
  guard: Guard | undefined;
}>;

/** The parent may have ended before this process asked the kernel for the signal: then the signal would never come. */
const STILL_OURS = `[ "$PPID" = "$0" ] && exec "$@"`;

/** Its standard input is empty, and a Ctrl-C in the terminal does not reach it: the process that started it ends it. */
export function spawnTied(command: string, args: readonly string[], kernel = kernelEnds()): Tied {
  const whole = [command, ...args];
  const [file = command, ...rest] = kernel
    ? ['setpriv', '--pdeathsig', 'KILL', '--', '/bin/sh', '-c', STILL_OURS, String(process.pid), ...whole]
    : whole;
  const child = spawn(file, rest, {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: process.platform !== 'win32',
  });
  if (child.pid === undefined) return { child, guard: undefined };
  const guarded = guard(child.pid);
  child.once('exit', guarded.dismiss);
  void guarded.gone.then(() => child.kill('SIGKILL'));
  return { child, guard: guarded };
}

/** Whether `setpriv` is there, and new enough. */
export function kernelEnds(): boolean {
  return (
    process.platform === 'linux' &&
    spawnSync('setpriv', ['--pdeathsig', 'KILL', '--', 'true'], { stdio: 'ignore' }).status === 0
  );
}
