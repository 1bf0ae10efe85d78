/**
 * A ledger whose store is loaded when it is first asked: most deliveries have no schedule, and a cold start should not
 * pay for a client that it does not use. Concurrent first calls load it once; a load that fails rejects the call, and
 * the next call tries again.
 */
import { loadOnce } from '../async/load-once.ts';
import { type Ledger, LEDGER_TIMES } from './ledger.ts';
import { callable, checkOptions, isObject } from '../options.ts';
import { SHARDS, someShards } from '../shards.ts';

export type LazyLedgerOptions = Readonly<{
  /** Those of the ledger that is loaded (default: its own defaults). */
  times?: Ledger['times'];
  /** Those of the ledger that is loaded (default 16, 1 to 256). */
  shards?: number;
}>;

/**
 * Throws ConfigError `INVALID_OPTION`.
 *
 * @example
 * const ledger = lazyLedger(async () => firestoreLedger(new Firestore()));
 */
export function lazyLedger(load: () => Promise<Ledger>, options: LazyLedgerOptions = {}): Ledger {
  callable('load', load);
  checkOptions<LazyLedgerOptions>(options, { times: isObject, shards: someShards });
  const { times = LEDGER_TIMES, shards = SHARDS } = options;
  const loaded = loadOnce(load);
  return {
    times,
    shards,
    change: async (id, rule) => (await loaded()).change(id, rule),
    read: async (id) => (await loaded()).read(id),
    due: async (...asked) => (await loaded()).due(...asked),
    defer: async (...asked) => (await loaded()).defer(...asked),
    pending: async (consumer) => (await loaded()).pending(consumer),
    list: async (query) => (await loaded()).list(query),
  };
}
