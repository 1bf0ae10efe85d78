/**
 * An AbortSignal with a deadline that can be moved, and that is never believed past it: `aborted`, `reason` and
 * `throwIfAborted()` compare the clock at each use.
 *
 * A timer alone is not enough. After a stall (a paused instance, a long synchronous loop) the callbacks of finished
 * I/O may run before the timer's, and the handler would go on under a lease that another delivery has by then.
 * Listeners, and signals derived with `AbortSignal.any`, learn it from the timer, or from the first look at
 * this signal, whichever comes first.
 *
 * The AbortSignal is made when it is first asked for, and only then is there a timer and a listener on the parent: most
 * handlers never ask, and it is the dearest part of a delivery.
 */
import type { Clock } from '../clock.ts';

export type DeadlineSignal = Readonly<{
  signal: AbortSignal;
  /** What `signal.aborted` says, without making the signal. */
  isAborted(): boolean;
  /** Replaces the deadline (a time of `clock.monotonic()`). Does nothing once the signal is aborted. */
  moveTo(deadline: number): void;
  abort(reason: unknown): void;
  /** Stops the timer and the listener on the parent. The signal keeps comparing the clock. */
  close(): void;
}>;

/**
 * Also aborted when `parent` is, with its reason. `late` makes the reason for a deadline that has passed, or for `isOver`,
 * which is asked at each look: what is over before its deadline, because the machine was suspended.
 */
export function deadlineSignal(
  clock: Clock,
  parent: AbortSignal,
  deadline: number,
  late: () => unknown,
  isOver: () => boolean = () => false,
): DeadlineSignal {
  let made: AbortController | undefined;
  let over = false;
  let why: unknown;
  let current = deadline;
  let cancel = (): void => {};
  let closed = false;

  const abort = (reason: unknown): void => {
    if (over) return;
    over = true;
    why = reason;
    close();
    made?.abort(reason);
  };
  const look = (): boolean => {
    if (over) return true;
    if (parent.aborted) abort(parent.reason);
    else if (clock.monotonic() >= current || isOver()) abort(late());
    return over;
  };
  const arm = (): void => {
    cancel();
    if (made === undefined || closed || !Number.isFinite(current)) return;
    cancel = clock.after(current - clock.monotonic(), () => {
      // A timer may fire a little early; then there is a little left to wait.
      if (!look()) arm();
    });
  };
  const follow = (): void => void look();
  const close = (): void => {
    closed = true;
    cancel();
    if (made !== undefined) parent.removeEventListener('abort', follow);
  };
  const make = (): AbortController => {
    const controller = new AbortController();
    const { signal } = controller;
    Object.defineProperties(signal, {
      aborted: { get: look },
      // Read through the prototype, where `abort` has put it.
      reason: { get: () => (look() ? Reflect.get(AbortSignal.prototype, 'reason', signal) : undefined) },
      throwIfAborted: {
        value: () => {
          if (look()) throw signal.reason;
        },
      },
    });
    made = controller;
    if (over) controller.abort(why);
    else if (!closed) parent.addEventListener('abort', follow, { once: true });
    if (!look()) arm();
    return controller;
  };

  return {
    get signal() {
      return (made ?? make()).signal;
    },
    isAborted: look,
    moveTo(next) {
      // Without a signal there was no timer to end it at its time: it ends here.
      if (made === undefined ? look() : over) return;
      current = next;
      if (!look()) arm();
    },
    abort,
    close,
  };
}
