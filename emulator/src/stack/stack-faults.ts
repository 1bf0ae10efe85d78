/** The faults of a stack: those of its own servers, and a refusal for those that could never happen. */
import { createFaults, type Faults } from '../faults/index.ts';
import { PlanError } from '../faults/checked.ts';
import type { Servers } from './servers.ts';
import { TITLE, UnsupportedError } from './services.ts';

export type StackFaults = Pick<Faults, 'set' | 'clear' | 'plan' | 'fired' | 'log' | 'dropped' | 'restart'>;

/** `set` also throws for a rule about a service that the stack does not run, UnsupportedError for one not its own. */
export function stackFaults(faults: Faults, servers: Servers): Faults {
  return {
    ...faults,
    set(plan) {
      assertFaultsOf(servers, plan);
      faults.set(plan);
    },
  };
}

/** As above; nothing is set. */
export function assertFaultsOf(servers: Servers, plan: unknown): void {
  const scratch = createFaults();
  scratch.set(plan);
  for (const [index, { service }] of scratch.plan().rules.entries()) {
    const served = servers[service];
    const at = `rules[${index}].service is "${service}"`;
    if (served === undefined) throw new PlanError(`${at}, which does not run here`);
    if (served.own === undefined) {
      throw new UnsupportedError(
        `${at}: ${TITLE[service]} is not a server of this package, faults are not possible`,
      );
    }
  }
}
