/**
 * The clock of a process that can be paused: time goes on, but its timers do not fire before `resume`, when other
 * waiting work may already have run. A process whose clock is never resumed has died.
 */
import type { Clock } from 'pubsub-guarantees';

export type PausableClock = Clock & Readonly<{ pause(): void; resume(): void }>;

export function pausable(clock: Clock): PausableClock {
  let isPaused = false;
  const late = new Set<() => void>();
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after(milliseconds, callback) {
      const fire = (): void => {
        if (isPaused) late.add(fire);
        else callback();
      };
      const cancel = clock.after(milliseconds, fire);
      return () => {
        cancel();
        late.delete(fire);
      };
    },
    pause: () => {
      isPaused = true;
    },
    resume: () => {
      isPaused = false;
      for (const fire of late) if (late.delete(fire)) fire();
    },
  };
}
