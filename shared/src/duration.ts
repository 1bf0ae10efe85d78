/**
 * A length of time with its unit, so that no option can be misread as seconds or milliseconds.
 */
import { refused } from './errors.ts';

export type Duration = `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`;

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const FORM = /^(0|[1-9][0-9]{0,11})(ms|s|m|h|d)$/;

/**
 * Whole, non-negative numbers of one unit only: `1500ms`, not `1.5s`. `name` is what an error calls it (default
 * `duration`). Throws ConfigError `INVALID_OPTION`.
 *
 * @example
 * toMilliseconds('15m'); // 900,000
 */
export function toMilliseconds(duration: string, name = 'duration'): number {
  // A list of one text would pass for that text.
  const match = typeof duration === 'string' ? FORM.exec(duration) : null;
  const milliseconds = match === null ? NaN : Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS];
  // Beyond 2^53 a number of milliseconds is no longer exact.
  if (!Number.isSafeInteger(milliseconds)) {
    throw refused(name, duration, 'a whole number and a unit of ms, s, m, h or d, for example "30s"');
  }
  return milliseconds;
}
