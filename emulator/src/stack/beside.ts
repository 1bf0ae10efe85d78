/**
 * A command that runs beside the stack, with its variables, on the terminal that both were started from. When it ends the
 * stack does; when the stack is stopped first, the command is. When the stack is killed (SIGKILL), the command goes on.
 */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';

export type Beside = Readonly<{
  /**
   * SIGTERM, unless it `knows` that it is to end, and SIGKILL after half a minute: what it does in its end is the user's,
   * and takes its time on a busy machine. Resolves when it is gone, with its exit code.
   */
  end(knows: boolean): Promise<number>;
}>;

const GRACE_MS = 30_000;
/** As shells answer for a command that cannot be run, and for one that a signal ended. */
const NOT_RUN = 127;
const SIGNALLED = 128;

/** `onEnd` gets the exit code, and what was wrong when it could not be run. */
export function beside(
  [file = '', ...args]: readonly string[],
  environment: Readonly<Record<string, string>>,
  onEnd: (code: number, problem?: string) => void,
): Beside {
  const started = spawn(file, args, { stdio: 'inherit', env: { ...process.env, ...environment } });
  const gone = new Promise<number>((resolve) => {
    const ended = (code: number, problem?: string): void => {
      resolve(code);
      onEnd(code, problem);
    };
    started.once('error', (error) => ended(NOT_RUN, `${file} cannot be run: ${error.message}`));
    started.once('exit', (code, signal) => ended(code ?? SIGNALLED + constants.signals[signal ?? 'SIGTERM']));
  });
  return {
    async end(knows) {
      if (!knows) started.kill('SIGTERM');
      const late = setTimeout(() => started.kill('SIGKILL'), GRACE_MS);
      const code = await gone;
      clearTimeout(late);
      return code;
    },
  };
}
