/**
 * A restart of one service: its connections are destroyed, its port is closed for a while of the clock, and it comes back
 * with the state that it had at that moment, or with none. What was in flight ends as with the death of a process: pushes
 * and dispatches get no answer.
 *
 * While it is down it does nothing by itself. What is saved then is what it will come back with; what is loaded takes
 * the place of that.
 */
import type { Cancel, Clock } from '../clock.ts';
import type { GrpcServer } from '../grpc-server.ts';
import { PlanError } from './checked.ts';
import type { FaultTarget, Faults } from './faults.ts';
import type { RestartSpec, Service } from './plan.ts';

/**
 * The state of a server. `prepare` reads what was saved, throws an error of one line when something in it is not
 * understood, and changes nothing; what it gives puts the state in place, and does not fail.
 */
export type State = Readonly<{ save(): object; prepare(saved: unknown): () => void }>;

/** The state as others see it; `detach` takes the server out of reach of faults: one that is down stays down. */
export type Restartable = State & Readonly<{ load(saved: unknown): void; detach(): void }>;

type Outage = {
  /** What it comes back with. */
  kept: object;
  /** Resolves when its connections are gone. */
  readonly down: Promise<void>;
  isDown: boolean;
  cancel: Cancel;
  over?: Promise<void>;
};

/** Lets faults restart the server, which holds nothing yet. */
export function restartable(
  faults: Faults | undefined,
  service: Service,
  clock: Clock,
  server: Pick<GrpcServer, 'down' | 'up' | 'isDown'>,
  state: State,
  log: (line: string) => void,
): Restartable {
  const load = (saved: unknown): void => state.prepare(saved)();
  if (faults === undefined) return { ...state, load, detach: () => {} };
  const empty = state.save();
  let outage: Outage | undefined;
  let closed = false;

  async function comeUp({ kept }: Outage): Promise<void> {
    if (closed) return;
    load(kept);
    outage = undefined;
    await server.up();
  }

  /** However often it is asked for, it ends once: at once, unless the service is still going down. */
  function end(ending: Outage): Promise<void> {
    ending.cancel();
    ending.over ??= ending.isDown ? comeUp(ending) : ending.down.then(() => comeUp(ending));
    return ending.over;
  }

  const target: FaultTarget = {
    clock,
    async restart({ state: fate, downMs }: RestartSpec) {
      if (outage !== undefined) throw new PlanError(`service is "${service}", which is down`);
      const kept = fate === 'kept' ? state.save() : empty;
      const begun: Outage = { kept, down: server.down(), isDown: false, cancel: () => {} };
      outage = begun;
      // At once, so that nothing falls due in between.
      load(empty);
      if (downMs === 0) return end(begun);
      begun.cancel = clock.after(downMs, () => {
        end(begun).catch((error: unknown) => log(`${service} did not come up again: ${String(error)}`));
      });
      await begun.down;
      begun.isDown = true;
    },
    // It may also have found its port taken.
    up: () => (outage === undefined ? server.up() : end(outage)),
  };
  const detach = faults.attach(service, target);
  const prepare: State['prepare'] = (saved) => {
    const apply = state.prepare(saved);
    return () => {
      apply();
      if (outage === undefined) return;
      outage.kept = state.save();
      load(empty);
    };
  };
  return {
    save: () => outage?.kept ?? state.save(),
    prepare,
    load: (saved) => prepare(saved)(),
    detach() {
      closed = true;
      outage?.cancel();
      detach();
    },
  };
}
