/**
 * An AbortSignal with a deadline that can be moved, and that is never believed past it: `aborted`, `reason` and
 * `throwIfAborted()` compare the clock at each use.
 *
 * A timer alone is not enough. After a stall (a paused instance, a long synchronous loop) the callbacks of finished
 * I/O may run before the timer's, and the handler would go on under a lease that somebody else has by then.
 * Listeners, and signals derived with `AbortSignal.any`, learn it from the timer, or from the first look at
 * this signal, whichever comes first.
 */
import type { Clock } from '../clock.ts';

export type DeadlineSignal = Readonly<{
  signal: AbortSignal;
  /** Replaces the deadline (an instant of `clock.monotonic()`). Does nothing once the signal is aborted. */
  moveTo(deadline: number): void;
  abort(reason: unknown): void;
  /** Stops the timer and lets go of the parent. The signal keeps comparing the clock. */
  close(): void;
}>;

/** Also aborted when `parent` is, with its reason. `late` makes the reason for a deadline that has passed. */
export function deadlineSignal(
  clock: Clock,
  parent: AbortSignal,
  deadline: number,
  late: () => unknown,
): DeadlineSignal {
  const controller = new AbortController();
  const { signal } = controller;
  // Read through the prototype: the signal's own property below asks the clock first.
  const isAborted = (): boolean => Reflect.get(AbortSignal.prototype, 'aborted', signal);
  let current = deadline;
  let cancel = (): void => {};
  let closed = false;

  const abort = (reason: unknown): void => {
    if (isAborted()) return;
    close();
    controller.abort(reason);
  };
  const look = (): boolean => {
    if (isAborted()) return true;
    if (parent.aborted) abort(parent.reason);
    else if (clock.monotonic() >= current) abort(late());
    return isAborted();
  };
  const arm = (): void => {
    cancel();
    if (closed || !Number.isFinite(current)) return;
    cancel = clock.after(current - clock.monotonic(), () => {
      // A timer may fire a little early; then there is a little left to wait.
      if (!look()) arm();
    });
  };
  const follow = (): void => void look();
  const close = (): void => {
    closed = true;
    cancel();
    parent.removeEventListener('abort', follow);
  };

  Object.defineProperties(signal, {
    aborted: { get: look },
    reason: { get: () => (look() ? Reflect.get(AbortSignal.prototype, 'reason', signal) : undefined) },
    throwIfAborted: {
      value: () => {
        if (look()) throw signal.reason;
      },
    },
  });
  parent.addEventListener('abort', follow, { once: true });
  if (!look()) arm();

  return {
    signal,
    moveTo(next) {
      if (isAborted()) return;
      current = next;
      if (!look()) arm();
    },
    abort,
    close,
  };
}
