/**
 * Waiting until nothing is under way in the stack: a clock that is moved does so between its steps.
 *
 * What counts are the requests that the stack itself has sent (pushes, tasks, sweeps). A pull client that holds a
 * message is not seen here: whether it still works on it is known to that client alone.
 */
import { setTimeout as wait } from 'node:timers/promises';

/** Turns of the event loop without anything under way: a request that was just answered may cause another. */
const QUIET_TURNS = 4;

/** Rejects after `limitMs` of real time, with the number of requests that are left. */
export async function quiet(underWay: () => number, limitMs = 60_000): Promise<void> {
  const end = performance.now() + limitMs;
  for (let turns = 0; turns < QUIET_TURNS; ) {
    const count = underWay();
    turns = count === 0 ? turns + 1 : 0;
    if (count > 0 && performance.now() > end) {
      throw new Error(`${count} requests are still under way after ${limitMs} ms`);
    }
    await (count === 0 ? new Promise((resolve) => setImmediate(resolve)) : wait(1));
  }
}
