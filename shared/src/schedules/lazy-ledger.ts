/**
 * A ledger whose store is loaded when it is first asked: most deliveries have no schedule, and a cold start should not
 * pay for a client that it does not use. Concurrent first calls load it once; a load that fails rejects the call, and
 * the next call tries again.
 */
import { loadOnce } from '../async/load-once.ts';
import { type Ledger, LEDGER_TIMES } from './ledger.ts';
import { callable, isObject, whole } from '../options.ts';
import { SHARDS } from '../shards.ts';

/** `times` and `shards` must be those of the ledger that is loaded: its defaults, unless it was given others. */
export function lazyLedger(load: () => Promise<Ledger>, times = LEDGER_TIMES, shards = SHARDS): Ledger {
  callable('load', load);
  isObject('times', times);
  whole(1)('shards', shards);
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
