/**
 * RFC 3339 times, strictly: a zone is required, the date must exist, and what is finer than a millisecond is
 * rounded up, so that nothing counted from it is early.
 */

const FORM =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;

/** Milliseconds since the epoch, or undefined for anything that is not RFC 3339 with `Z` or an offset. */
export function parseTimestamp(text: string): number | undefined {
  const match = FORM.exec(text);
  if (match === null) return undefined;
  const part = (index: number): number => Number(match[index] ?? 0);
  const [year, month, day, hour, minute, second] = [part(1), part(2), part(3), part(4), part(5), part(6)];
  const [offsetHour, offsetMinute] = [part(9), part(10)];
  // 60 is legal for a leap second (RFC 3339 section 5.6); it counts as the start of the next minute.
  if (hour > 23 || minute > 59 || second > 60 || offsetHour > 23 || offsetMinute > 59) return undefined;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  const fraction = Math.ceil(Number((match[7] ?? '').padEnd(9, '0')) / 1_000_000);
  const offsetMinutes = (offsetHour * 60 + offsetMinute) * (match[8] === '-' ? -1 : 1);
  return date.getTime() + ((hour * 60 + minute - offsetMinutes) * 60 + second) * 1_000 + fraction;
}
