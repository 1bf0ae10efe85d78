/**
 * A process that can be paused, and can die at every await. Between it and its ports, its clock and its handler stands
 * `call`. What the process has sent by the time of its death is applied all the same; it gets no answer any more, and
 * none of its timers fires. While it is paused, replies wait; when it goes on, it gets the replies before its timers
 * fire, which is the harder order for code that judges by its clock.
 *
 * It knows no port: which requests there are, and what goes wrong with which, says the plan.
 */
import type { Clock } from 'pubsub-guarantees';
import { type Fault, send } from './faults.ts';
import { pausable } from './pausable.ts';

/** `before`: the request is not sent yet. `after`: it is applied, and its answer has not reached the process. */
export type When = 'before' | 'after';

export type Plan<Request extends string = string> = Readonly<{
  /** What goes wrong with a request on its way. Asked once for each request, inside the call. Default: nothing. */
  faultOf?(request: Request): Fault | undefined;
  /** Whether the process dies here: asked before each request, and after each that was applied and answered. */
  dies?(request: Request, when: When): boolean;
  /** Called once, at its death: to start another one, for example. */
  died?(): void;
  /** The error of a request that was refused, or of which the reply was lost. */
  lost(request: Request, how: string): Error;
}>;

export type Process<Request extends string = string> = Readonly<{
  /** Time as the process sees it: its timers wait while it is paused, and are forgotten when it dies. */
  clock: Clock;
  /** One request, which goes wrong as planned. Never settles when the process dies before the answer reaches it. */
  call<Value>(request: Request, apply: () => Promise<Value>): Promise<Value>;
  /** A place that is no request, for example inside a transaction or at a timer. Whether the process lives on. */
  pass(request: Request, when: When): boolean;
  /** Resolves while the process runs: when its pause is over, never once it is dead. */
  awake(): Promise<void>;
  alive(): boolean;
  /** Dies between two awaits. */
  crash(): void;
  /** Does nothing for so many milliseconds; another pause replaces this one. Does nothing to a dead process. */
  pause(milliseconds: number): void;
}>;

export function startProcess<Request extends string = string>(
  clock: Clock,
  plan: Plan<Request>,
): Process<Request> {
  /** What every await of the process also waits for. */
  let paused: Promise<void> | undefined;
  let isAlive = true;
  const own = pausable(clock);

  const crash = (): void => {
    if (!isAlive) return;
    isAlive = false;
    own.pause();
    paused = new Promise(() => {});
    plan.died?.();
  };
  const pass = (request: Request, when: When): boolean => {
    if (isAlive && plan.dies?.(request, when)) crash();
    return isAlive;
  };
  const awake = async (): Promise<void> => {
    while (paused !== undefined) await paused;
  };
  const fate = async <Value>(request: Request, apply: () => Promise<Value>): Promise<Value> => {
    const fault = plan.faultOf?.(request);
    if (fault?.kind !== 'crash') return send(clock, fault, apply, (how) => plan.lost(request, how));
    if (fault.when === 'after') await apply();
    crash();
    return new Promise(() => {});
  };

  return {
    clock: { now: own.now, monotonic: own.monotonic, after: own.after },
    async call(request, apply) {
      pass(request, 'before');
      if (paused !== undefined) await awake();
      try {
        const value = await fate(request, apply);
        pass(request, 'after');
        return value;
      } finally {
        // An error, too, reaches a running process alone.
        if (paused !== undefined) await awake();
      }
    },
    pass,
    awake,
    alive: () => isAlive,
    crash,
    pause(milliseconds) {
      if (!isAlive) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      paused = promise;
      own.pause();
      clock.after(milliseconds, () => {
        if (paused === promise) paused = undefined;
        resolve();
        // Answers that came meanwhile are delivered before timers that were due.
        clock.after(0, () => {
          if (paused === undefined) own.resume();
        });
      });
    },
  };
}
