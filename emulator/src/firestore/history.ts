/**
 * What was replaced within the past hour, for reads at a time
 * (https://docs.cloud.google.com/ruby/docs/reference/google-cloud-firestore-admin-v1/latest/Google-Cloud-Firestore-Admin-V1-Database-PointInTimeRecoveryEnablement).
 * What it keeps is bounded: where more was replaced than it holds, reads further back are refused, never answered wrong.
 */
import { status } from '@grpc/grpc-js';
import { invalidArgument, StatusError, unimplemented } from '../grpc-server.ts';
import type { Change, Doc } from './doc.ts';
import { documentSize } from './size.ts';
import type { Microseconds } from './time.ts';

export type History = Readonly<{
  /** Notes the changes of one commit. Times grow. */
  record(changes: readonly Change[], time: Microseconds): void;
  /**
   * The first change of each document after the time, which undone give what was there. Throws INVALID_ARGUMENT for the
   * future, FAILED_PRECONDITION for more than an hour ago, UNIMPLEMENTED for what is not kept.
   */
  since(time: Microseconds, now: Microseconds): ReadonlyMap<string, Change>;
  /** There is no reading before this time. */
  forget(time: Microseconds): void;
}>;

const KEPT_MICROSECONDS = 3_600_000_000;
/** This server's own: of the documents that were replaced, by the service's reckoning of their size. */
const MAX_BYTES = 32 * 1024 * 1024;
const MAX_CHANGES = 10_000;

type Version = Readonly<{ change: Change; time: Microseconds; bytes: number }>;

const bytesOf = (doc: Doc | undefined): number =>
  doc === undefined ? 0 : documentSize(doc.name, doc.fields);

export function history(): History {
  /** Oldest first; those before `first` are dropped. */
  let versions: Version[] = [];
  let first = 0;
  let bytes = 0;
  /** All changes later than this are kept. */
  let known: Microseconds = 0;

  function drop(version: Version): void {
    first += 1;
    bytes -= version.bytes;
    known = version.time;
    if (first * 2 < versions.length) return;
    versions = versions.slice(first);
    first = 0;
  }

  function prune(now: Microseconds): void {
    for (let oldest = versions[first]; oldest !== undefined; oldest = versions[first]) {
      const isTooMuch = bytes > MAX_BYTES || versions.length - first > MAX_CHANGES;
      if (oldest.time >= now - KEPT_MICROSECONDS && !isTooMuch) return;
      drop(oldest);
    }
  }

  return {
    record(changes, time) {
      for (const change of changes) {
        const version = { change, time, bytes: bytesOf(change.before) };
        versions.push(version);
        bytes += version.bytes;
      }
      prune(time);
    },
    since(time, now) {
      if (time > now) throw invalidArgument('read_time is in the future');
      if (time < now - KEPT_MICROSECONDS) {
        throw new StatusError(status.FAILED_PRECONDITION, 'The requested snapshot version is too old.');
      }
      if (time < known) {
        throw unimplemented('this server keeps no history as far back as the read_time');
      }
      const changes = new Map<string, Change>();
      for (let i = versions.length - 1; i >= first; i--) {
        const version = versions[i];
        if (version === undefined || version.time <= time) break;
        // The earlier one of a document takes the place of the later.
        changes.set(version.change.name.full, version.change);
      }
      return changes;
    },
    forget(time) {
      versions = [];
      first = 0;
      bytes = 0;
      known = Math.max(known, time);
    },
  };
}
