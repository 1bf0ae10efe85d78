/**
 * A length of time with its unit, so that no option can be misread as seconds or milliseconds.
 */
import { ConfigError } from './errors.ts';
import { shownValue } from './shown-value.ts';

export type Duration = `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`;

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const FORM = /^(0|[1-9][0-9]{0,11})(ms|s|m|h|d)$/;

/** Whole, non-negative numbers of one unit only: `1500ms`, not `1.5s`. Throws ConfigError naming `name`. */
export function toMilliseconds(duration: string, name = 'duration'): number {
  // A list of one text would pass for that text.
  const match = typeof duration === 'string' ? FORM.exec(duration) : null;
  const milliseconds = match === null ? NaN : Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS];
  // Beyond 2^53 a number of milliseconds is no longer exact.
  if (!Number.isSafeInteger(milliseconds)) {
    throw new ConfigError(
      'INVALID_DURATION',
      `${name} is ${shownValue(duration)}; accepted: a whole number and a unit of ms, s, m, h or d, for example "30s"`,
    );
  }
  return milliseconds;
}
