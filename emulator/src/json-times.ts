/**
 * Times in proto3 JSON: a Timestamp as RFC 3339, a Duration as seconds with an `s`
 * (https://protobuf.dev/programming-guides/json). Reading returns undefined for what is neither.
 */
/** As @grpc/proto-loader gives them. */
export type Timestamp = Readonly<{ seconds: string; nanos: number }>;
export type Duration = Timestamp;

const RFC_3339 = /^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;
const SECONDS = /^(-?)(\d{1,12})(?:\.(\d{1,9}))?s$/;

export function readTimestamp(text: string): Timestamp | undefined {
  const [, date = '', time = '', fraction = '', sign, hours, minutes] = RFC_3339.exec(text) ?? [];
  const at = new Date(`${date}T${time}Z`);
  // 30 February is a number of milliseconds too, though of another day.
  if (Number.isNaN(at.getTime()) || at.toISOString().slice(0, 19) !== `${date}T${time}`) return undefined;
  const offset = sign === undefined ? 0 : Number(`${sign}1`) * (Number(hours) * 3600 + Number(minutes) * 60);
  return { seconds: String(at.getTime() / 1000 - offset), nanos: nanosOf(fraction) };
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
