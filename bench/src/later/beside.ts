/** A program of this folder in a process of its own, known to be ready by the one line of JSON that it writes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export type Beside<Ready> = Readonly<{ ready: Ready; close(): Promise<void> }>;

/** As the stack's own command starts it. */
const FLAGS = ['--conditions=source', '--max-semi-space-size=16'];

export async function beside<Ready>(
  file: string | URL,
  args: readonly string[] = [],
): Promise<Beside<Ready>> {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const child = spawn(process.execPath, [...FLAGS, path, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  // It ends with its standard input, also when this process is killed.
  const close = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.stdin.end();
    await gone;
  };
  try {
    return { ready: JSON.parse(await firstLine(child)) as Ready, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function firstLine({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new Error('the program has no output to watch');
  for await (const line of createInterface({ input: stdout })) {
    stdout.resume();
    return line;
  }
  throw new Error('the program ended before it was ready');
}
