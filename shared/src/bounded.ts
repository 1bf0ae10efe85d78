/**
 * A bound for calls that may hang: clients wait for minutes when their server is down; a delivery cannot.
 *
 * The call that is given up goes on, and may still succeed later: whoever uses this must be safe against that.
 */
import type { Clock } from './clock.ts';

/** Settles as `call` does, or rejects with what `late` makes after `milliseconds`. */
export function bounded<Value>(
  clock: Clock,
  milliseconds: number,
  call: () => Promise<Value>,
  late: () => Error,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(milliseconds, () => reject(late()));
    const run = async (): Promise<void> => {
      try {
        resolve(await call());
      } catch (error) {
        reject(error);
      } finally {
        cancel();
      }
    };
    void run();
  });
}
