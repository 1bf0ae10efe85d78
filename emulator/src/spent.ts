/**
 * What a piece of work took, for tests that must not depend on how busy the machine is: a process that is kept waiting
 * for a processor makes no turns and uses no CPU time.
 */
import { readFileSync } from 'node:fs';

/** Kernel ticks a second: `USER_HZ`, 100 on every Linux that Node runs on. */
const TICKS = 100;

/**
 * How many turns this process's event loop made while `work` ran, counted at most once a millisecond: on an idle
 * machine about the milliseconds that `work` waited. Judges a wait; what computes makes few turns.
 *
 * @example
 * ```ts
 * assert.ok((await turnsDuring(() => assert.rejects(client.call({ timeoutMs: 300 })))) < 3_000);
 * ```
 */
export async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  const timer = setInterval(() => (turns += 1), 1);
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
  return turns;
}

/** Milliseconds of CPU time, of all threads of this process, that `work` took. Judges what computes. */
export async function cpuMillisecondsDuring(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/**
 * Milliseconds of CPU time that the processes took that this one has started, and that ended while `work` ran; undefined
 * where the system does not say, which is everywhere but on Linux.
 */
export async function childrensCpuMillisecondsDuring(
  work: () => Promise<unknown>,
): Promise<number | undefined> {
  const before = childrensTicks();
  await work();
  const after = childrensTicks();
  return before === undefined || after === undefined ? undefined : ((after - before) * 1_000) / TICKS;
}

function childrensTicks(): number | undefined {
  try {
    // After the name in brackets: cutime and cstime are fields 16 and 17 of proc(5).
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return Number(fields[13]) + Number(fields[14]);
  } catch {
    return undefined;
  }
}
