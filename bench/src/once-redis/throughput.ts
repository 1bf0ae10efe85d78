/**
 * Messages per second and CPU time per message of several ways to work through fresh messages, in turn: a round is made
 * of short slices of each, so that what else happens on the machine falls on all of them.
 */
import { median } from '../median.ts';

/** Makes ready, untimed, and answers with what is timed. */
export type Side = (count: number) => Promise<() => Promise<void>>;
export type Pace = Readonly<{ perSecond: number; cpuMicros: number }>;

export async function round(sides: readonly Side[], slices: number, count: number): Promise<readonly Pace[]> {
  const spent = sides.map(() => ({ ms: 0, cpuMicros: 0 }));
  for (let slice = 0; slice < slices; slice += 1) {
    for (const [index, prepare] of sides.entries()) {
      const work = await prepare(count);
      const cpu = process.cpuUsage();
      const begun = performance.now();
      await work();
      const ms = performance.now() - begun;
      const { user, system } = process.cpuUsage(cpu);
      const sum = spent[index] ?? { ms: 0, cpuMicros: 0 };
      spent[index] = { ms: sum.ms + ms, cpuMicros: sum.cpuMicros + user + system };
    }
  }
  const all = slices * count;
  return spent.map(({ ms, cpuMicros }) => ({
    perSecond: Math.round((all / ms) * 1_000),
    cpuMicros: Number((cpuMicros / all).toFixed(1)),
  }));
}

export const medianPace = (rounds: readonly Pace[]): Pace => ({
  perSecond: median(rounds.map(({ perSecond }) => perSecond)),
  cpuMicros: median(rounds.map(({ cpuMicros }) => cpuMicros)),
});
