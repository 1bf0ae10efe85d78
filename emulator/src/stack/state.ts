/** What a stack shows of itself: `GET /state`. */
import type { Faults } from '../faults/index.ts';
import type { MovableClock } from '../movable-clock.ts';
import type { NotServed } from './not-served.ts';
import type { Servers } from './servers.ts';
import { SERVICES } from './services.ts';
import type { StackState } from './stack.ts';

export type StatePorts = Readonly<{
  addresses: () => object;
  clock: MovableClock;
  servers: Servers;
  notServed: Pick<NotServed, 'counts'>;
  faults: Pick<Faults, 'log'>;
}>;

export function stateOf({ addresses, clock, servers, notServed, faults }: StatePorts): StackState {
  const nowMs = clock.now();
  const nextDueMs = clock.nextDueMs();
  const all = Object.entries(servers);
  return {
    addresses: addresses(),
    clock: {
      nowMs,
      now: new Date(nowMs).toISOString(),
      frozen: clock.isFrozen(),
      ...(nextDueMs !== undefined && { nextDueMs }),
    },
    ...Object.fromEntries(all.map(([name, { own }]) => [name, own?.stats() ?? { external: true }])),
    unimplemented: Object.fromEntries(
      SERVICES.filter((name) => servers[name] !== undefined).map((name) => [
        name,
        { ...servers[name]?.own?.unimplemented(), ...notServed.counts(name) },
      ]),
    ),
    faults: faults.log().length,
  };
}
