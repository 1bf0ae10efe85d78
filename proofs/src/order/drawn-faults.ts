/**
 * What goes wrong in a simulation, drawn from its seed, and where processes die in it.
 */
import type { Clock } from '../../../shared/src/clock.ts';
import { type Fault, randomFault } from '../engine/faults.ts';
import type { Tally } from '../engine/places.ts';
import type { Request } from './faulty-store.ts';
import { HANDLER, placeOf } from './places.ts';
import type { Schedule } from './schedule.ts';
import type { Random } from '../engine/random.ts';

export type Faults = Readonly<{
  /** How many there were. */
  count(): number;
  /** Nothing goes wrong any more after a while: by then every promise must be kept. */
  on(): boolean;
  ofRequest(request: Request): Fault;
  /** What the handler does in this call: whether it is slow, and whether its process dies in it. */
  ofHandler(): Readonly<{ isSlow: boolean; dies: boolean }>;
}>;

export const FAULTS_END_MS = 120_000;

export function drawnFaults(
  plan: Schedule,
  random: Random,
  clock: Clock,
  crashes: Tally | undefined,
): Faults {
  let count = 0;
  const on = (): boolean => clock.monotonic() < FAULTS_END_MS;
  const goesWrong = (share: number): boolean => on() && random.chance(share);
  return {
    count: () => count,
    on,
    ofRequest(request) {
      const place = plan.crashSite === undefined ? '' : placeOf(request);
      const isTarget = place !== '' && place === plan.crashSite && goesWrong(0.5);
      if (!isTarget && !goesWrong(plan.faultRate)) {
        return { kind: 'none', beforeMs: random.upTo(20), afterMs: random.upTo(20) };
      }
      count += 1;
      const fault = isTarget
        ? ({ kind: 'crash', when: random.pick<'before' | 'after'>(['before', 'after']) } as const)
        : randomFault(random);
      if (fault.kind === 'crash') crashes?.add(place === '' ? placeOf(request) : place);
      return fault;
    },
    ofHandler() {
      const isSlow = goesWrong(plan.faultRate / 2);
      const dies = goesWrong(plan.crashSite === HANDLER ? 0.5 : plan.faultRate / 4);
      count += Number(isSlow) + Number(dies);
      if (dies) crashes?.add(HANDLER);
      return { isSlow, dies };
    },
  };
}
