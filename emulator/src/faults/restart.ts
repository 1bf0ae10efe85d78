/**
 * A restart of one service: its connections are destroyed, its port is closed for a while of the clock, and it comes back
 * with the state that it had at that moment, or with none. What was under way ends as with the death of a process: pushes
 * and dispatches are not heard of again, and count as never answered.
 *
 * While it is down it does nothing by itself. What is saved then is what it will come back with; what is loaded takes
 * the place of that.
 */
import type { Cancel, Clock } from '../clock.ts';
import type { GrpcServer } from '../grpc-server.ts';
import { PlanError } from './checked.ts';
import type { FaultTarget, Faults } from './faults.ts';
import type { RestartSpec, Service } from './plan.ts';

/** The state of a server. */
export type State = Readonly<{ save(): object; load(saved: unknown): void }>;

/** The state as others see it; `detach` takes the server out of reach of faults: one that is down stays down. */
export type Restartable = State & Readonly<{ detach(): void }>;

/** Lets faults restart the server, which holds nothing yet. */
export function restartable(
  faults: Faults | undefined,
  service: Service,
  clock: Clock,
  server: Pick<GrpcServer, 'down' | 'up' | 'isDown'>,
  state: State,
  log: (line: string) => void,
): Restartable {
  if (faults === undefined) return { ...state, detach: () => {} };
  const empty = state.save();
  /** While it is down: what it comes back with. */
  let kept: object | undefined;
  let cancel: Cancel = () => {};
  let closed = false;

  async function up(): Promise<void> {
    if (closed) return;
    state.load(kept);
    kept = undefined;
    await server.up();
  }

  const target: FaultTarget = {
    clock,
    async restart({ state: fate, downMs }: RestartSpec) {
      if (kept !== undefined) throw new PlanError(`service is "${service}", which is down`);
      kept = fate === 'kept' ? state.save() : empty;
      const down = server.down();
      // At once, so that nothing falls due in between.
      state.load(empty);
      await down;
      if (downMs === 0) return up();
      cancel = clock.after(downMs, () => {
        up().catch((error: unknown) => log(`${service} did not come up again: ${String(error)}`));
      });
    },
  };
  const detach = faults.attach(service, target);
  return {
    save: () => kept ?? state.save(),
    load(saved) {
      state.load(saved);
      if (kept === undefined) return;
      kept = state.save();
      state.load(empty);
    },
    detach() {
      closed = true;
      cancel();
      detach();
    },
  };
}
