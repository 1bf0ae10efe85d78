/**
 * The context of a delivery, a sweep or a wake-up, made of what its caller knows.
 */
import type { Clock } from './clock.ts';
import type { Context } from './handler.ts';
import { silent } from './log.ts';
import { clock as aClock, isObject, required, text } from './options.ts';

/** Of a context without a deadline. */
const TIME_MS = 60_000;

/**
 * A context for `consumer` on `clock`, for a sweep or a wake-up that a program runs by itself, and for tests of
 * handlers. Defaults: `source` is the consumer's name, `deadline` is in 60 s, `signal` is never aborted, `log` is
 * silent. Throws ConfigError for a clock or a consumer that is none.
 *
 * @example
 * await sweep(contextFor(systemClock(), { consumer: 'orders', log: consoleLog() }));
 */
export function contextFor(clock: Clock, parts: Readonly<{ consumer: string }> & Partial<Context>): Context {
  aClock('clock', clock);
  isObject('parts', parts);
  required(text)('consumer', parts.consumer);
  return {
    source: parts.consumer,
    now: () => clock.now(),
    deadline: clock.monotonic() + TIME_MS,
    signal: parts.signal ?? new AbortController().signal,
    log: silent,
    ...parts,
  };
}
