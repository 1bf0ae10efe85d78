/**
 * When a cron expression fires, in a time zone: due times, from any moment forwards and backwards, by the package `croner`.
 *
 * Where clocks are put forward or back, it depends on the expression. One whose seconds, minutes and hours are numbers,
 * lists and ranges names times of day: a time that the day does not have is the first moment after the gap, and a time that
 * the day has twice is the first one. One with `*` or a step there is an interval: it goes on by elapsed time, so it has no
 * due time in the gap and those of both repeated hours.
 */
import { Cron } from 'croner';
import { refused } from '../errors.ts';

/** Milliseconds since the epoch, whole seconds. */
export type DueTimes = Readonly<{
  /** The first one after this moment; undefined: none any more. */
  after(ms: number): number | undefined;
  /** The last one before this moment; undefined: there was none. */
  before(ms: number): number | undefined;
}>;

const EXPRESSION = 'a cron expression of five fields, or of six with seconds first, for example "30 2 * * *"';
/** An expression has no years: what fires at all has fired and will fire again. */
const ANY_TIME = new Date('2024-01-01T00:00:00Z');

/** Throws ConfigError naming `path.cron` or `path.timeZone`; an expression that never fires is refused, too. */
export function cronTimes(path: string, cron: string, timeZone: string): DueTimes {
  try {
    new Intl.DateTimeFormat('en', { timeZone });
  } catch {
    throw refused(`${path}.timeZone`, timeZone, 'a time zone of IANA, for example "Europe/Warsaw"');
  }
  const found = parsed(cron, timeZone);
  // Without a pattern it was read as one date.
  if (found?.getPattern() === undefined) throw refused(`${path}.cron`, cron, EXPRESSION);
  if (found.nextRun(ANY_TIME) === null) throw refused(`${path}.cron`, cron, 'an expression that ever fires');
  return {
    after: (ms) => found.nextRun(new Date(ms))?.getTime(),
    before: (ms) => found.previousRuns(1, new Date(ms))[0]?.getTime(),
  };
}

function parsed(cron: string, timezone: string): Cron | undefined {
  try {
    return new Cron(cron, { timezone, mode: '5-or-6-parts', fixedTimeRule: 'no-wildcard' });
  } catch {
    return undefined;
  }
}
