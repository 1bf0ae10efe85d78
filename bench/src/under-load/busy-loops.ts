/** Processes that do nothing but take processor time, so that a benchmark runs as on a machine that is far too small. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('./busy-loop.ts', import.meta.url));

/** Starts `count` of them. Each ends with `close`, with this process, or after `longestMs`, whichever is first. */
export function busyLoops(count: number, longestMs: number): Readonly<{ close(): Promise<void> }> {
  const children = Array.from({ length: count }, () =>
    spawn(process.execPath, [PROGRAM, String(longestMs)], { stdio: 'ignore' }),
  );
  return {
    async close() {
      await Promise.all(
        children.map(async (child) => {
          if (child.exitCode !== null || child.signalCode !== null) return;
          const gone = once(child, 'exit');
          child.kill('SIGKILL');
          await gone;
        }),
      );
    },
  };
}
