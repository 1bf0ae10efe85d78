/**
 * Ends a process when this one has ended, in whatever way. A program like java does not end with its parent, so a
 * small shell stands beside it: it reads a pipe that only this process holds, and the kernel closes that pipe even
 * after SIGKILL. The shell is in a session of its own, so that a signal to our process group does not reach it.
 *
 * On Windows there is nothing to do: Node's children there belong to a job that ends with their parent.
 */
import { type ChildProcess, spawn } from 'node:child_process';

export type Guard = Readonly<{
  pid: number | undefined;
  /** Settles when the guard is no more, whether it was dismissed or ended from outside. */
  gone: Promise<void>;
  /** The process has ended: its number may soon be another's. */
  dismiss(): void;
}>;

/** `read` returns at the end of the pipe; nothing is ever written to it. */
const SCRIPT = `trap '' HUP INT TERM; while read -r _; do :; done; kill -9 "$1" 2>/dev/null`;

export function guard(pid: number): Guard {
  if (process.platform === 'win32') {
    const { promise, resolve } = Promise.withResolvers<void>();
    return { pid: undefined, gone: promise, dismiss: resolve };
  }
  const shell: ChildProcess = spawn('/bin/sh', ['-c', SCRIPT, 'guard', String(pid)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  const gone = new Promise<void>((resolve) => {
    shell.once('exit', () => resolve()).once('error', () => resolve());
  });
  return { pid: shell.pid, gone, dismiss: () => void shell.kill('SIGKILL') };
}
