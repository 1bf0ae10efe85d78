/**
 * How long a handler may take, checked before a receiver takes its first message.
 */
import { refused } from '../errors.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { type Handler, leastTimeOf } from '../handler.ts';

/**
 * In milliseconds. Throws ConfigError `INVALID_OPTION` where a part of the handler (`dedup`, `inbox`) would begin
 * nothing in that time.
 */
export function checkTimeout(handler: Handler, handlerTimeout: Duration): number {
  const milliseconds = toMilliseconds(handlerTimeout, 'handlerTimeout');
  const least = leastTimeOf(handler);
  if (least === undefined || milliseconds > least.milliseconds) return milliseconds;
  const accepted =
    `more than ${least.option} of a part of the handler (${least.milliseconds} ms), ` +
    'which begins nothing with less left, and would refuse every message; twice as long leaves time for the store';
  throw refused('handlerTimeout', handlerTimeout, accepted);
}
