/**
 * A process of the model: paused with replies on their way, or dead at any request. What it has sent by then is applied
 * all the same; it is never heard of again.
 */
import type { Clock } from '../../../shared/src/clock.ts';
import type { VirtualClock } from '../../../shared/src/testing/index.ts';
import type { Site } from './schedule.ts';

export type Mortal = Readonly<{
  clock: Clock;
  guarded<Value>(request: string, send: () => Promise<Value>): Promise<Value>;
  pause(milliseconds: number): void;
}>;

/** `dies` is asked at each site; who says so is replaced. */
export function mortal(clock: VirtualClock, dies: (site: Site) => boolean): Mortal {
  const never = new Promise<never>(() => {});
  let resumed: Promise<void> = Promise.resolve();
  let isPaused = false;
  const late = new Set<() => void>();

  const pass = async (site: Site): Promise<void> => {
    if (resumed !== never && dies(site)) {
      isPaused = true;
      resumed = never;
    }
    for (let waited: unknown; waited !== resumed; await resumed) waited = resumed;
  };

  return {
    clock: {
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
    },
    async guarded(request, send) {
      await pass(`before ${request}` as Site);
      const value = await send();
      await pass(`after ${request}` as Site);
      return value;
    },
    pause(milliseconds) {
      if (resumed === never) return;
      isPaused = true;
      const { promise, resolve } = Promise.withResolvers<void>();
      resumed = promise;
      clock.after(milliseconds, () => {
        resolve();
        // Replies before timers: what the rules about the clock are for.
        clock.after(0, () => {
          if (resumed !== promise) return;
          isPaused = false;
          for (const fire of late) if (late.delete(fire)) fire();
        });
      });
    },
  };
}
