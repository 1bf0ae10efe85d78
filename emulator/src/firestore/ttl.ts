/**
 * Time to live: documents whose time has passed are deleted by sweeps at the full hours of the clock, only while there
 * is something to expire. A deletion is a commit like any other: it waits for the locks of transactions, listeners
 * hear of it, and a document that was written since is left alone. One that could not be deleted is tried again an
 * hour later.
 */
import { status } from '@grpc/grpc-js';
import type { Cancel, Clock } from '../clock.ts';
import { StatusError } from '../grpc-server.ts';
import { type Database, database } from './database.ts';
import type { DatabaseOptions } from './database-options.ts';
import type { Change, Doc } from './doc.ts';
import { type FieldPath, getField, parseFieldPath } from './field-path.ts';
import { checkCollectionId } from './names.ts';
import { toWire } from './time.ts';

export type TtlPolicy = Readonly<{ collectionGroup: string; field: string }>;

type Policies = ReadonlyMap<string, FieldPath>;

/** The service promises less: "typically within 24 hours" (https://firebase.google.com/docs/firestore/ttl). */
const SWEEP_MS = 3_600_000;

/** Throws for a name or a field path that is not legal, and for a second field of a collection group. */
export function parsePolicies(policies: readonly TtlPolicy[]): Policies {
  const parsed = new Map<string, FieldPath>();
  for (const { collectionGroup, field } of policies) {
    if (parsed.has(collectionGroup)) {
      throw new Error(`ttl: the collection group "${collectionGroup}" has more than one field`);
    }
    checkCollectionId(collectionGroup);
    parsed.set(collectionGroup, parseFieldPath(field));
  }
  return parsed;
}

/**
 * A database with these policies. `log` gets a line for deletions that failed for no known reason.
 */
export function expiringDatabase(
  name: string,
  clock: Clock,
  policies: Policies,
  log: (line: string) => void,
  options: Omit<DatabaseOptions, 'onCommit'> = {},
): Database {
  if (policies.size === 0) return database(name, clock, options);
  const expiring = new Map<string, Readonly<{ doc: Doc; atMs: number }>>();
  let sweep: Readonly<{ atMs: number; cancel: Cancel }> | undefined;

  const noteAll = (changes: readonly Change[]): void => {
    for (const change of changes) note(change);
    if (expiring.size === 0) disarm();
  };
  const store = database(name, clock, { ...options, onCommit: noteAll });

  function note({ name: { full }, after }: Change): void {
    const atMs = after && expiryOf(after, policies);
    if (after === undefined || atMs === undefined) {
      expiring.delete(full);
      return;
    }
    expiring.set(full, { doc: after, atMs });
    arm(atMs);
  }

  /** One timer, at the first full hour at which something is due; what has passed already is due at the next one. */
  function arm(dueMs: number): void {
    const atMs = Math.max(Math.ceil(dueMs / SWEEP_MS), Math.floor(clock.now() / SWEEP_MS) + 1) * SWEEP_MS;
    if (sweep !== undefined && sweep.atMs <= atMs) return;
    disarm();
    sweep = { atMs, cancel: clock.after(atMs - clock.now(), run) };
  }

  function disarm(): void {
    sweep?.cancel();
    sweep = undefined;
  }

  function run(): void {
    sweep = undefined;
    for (const { doc, atMs } of expiring.values()) if (atMs <= clock.now()) void remove(doc);
    for (const { atMs } of expiring.values()) arm(atMs);
  }

  function forget(): void {
    expiring.clear();
    disarm();
  }

  async function remove({ name: { full }, updateTime }: Doc): Promise<void> {
    const unchanged = { conditionType: 'updateTime', updateTime: toWire(updateTime) };
    const deletion = {
      operation: 'delete',
      delete: full,
      updateMask: null,
      updateTransforms: [],
      currentDocument: unchanged,
    };
    try {
      await store.commit([deletion], undefined);
    } catch (error) {
      if (error instanceof StatusError && EXPECTED.has(error.code)) return;
      log(`firestore: the expired document ${full} could not be deleted: ${String(error)}`);
    }
  }

  return {
    ...store,
    clear() {
      store.clear();
      forget();
    },
    end(error) {
      store.end(error);
      forget();
    },
  };
}

/** It was written or deleted meanwhile, or a transaction held it for too long. */
const EXPECTED: ReadonlySet<number> = new Set([status.FAILED_PRECONDITION, status.NOT_FOUND, status.ABORTED]);

function expiryOf(doc: Doc, policies: Policies): number | undefined {
  const field = policies.get(doc.name.segments.at(-2) ?? '');
  const value = field && getField(doc.fields, field);
  if (value?.valueType !== 'timestampValue') return undefined;
  return Number(value.timestampValue.seconds) * 1_000 + value.timestampValue.nanos / 1_000_000;
}
