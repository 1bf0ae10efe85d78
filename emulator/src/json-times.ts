/**
 * Times in proto3 JSON: a Timestamp as RFC 3339, a Duration as seconds with an `s`
 * (https://protobuf.dev/programming-guides/json). Reading returns undefined for what is neither.
 */
/** As @grpc/proto-loader gives them. */
export type Timestamp = Readonly<{ seconds: string; nanos: number }>;
export type Duration = Timestamp;

const RFC_3339 =
  /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;
const SECONDS = /^(-?)(\d{1,12})(?:\.(\d{1,9}))?s$/;

export function readTimestamp(text: string): Timestamp | undefined {
  const found = RFC_3339.exec(text);
  if (found === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = found.slice(1, 7).map(Number);
  const [, , , , , , , fraction = '', sign, hours, minutes] = found;
  // Date.UTC takes the years below 100 for those of the twentieth century.
  const at = new Date(0).setUTCFullYear(year, month - 1, day);
  // 30 February is a number of milliseconds too, though of another day.
  const isDay = month >= 1 && month <= 12 && new Date(at).getUTCDate() === day;
  if (!isDay || hour > 23 || minute > 59 || second > 59) return undefined;
  const offset = sign === undefined ? 0 : Number(`${sign}1`) * (Number(hours) * 3600 + Number(minutes) * 60);
  return {
    seconds: String(at / 1000 + (hour * 60 + minute) * 60 + second - offset),
    nanos: nanosOf(fraction),
  };
}

export function readDuration(text: string): Duration | undefined {
  const [, sign, seconds, fraction = ''] = SECONDS.exec(text) ?? [];
  if (seconds === undefined) return undefined;
  // Zero has no sign.
  return { seconds: `${sign}${seconds}`, nanos: Number(`${sign}${nanosOf(fraction)}`) || 0 };
}

export const writeTimestamp = ({ seconds, nanos }: Timestamp): string =>
  `${new Date(Number(seconds) * 1000).toISOString().slice(0, 19)}${fractionOf(nanos)}Z`;

/** Of zero or more: this server's durations are never negative. */
export const writeDuration = ({ seconds, nanos }: Duration): string => `${seconds}${fractionOf(nanos)}s`;

const nanosOf = (fraction: string): number => Number(fraction.padEnd(9, '0'));

/** With 0, 3, 6 or 9 digits, as the mapping has it. */
function fractionOf(nanos: number): string {
  return nanos === 0
    ? ''
    : `.${String(nanos)
        .padStart(9, '0')
        .replace(/(?:000)+$/, '')}`;
}
