/**
 * Waiting until nothing is in flight in the stack: a clock that is moved does so between its steps.
 *
 * What counts are the requests that the stack itself has sent (pushes, tasks, sweeps). A pull client that holds a
 * message is not seen here: whether it still works on it is known to that client alone.
 */
import { setTimeout as wait } from 'node:timers/promises';

/** Turns of the event loop without anything in flight: a request that was just answered may cause another. */
const QUIET_TURNS = 4;

/**
 * How many turns are made at once while something is in flight: an answer from this process or from a neighbour mostly
 * comes within them, where a timer would let it lie for one to two milliseconds, longer than the request took. Beyond
 * them the target is slow, and has the processor to itself between two looks. Counted in turns, not in time, so that a
 * busy machine does not use them up.
 */
const EAGER_TURNS = 100;

/** Of the limit: so many times it may last in all, for what is answered and causes more without an end. */
const MOST_LIMITS = 10;
/** A look that comes later than this shows that this process got no time: what it waits for is not silent for that. */
const LONGEST_LOOK_MS = 100;

/**
 * Rejects with the number of requests that are left when for `limitMs` of real time none was sent or answered, or after
 * ten times that. `now`: milliseconds of real time, monotonic.
 */
export async function quiet(
  inFlight: () => number,
  limitMs = 60_000,
  now: () => number = () => performance.now(),
): Promise<void> {
  let quietFor = 0;
  let busyFor = 0;
  let [before, last, silentMs, totalMs] = [0, now(), 0, 0];
  while (quietFor < QUIET_TURNS) {
    const count = inFlight();
    quietFor = count === 0 ? quietFor + 1 : 0;
    busyFor = count === 0 ? 0 : busyFor + 1;
    await (busyFor < EAGER_TURNS ? new Promise((resolve) => setImmediate(resolve)) : wait(1));
    const at = now();
    const passedMs = Math.min(at - last, LONGEST_LOOK_MS);
    totalMs += passedMs;
    silentMs = count === before ? silentMs + passedMs : 0;
    [before, last] = [count, at];
    if (count === 0) continue;
    if (silentMs > limitMs || totalMs > MOST_LIMITS * limitMs)
      throw new Error(`${count} requests are still in flight after ${Math.round(totalMs)} ms`);
  }
}
