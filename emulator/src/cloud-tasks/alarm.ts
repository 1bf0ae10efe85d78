/** One timer that can be set again: a queue needs a single one, whatever waits in it. */
import type { Cancel, Clock } from '../clock.ts';

export type Alarm = Readonly<{
  /** Milliseconds since the epoch; undefined when it is not set. */
  readonly atMs: number | undefined;
  /** Takes the place of the time set before. */
  set(atMs: number | undefined): void;
}>;

export function createAlarm(clock: Clock, goOff: () => void): Alarm {
  let timer: Readonly<{ atMs: number; cancel: Cancel }> | undefined;
  return {
    get atMs() {
      return timer?.atMs;
    },
    set(atMs) {
      if (timer?.atMs === atMs) return;
      timer?.cancel();
      timer = undefined;
      if (atMs === undefined) return;
      const fire = (): void => {
        timer = undefined;
        goOff();
      };
      timer = { atMs, cancel: clock.after(atMs - clock.now(), fire) };
    },
  };
}
