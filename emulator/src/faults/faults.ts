/**
 * Faults on request: the servers ask here, call by call, what is to go wrong, and everything that went wrong can be read
 * back. Calls are counted for each method and resource from the moment a plan is set, those alone that a rule is about:
 * without rules a server asks and hears at once that nothing is to go wrong.
 */
import type { Clock } from '../clock.ts';
import { PlanError } from './checked.ts';
import { fires, wildcard } from './decide.ts';
import { METHODS } from './methods.ts';
import { fitsRpc, parsePlan } from './parse-plan.ts';
import {
  type Action,
  type ActionType,
  type Plan,
  type RestartSpec,
  type Rule,
  type Service,
  SERVICES,
} from './plan.ts';
import { createRecords, type FaultRecord } from './record.ts';

/** What is to happen to one call. */
export type Fault = Readonly<{ action: Action; rule: number; n: number }>;

/** What a server lets faults do to it. */
export type FaultTarget = Readonly<{
  clock: Clock;
  /** Resolves when the service is down and has changed its state, with `downMs: 0` when it is up again. */
  restart(spec: RestartSpec): Promise<void>;
  /** Resolves when the service listens: before its time, if it is down. */
  up(): Promise<void>;
}>;

type DecideOptions = Readonly<{
  /** Rules with other actions are passed over, as the call cannot take them. */
  only?: ActionType;
  /** Why the service does not do this to the call, if so: recorded, and nothing is done. */
  skip?: (action: Action) => string | undefined;
}>;

export type Faults = Readonly<{
  /**
   * Sets seed and rules and counts anew; what was recorded is gone. Throws an error of one line that names the place,
   * and then nothing has changed.
   */
  set(plan: unknown): void;
  /** Removes rules, counts and records. */
  clear(): void;
  plan(): Plan;
  /** How often each rule has fired, in the order of the plan. */
  fired(): readonly number[];
  /** What was injected, the oldest first: at most 100,000, see `dropped`. */
  log(): readonly FaultRecord[];
  /** How many records are gone because there were too many. */
  dropped(): number;
  /** At once, without a rule. Rejects when the stack does not run the service, or it is down. */
  restart(service: Service, spec: RestartSpec): Promise<void>;
  /** Brings up what restarts have taken down, before its time. Rejects when a port is taken. */
  up(): Promise<void>;
  /** For the servers: whether any rule is about the method, and about the resource if one is named. */
  concern(service: Service, method: string, resource?: string): boolean;
  /** For the servers: counts the call, and says what is to happen to it. The first rule that fires decides. */
  decide(service: Service, method: string, resource: string, options?: DecideOptions): Fault | undefined;
  /** For the servers: carries out a restart that was decided, and is recorded. Never rejects. */
  restartDecided(service: Service, spec: RestartSpec): Promise<void>;
  /** For the servers: one of each service. The result takes it back. */
  attach(service: Service, target: FaultTarget): () => void;
}>;

type Prepared = Readonly<{ rule: Rule; index: number; matches: (resource: string) => boolean }>;
/** One method of one resource: how many calls, and how often each rule that is about it has fired. */
type Counter = { n: number; readonly rules: readonly { readonly prepared: Prepared; fired: number }[] };

const NONE: Plan = { seed: 0, rules: [] };

export function createFaults({ log = () => {} }: Readonly<{ log?: (line: string) => void }> = {}): Faults {
  const targets = new Map<Service, FaultTarget>();
  const records = createRecords();
  let plan = NONE;
  let fired: number[] = [];
  let rulesOf = new Map<string, readonly Prepared[]>();
  let counters = new Map<string, Counter>();

  function begin(next: Plan): void {
    plan = next;
    fired = next.rules.map(() => 0);
    rulesOf = byMethod(next.rules);
    counters = new Map();
    records.clear();
  }

  function counterOf(key: string, about: readonly Prepared[], resource: string): Counter | undefined {
    const known = counters.get(key);
    if (known !== undefined) return known;
    const rules = about.filter(({ matches }) => matches(resource));
    if (rules.length === 0) return undefined;
    const counter: Counter = { n: 0, rules: rules.map((prepared) => ({ prepared, fired: 0 })) };
    counters.set(key, counter);
    return counter;
  }

  function record(fault: Omit<FaultRecord, 'sequence' | 'timeMs'>): void {
    records.add({ timeMs: targets.get(fault.service)?.clock.now() ?? Date.now(), ...fault });
    const { service, method, resource, n, action, skipped } = fault;
    const why = skipped === undefined ? '' : `, not done: ${skipped}`;
    log(`fault: ${action} at ${service} ${method} ${resource} (${n})${why}`);
  }

  return {
    set: (value) => begin(parsePlan(value)),
    clear: () => begin(NONE),
    plan: () => plan,
    fired: () => fired,
    log: records.all,
    dropped: records.dropped,
    async restart(service, spec) {
      const target = targets.get(service);
      if (target === undefined) throw new PlanError(`service is "${service}", which does not run here`);
      record({ service, method: 'restart', resource: '', n: 0, rule: null, action: 'restart' });
      await target.restart(spec);
    },
    up: async () => void (await Promise.all([...targets.values()].map((target) => target.up()))),
    async restartDecided(service, spec) {
      try {
        await targets.get(service)?.restart(spec);
      } catch (error) {
        log(`restart of ${service} failed: ${error instanceof Error ? error.message : String(error)}`);
      }
    },
    concern(service, method, resource) {
      const about = rulesOf.size === 0 ? undefined : rulesOf.get(`${service} ${method}`);
      return (
        about !== undefined && (resource === undefined || about.some(({ matches }) => matches(resource)))
      );
    },
    decide(service, method, resource, { only, skip } = {}) {
      const about = rulesOf.size === 0 ? undefined : rulesOf.get(`${service} ${method}`);
      if (about === undefined) return undefined;
      const counter = counterOf(`${service} ${method} ${resource}`, about, resource);
      if (counter === undefined) return undefined;
      counter.n += 1;
      const { n } = counter;
      for (const each of counter.rules) {
        const { rule, index } = each.prepared;
        const { action } = rule;
        if (only !== undefined && action.type !== only) continue;
        if (each.fired >= (rule.times ?? Number.POSITIVE_INFINITY)) continue;
        if (!fires(plan.seed, index, rule, { service, method, resource, n })) continue;
        const skipped = skip?.(action);
        record({
          service,
          method,
          resource,
          n,
          rule: index,
          action: action.type,
          ...(skipped !== undefined && { skipped }),
        });
        if (skipped !== undefined) return undefined;
        each.fired += 1;
        fired[index] = (fired[index] ?? 0) + 1;
        return { action, rule: index, n };
      }
      return undefined;
    },
    attach(service, target) {
      targets.set(service, target);
      return () => {
        if (targets.get(service) === target) targets.delete(service);
      };
    },
  };
}

/** The rules by service and method, in their order. */
function byMethod(rules: readonly Rule[]): Map<string, readonly Prepared[]> {
  const all = rules.map((rule, index): Prepared => ({ rule, index, matches: wildcard(rule.resource) }));
  const found = new Map<string, readonly Prepared[]>();
  for (const service of SERVICES) {
    for (const [name, method] of Object.entries(METHODS[service])) {
      const about = all.filter(
        ({ rule }) =>
          rule.service === service &&
          (rule.method === name || (rule.method === '*' && fitsRpc(method, rule.action))),
      );
      if (about.length > 0) found.set(`${service} ${name}`, about);
    }
  }
  return found;
}
