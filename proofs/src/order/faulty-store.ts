/**
 * A stream store whose calls go wrong on request, for tests: what a network, a client that repeats requests by itself
 * and a process that dies can do to each call.
 */
import { type Clock, sleep } from '../../../shared/src/clock.ts';
import { storeUnavailable } from '../../../shared/src/errors.ts';
import type { StreamAdmin, StreamStore } from '../../../shared/src/order/stream-store.ts';
import type { Random } from '../engine/random.ts';

export type Fault =
  | Readonly<{ kind: 'none'; beforeMs?: number; afterMs?: number }>
  /** Not applied, and an error. */
  | Readonly<{ kind: 'refused' }>
  /** Applied, and an error. */
  | Readonly<{ kind: 'reply lost' }>
  /** An error now, applied later. */
  | Readonly<{ kind: 'delayed'; byMs: number }>
  /** Applied, the reply lost, sent again by the client: what the second one answers. */
  | Readonly<{ kind: 'repeated' }>
  /** The process ends before or after the call is applied: nothing comes back. */
  | Readonly<{ kind: 'crash'; when: 'before' | 'after' }>;

export type Store = StreamStore & StreamAdmin;
type Method = Exclude<keyof Store, 'maxHeldBytes'>;

/** What else a consumer waits for: its payload store, its outbox, its dead-letter topic. */
export type Request = Method | 'put' | 'get' | 'done' | 'republish' | 'dead letter';

export type FaultPlan = Readonly<{
  faultOf(request: Request): Fault;
  /** Whether the process behind this store still runs: if not, no call of it ever answers. */
  alive(): boolean;
  crash(): void;
}>;

export type Call = <Result>(request: Request, apply: () => Promise<Result>) => Promise<Result>;

/** One request of a process: it goes wrong as planned, and never answers a process that has died. */
export function faultyCall(clock: Clock, plan: FaultPlan): Call {
  return async (request, apply) => {
    if (!plan.alive()) return never();
    const fault = plan.faultOf(request);
    switch (fault.kind) {
      case 'none': {
        if (fault.beforeMs !== undefined) await sleep(clock, fault.beforeMs);
        const result = await apply();
        if (fault.afterMs !== undefined) await sleep(clock, fault.afterMs);
        return plan.alive() ? result : never();
      }
      case 'refused':
        throw storeUnavailable(`${request}: refused`);
      case 'reply lost':
        await apply();
        throw storeUnavailable(`${request}: reply lost`);
      case 'delayed':
        clock.after(fault.byMs, () => void apply().catch(() => undefined));
        throw storeUnavailable(`${request}: delayed`);
      case 'repeated':
        await apply();
        return apply();
      case 'crash':
        if (fault.when === 'after') await apply();
        plan.crash();
        return never();
    }
  };
}

/** The reads inside a transaction are requests of their own; its commit goes wrong with the transaction as a whole. */
export function faultyStore(store: Store, call: Call): Store {
  return {
    maxHeldBytes: store.maxHeldBytes,
    read: (ref) => call('read', () => store.read(ref)),
    held: (...args) => call('held', () => store.held(...args)),
    commit: (...args) => call('commit', () => store.commit(...args)),
    transact: (ref, work) =>
      call('transact', () =>
        store.transact(ref, (inside) =>
          work({
            read: () => call('read', () => inside.read()),
            held: (...args) => call('held', () => inside.held(...args)),
            commit: inside.commit,
          }),
        ),
      ),
    list: (...args) => call('list', () => store.list(...args)),
    count: (...args) => call('count', () => store.count(...args)),
    countHeld: (...args) => call('countHeld', () => store.countHeld(...args)),
  };
}

const never = (): Promise<never> => new Promise(() => undefined);

export function randomFault(random: Random): Fault {
  return random.pick<Fault>([
    { kind: 'refused' },
    { kind: 'reply lost' },
    { kind: 'delayed', byMs: random.upTo(32_000) },
    { kind: 'repeated' },
    { kind: 'crash', when: 'before' },
    { kind: 'crash', when: 'after' },
    { kind: 'none', beforeMs: random.upTo(40_000) },
    { kind: 'none', afterMs: random.upTo(40_000) },
  ]);
}
