/**
 * Waiting in tests for what other processes, sockets and real timers bring about. Counted in looks and not by a clock, so
 * that a machine that is suspended or busy uses none of them up: two minutes where nothing else runs, longer elsewhere.
 */
import { setTimeout as pause } from 'node:timers/promises';

const LOOK_EVERY_MS = 5;
const LOOKS = 24_000;

/**
 * Looks until it finds something that counts as true, and resolves with it. Rejects after two minutes of looks with
 * `what`, by default the text of `look`. What `look` itself throws or rejects with is passed on at once.
 *
 * @example
 * ```ts
 * await until(() => server.stats().backlog === 0, 'nothing is left to deliver');
 * const [first] = await until(() => received.length > 0 && received);
 * ```
 */
export async function until<Found>(
  look: () => Found | Promise<Found>,
  what: string | (() => string) = () => String(look),
): Promise<Exclude<Found, false | undefined | null | 0 | ''>> {
  for (let looks = 0; looks < LOOKS; looks += 1) {
    const found = await look();
    if (found) return found as Exclude<Found, false | undefined | null | 0 | ''>;
    await pause(LOOK_EVERY_MS);
  }
  throw new Error(`not within two minutes: ${typeof what === 'string' ? what : what()}`);
}
