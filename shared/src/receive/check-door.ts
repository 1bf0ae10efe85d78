/**
 * What every door checks before it takes a message. JavaScript has no types, and a name that is none would fail each
 * message by itself, or, worse, let two sources share their records.
 */
import { ConfigError } from '../errors.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { type Handler, leastTimeOf } from '../handler.ts';
import { shownValue } from '../shown-value.ts';

/** Throws ConfigError `INVALID_HANDLER`, `INVALID_CONSUMER` or `INVALID_SOURCE`. */
export function checkDoor(
  handler: Handler,
  { consumer, source }: Readonly<{ consumer: string; source?: string }>,
): void {
  if (typeof handler !== 'function') {
    throw new ConfigError('INVALID_HANDLER', `handler is ${shownValue(handler)}; accepted: a function`);
  }
  if (!isName(consumer))
    throw new ConfigError('INVALID_CONSUMER', `consumer is ${shownValue(consumer)}; ${ACCEPTED}`);
  if (source !== undefined && !isName(source)) {
    throw new ConfigError(
      'INVALID_SOURCE',
      `source is ${shownValue(source)}; ${ACCEPTED}, or none for the subscription`,
    );
  }
}

/**
 * How long a handler may take, in milliseconds. Throws ConfigError `INVALID_TIMEOUT` for no time at all, and
 * `LIMITS_DO_NOT_FIT` where a part of the handler (`dedup`, `inbox`) would begin nothing in it.
 */
export function checkTimeout(handler: Handler, timeout: Duration): number {
  const milliseconds = toMilliseconds(timeout, 'timeout');
  if (milliseconds === 0) {
    throw new ConfigError('INVALID_TIMEOUT', `timeout is "${timeout}"; accepted: more than zero`);
  }
  const least = leastTimeOf(handler);
  if (least === undefined || milliseconds > least.milliseconds) return milliseconds;
  const text =
    `timeout is "${timeout}"; accepted: more than ${least.option} of a part of the handler (${least.milliseconds} ms), ` +
    'which begins nothing with less left, and would refuse every message; twice as long leaves time for the store';
  throw new ConfigError('LIMITS_DO_NOT_FIT', text);
}

const ACCEPTED = 'accepted: a name';

/** Half a surrogate pair has no bytes of its own: names that differ in it alone would be one. */
const isName = (value: unknown): boolean => typeof value === 'string' && value !== '' && value.isWellFormed();
