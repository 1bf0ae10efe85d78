/**
 * Time as Firestore gives it: microseconds since the epoch, as a number (exact until the year 2255).
 * A database's commit times never repeat and never go back, whatever the clock below does.
 */
import type { Clock } from '../clock.ts';
import { invalidArgument } from '../grpc-server.ts';

export type WireTimestamp = Readonly<{ seconds: string; nanos: number }>;
export type Microseconds = number;

/** 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z, the bounds of google.protobuf.Timestamp. */
const EARLIEST_SECONDS = -62_135_596_800;
const LATEST_SECONDS = 253_402_300_799;

export function toWire(time: Microseconds): WireTimestamp {
  const seconds = Math.floor(time / 1_000_000);
  return { seconds: String(seconds), nanos: (time - seconds * 1_000_000) * 1_000 };
}

/** Throws INVALID_ARGUMENT for a time that is out of range or finer than a microsecond. */
export function fromWire(wire: WireTimestamp, where: string): Microseconds {
  const { seconds, nanos } = truncateToMicroseconds(wire, where);
  if (nanos !== wire.nanos) throw invalidArgument(`${where}: ${wire.nanos} ns is finer than a microsecond`);
  return Number(seconds) * 1_000_000 + nanos / 1_000;
}

export function truncateToMicroseconds(wire: WireTimestamp, where: string): WireTimestamp {
  const seconds = Number(wire.seconds);
  if (seconds < EARLIEST_SECONDS || seconds > LATEST_SECONDS) {
    throw invalidArgument(`${where}: ${wire.seconds} s is not within the years 1 to 9999`);
  }
  if (wire.nanos < 0 || wire.nanos > 999_999_999) {
    throw invalidArgument(`${where}: ${wire.nanos} ns is not within 0 to 999999999`);
  }
  return { seconds: wire.seconds, nanos: wire.nanos - (wire.nanos % 1_000) };
}

export type DatabaseTime = Readonly<{
  /** A time for a read of what is committed now: no later commit gets this time or an earlier one. */
  read(): Microseconds;
  /** A time for a commit: later than every time given out before. */
  commit(): Microseconds;
  /** The latest that was given out. */
  latest(): Microseconds;
}>;

/** Commits get times later than `after`. */
export function databaseTime(clock: Clock, after: Microseconds): DatabaseTime {
  let last = after;
  const now = (): Microseconds => Math.floor(clock.now() * 1_000);
  return {
    read() {
      last = Math.max(now(), last);
      return last;
    },
    commit() {
      last = Math.max(now(), last + 1);
      return last;
    },
    latest: () => last,
  };
}
