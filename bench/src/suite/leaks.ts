/** Processes that a test started and did not end, found by a variable that they inherited. Linux; elsewhere none. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

/** Set for each process of the suite; its children inherit it with the rest of the environment. */
export const MARK = 'TEST_SUITE_UNIT';

/** A process that is about to end is given so long. */
const PATIENCE_MS = 5_000;
const STEP_MS = 50;

/** A line for each process other than this one that still has a mark beginning with `prefix`. */
export async function leaked(prefix: string, patienceMs = PATIENCE_MS): Promise<readonly string[]> {
  for (let waited = 0; ; waited += STEP_MS) {
    const found = marked(prefix);
    if (found.length === 0 || waited >= patienceMs) return found;
    await pause(STEP_MS);
  }
}

function marked(prefix: string): readonly string[] {
  if (!existsSync('/proc/self/environ')) return [];
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return [];
    const mark = read(pid, 'environ').find((line) => line.startsWith(`${MARK}=${prefix}`));
    if (mark === undefined) return [];
    const unit = mark.slice(`${MARK}=${prefix}`.length);
    return [`${unit} left process ${pid} behind: ${read(pid, 'cmdline').join(' ').trim()}`];
  });
}

/** Empty for a process that is gone, has ended, or belongs to another user. */
function read(pid: string, what: 'environ' | 'cmdline'): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/${what}`, 'utf8').split('\0');
  } catch {
    return [];
  }
}
