/**
 * The ledger in memory, for tests and for handlers that are tried out: it keeps to what the port promises, on the
 * clock that it is given. Everything is gone with the process.
 *
 * A transaction that finds at its end that another has changed what it read is run again, with the same transaction
 * object, as Firestore's client does.
 */
import { type Clock, systemClock } from '../clock.ts';
import { refused, TransientError } from '../errors.ts';
import { type Entry, expiresAtMs, type LedgerTimes, sweepAtMs } from './entry.ts';
import { type Found, LEDGER_TIMES, type Page, type TransactionalLedger } from './ledger.ts';
import { propertyOf } from '../shown-value.ts';
import { SHARDS, someShards } from '../shards.ts';
import { dueRange, isListed, listRange, pendingRange, type Range, sortKeys } from './sort-keys.ts';
import { checkOptions, clock as aClock, type Shape, objectOf, whole } from '../options.ts';

type MemoryLedgerTransaction = Readonly<{
  reads: Map<string, number>;
  writes: Map<string, Entry>;
}>;

export type MemoryLedger = TransactionalLedger<MemoryLedgerTransaction> &
  Readonly<{
    transact<Result>(work: (transaction: MemoryLedgerTransaction) => Promise<Result>): Promise<Result>;
    /** Every entry that has not expired. */
    entries(): ReadonlyMap<string, Entry>;
  }>;

export type MemoryLedgerOptions = Readonly<{
  /** Default: the machine's. */
  clock?: Clock;
  /** In milliseconds (default: those of `firestoreLedger`). */
  times?: Partial<LedgerTimes>;
  /** In how many ranges entries wait for the sweep (default 16, 1 to 256). */
  shards?: number;
}>;

type Row = Readonly<{ entry: Entry; revision: number }>;

const ATTEMPTS = 5;

const TIMES: Shape<LedgerTimes> = {
  firingLeaseMs: whole(0),
  unscheduledGraceMs: whole(0),
  lostGraceMs: whole(0),
  endedRetentionMs: whole(0),
};

/**
 * Throws ConfigError for an option that is not valid.
 *
 * @example
 * const ledger = memoryLedger({ clock: virtualClock() });
 */
export function memoryLedger(options: MemoryLedgerOptions = {}): MemoryLedger {
  checkOptions<MemoryLedgerOptions>(options, {
    clock: aClock,
    times: objectOf(TIMES),
    shards: someShards,
  });
  const { clock = systemClock(), times: given = {}, shards = SHARDS } = options;
  const times = { ...LEDGER_TIMES, ...given };
  const rows = new Map<string, Row>();
  let revisions = 0;

  const row = (id: string): Row | undefined => {
    const found = rows.get(id);
    if (found === undefined) return undefined;
    if ((expiresAtMs(found.entry, times) ?? Infinity) > clock.now()) return found;
    rows.delete(id);
    return undefined;
  };
  const write = (id: string, entry: Entry): void => {
    revisions += 1;
    rows.set(id, { entry, revision: revisions });
  };
  const look = (id: string): Found => ({ entry: row(id)?.entry, nowMs: clock.now() });

  /** Sorted as Firestore sorts texts: by their bytes. */
  const inRange = ({ field, from, to }: Range, limit: number, after = ''): Page<[string, Row]> => {
    const [low, high, last] = [from, to, after].map((text) => Buffer.from(text)) as [Buffer, Buffer, Buffer];
    const found: { at: Buffer; text: string; item: [string, Row] }[] = [];
    for (const item of rows) {
      const text = sortKeys(item[0], item[1].entry, times, shards)[field];
      const at = Buffer.from(text ?? '');
      if (text === null || at.compare(low) < 0 || at.compare(high) >= 0) continue;
      if (after === '' || at.compare(last) > 0) found.push({ at, text, item });
    }
    found.sort((one, other) => one.at.compare(other.at));
    const page = found.slice(0, limit);
    const next = page.at(-1)?.text;
    const items = page.map(({ item }) => item);
    return { items, ...(found.length > limit && next !== undefined && { next }) };
  };

  return {
    times,
    entries: () => new Map([...rows.keys()].flatMap((id) => pairOf(id, row(id)))),
    async change(id, rule) {
      const { entry, nowMs } = look(id);
      const decision = rule(entry, nowMs);
      if (decision.entry !== undefined) write(id, decision.entry);
      return decision;
    },
    async read(id) {
      return look(id);
    },
    shards,
    async due(consumer, shard, limit, after) {
      const { items, ...rest } = inRange(dueRange(consumer, shard, clock.now()), limit, after);
      const due = items.map(([id, { entry, revision }]) => ({
        id,
        version: String(revision),
        dueMs: sweepAtMs(entry, times) ?? 0,
      }));
      return { items: due, ...rest };
    },
    // Everything here can be read.
    defer: async () => {},
    async pending(consumer) {
      return inRange(pendingRange(consumer), Infinity).items.length;
    },
    async list(query) {
      const { items, ...rest } = inRange(listRange(query), query.limit, query.after);
      const entries = items.map(([, { entry }]) => entry);
      return { items: entries.filter((entry) => isListed(entry, query)), ...rest };
    },
    async readIn(transaction, id) {
      if (!(propertyOf(transaction, 'reads') instanceof Map)) {
        throw refused('transaction', transaction, 'that of `transact`');
      }
      transaction.reads.set(id, row(id)?.revision ?? 0);
      return look(id);
    },
    writeIn: (transaction, id, entry) => void transaction.writes.set(id, entry),
    async transact(work) {
      const transaction: MemoryLedgerTransaction = { reads: new Map(), writes: new Map() };
      for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
        transaction.reads.clear();
        transaction.writes.clear();
        const result = await work(transaction);
        if ([...transaction.reads].some(([id, revision]) => (row(id)?.revision ?? 0) !== revision)) continue;
        for (const [id, entry] of transaction.writes) write(id, entry);
        return result;
      }
      throw new TransientError('TRANSACTION_CONTENTION', 'other writers were in the way each time');
    },
  };
}

const pairOf = (id: string, found: Row | undefined): [string, Entry][] =>
  found === undefined ? [] : [[id, found.entry]];
