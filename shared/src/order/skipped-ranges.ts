/**
 * The numbers of a stream that were skipped, as ranges with both ends included. Pure, and of bounded size: a stream is
 * one document.
 */

export type Range = Readonly<{ from: number; to: number }>;

/** 100 ranges are about 5 KB of the stream's document, which is read with every message. */
export const MAX_RANGES = 100;

/**
 * `range` begins after all others. Neighbours become one. Beyond the limit the two oldest become one together with
 * what lies between them: a late copy of a number that ran there is then a dead letter instead of a stale ack, which
 * loses nothing. The other way round, a message that never ran would be acknowledged.
 */
export function addRange(ranges: readonly Range[], range: Range): readonly Range[] {
  const before = ranges.at(-1);
  const joined =
    before !== undefined && before.to + 1 === range.from
      ? [...ranges.slice(0, -1), { from: before.from, to: range.to }]
      : [...ranges, range];
  const [first, second, ...rest] = joined;
  if (joined.length <= MAX_RANGES || first === undefined || second === undefined) return joined;
  return [{ from: first.from, to: second.to }, ...rest];
}
