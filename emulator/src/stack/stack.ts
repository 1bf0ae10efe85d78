/**
 * The local stack: Pub/Sub, Firestore and Cloud Tasks on 127.0.0.1 in this process, on one clock that can be moved,
 * with faults on request and a small HTTP API beside them. It needs nothing but this package.
 *
 * Starting it ends with everything ready or with nothing left running.
 */
import type { SavedStack } from './saved-stack.ts';
import { openStack } from './open.ts';
import type { Service } from './services.ts';
import type { StackClock } from './stack-clock.ts';
import type { StackFaults } from './stack-faults.ts';
import type { StackOptions } from './stack-options.ts';

/** `host:port` for the services, as the emulator variables want it, and a URL for the control API. */
export type StackAddresses<S extends Service = Service> = Readonly<Record<S, string>> &
  Readonly<{ control: string; project: string }>;

export type StackState = Readonly<{
  addresses: object;
  clock: Readonly<{ nowMs: number; now: string; frozen: boolean; nextDueMs?: number }>;
  /** Calls answered UNIMPLEMENTED since the start, by full method name, or method and path for REST: what a program missed. */
  unimplemented: Readonly<Partial<Record<Service, Readonly<Record<string, number>>>>>;
  /** How many faults were injected; `faults.log()` says which. */
  faults: number;
}> &
  /** What each service holds, in numbers; `{ external: true }` for one that is not this package's. */
  Readonly<Partial<Record<Service, object>>>;

export type Stack<S extends Service = Service> = Readonly<{
  addresses: StackAddresses<S>;
  clock: StackClock;
  faults: StackFaults;
  /** What `GET /state` answers. */
  state(): StackState;
  /**
   * All that the services hold, and the time, as plain JSON data. Faults and connections are no part of it. Throws
   * UnsupportedError when a service is not this package's.
   */
  save(): SavedStack;
  /**
   * Replaces all of it. The clock goes to the saved time if that is later than now, without firing what falls due on
   * the way; a service that is not in `saved` is empty then. Calls, pushes and dispatches in flight end as they would
   * at a restart. Rejects with an error of one line that names the place, and then nothing has changed.
   */
  load(saved: unknown): Promise<void>;
  /**
   * Everything as it was when the stack was ready: what was seeded or loaded at the start is in place, all else is
   * gone, no faults are set, no service is down, and the clock runs in real time from where it stands, for it never goes
   * back.
   */
  reset(): Promise<void>;
  /** Ends everything that was started. May be called at any time and more than once. */
  close(): Promise<void>;
}>;

/**
 * Rejects with an error of one line for an option that cannot be, a port that is taken, and a seed or a saved state
 * that is refused.
 */
export async function startStack<S extends Service = Service>(
  options: StackOptions<S> = {},
): Promise<Stack<S>> {
  return (await openStack(options)) as Stack<S>;
}
