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

/** Rejects after `limitMs` of real time, with the number of requests that are left. */
export async function quiet(inFlight: () => number, limitMs = 60_000): Promise<void> {
  const end = performance.now() + limitMs;
  let quietFor = 0;
  let busyFor = 0;
  while (quietFor < QUIET_TURNS) {
    const count = inFlight();
    quietFor = count === 0 ? quietFor + 1 : 0;
    busyFor = count === 0 ? 0 : busyFor + 1;
    await (busyFor < EAGER_TURNS ? new Promise((resolve) => setImmediate(resolve)) : wait(1));
    if (count > 0 && performance.now() > end) {
      throw new Error(`${count} requests are still in flight after ${limitMs} ms`);
    }
  }
}
