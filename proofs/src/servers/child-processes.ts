/**
 * Processes that a test starts and kills.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/**
 * Its next line. Rejects when the process ends without one, so that a process that cannot start fails the test at once.
 */
export async function heard(child: ChildProcess): Promise<unknown> {
  const ended = async (): Promise<never> => {
    const [code, signal] = await once(child, 'exit');
    throw new Error(`a process ended with ${code ?? signal}`);
  };
  return Promise.race([once(child, 'message'), ended()]);
}

/** SIGKILL, and resolves when it is gone. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}
