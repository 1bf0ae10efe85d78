/**
 * Ways of relaying that break a rule each, to see that the schedules notice.
 */
import type { RelayStore } from '../../../shared/src/outbox/outbox-store.ts';
import { outbox } from '../../../shared/src/outbox/outbox.ts';
import { relay, type Relay } from '../../../shared/src/outbox/relay.ts';
import { outgoingOf, type StreamRef } from '../../../shared/src/outbox/rows.ts';
import { silent } from '../../../shared/src/log.ts';
import type { Invariant } from './invariants.ts';
import { asBuilt, type Parts, type Way } from './play.ts';
import { pendingOf } from './pending-of.ts';
import { message } from './world.ts';

export type Mutant = Readonly<{ name: string; breaks: Invariant; way: Way }>;

const IN_ORDER = 'first publishes of a key are 1, 2, 3, …';

/** The real relay, over a store or a publisher with a fault. */
const over = (change: (parts: Parts) => Partial<Parts>): Way => ({
  start: (parts) => asBuilt.start({ ...parts, ...change(parts) }),
});
const overStore = (change: (store: Parts['store'], parts: Parts) => Partial<RelayStore>): Way =>
  over((parts) => ({ store: { ...parts.store, ...change(parts.store, parts) } }));

/** A process with another relay. */
const overRelay = (change: (parts: Parts, built: Relay) => Partial<Relay>): Way => ({
  start(parts) {
    const { store, publisher, clock, newId } = parts;
    const built = relay(store, publisher, { clock, log: silent, newId, pageSize: 2 });
    const changed = { ...built, ...change(parts, built) };
    const boxes = {
      fast: outbox(store, { relay: changed, clock, newId }),
      slow: outbox(store, { clock, newId }),
    };
    return {
      pass: (signal) => changed.sweep({ signal }),
      add: (texts, slot, fast) =>
        store.transact(async (transaction) => {
          const reserved = await boxes[fast ? 'fast' : 'slow'].reserve(transaction, slot);
          return reserved.add(...texts.map(message));
        }),
    };
  },
});

const PASSED = { due: 0, done: 0, failed: 0, blocked: 0, isWhole: true };

const pendingIn = async (store: RelayStore) => pendingOf(store, await store.bound(), 100);

/** B37: each row is leased on its own, so two relays have two rows of a key at the same time. */
const rowLeases = overRelay(({ store, publisher, newId }) => ({
  flush: async () => {},
  async sweep() {
    const rows = await pendingIn(store);
    const inOrder = rows.toSorted((left, right) => (left.place?.number ?? 0) - (right.place?.number ?? 0));
    for (const { id } of inOrder) {
      const claimed = await store.claim(id, newId(), 60_000).catch(() => undefined);
      if (claimed === undefined) continue;
      const isOut = await publisher.publish(outgoingOf(claimed.row)).then(
        () => true,
        () => false,
      );
      if (isOut) await store.markSent([id]);
    }
    return PASSED;
  },
}));

/** B16: the bound is what was seen last, whether it was published or not. */
const lastSeen = overStore((store) => ({
  async pending(...args) {
    const page = await store.pending(...args);
    const last = page.rows.at(-1);
    if (last !== undefined) await store.raiseBound(last.dueMs + 1);
    return page;
  },
}));

/** The stream is leased correctly, and `width` of its rows are published at once. */
const outstanding = (width: number): Way =>
  overRelay(({ store, publisher, newId }) => {
    const drain = async (ref: StreamRef): Promise<void> => {
      const { state, version, nowMs } = await store.readStream(ref);
      if (state?.owner !== undefined && state.untilMs > nowMs) return;
      const base = { sent: 0, attempts: 0, nextTryMs: 0, blocked: undefined, ...state };
      const owner = newId();
      let held = await store.writeStream(ref, version, { ...base, owner, leaseMs: 60_000 }, []);
      let { sent } = base;
      while (held !== undefined) {
        const rows = await store.after(ref, sent, width);
        const answers = await Promise.allSettled(rows.map((row) => publisher.publish(outgoingOf(row))));
        const failed = answers.findIndex(({ status }) => status === 'rejected');
        const done = rows.slice(0, failed < 0 ? rows.length : failed);
        sent = done.at(-1)?.place.number ?? sent;
        const isLast = failed >= 0 || rows.length === 0;
        const next = { ...base, sent, owner: isLast ? undefined : owner, leaseMs: isLast ? 0 : 60_000 };
        const ids = done.map(({ id }) => id);
        held = await store.writeStream(ref, held, next, ids);
        if (isLast) return;
      }
    };
    return {
      flush: (ref) => drain(ref).catch(() => {}),
      async sweep() {
        for (const { place } of await pendingIn(store))
          if (place !== undefined) await drain(place).catch(() => {});
        return PASSED;
      },
    };
  });

/**
 * B4: the publisher publishes its own row after its commit, whichever relay has the key and whatever comes before it.
 */
const fastWithoutLease = overRelay(({ store, publisher }) => ({
  async flush(ref, upTo) {
    const [row] = await store.after(ref, upTo - 1, 1);
    if (row === undefined || row.isSent) return;
    await publisher.publish(outgoingOf(row)).then(
      () => store.markSent([row.id]),
      () => {},
    );
  },
}));

/** B7: an unknown outcome counts as published. */
const unknownCounts = over(({ publisher }) => ({
  publisher: { publish: (outgoing) => publisher.publish(outgoing).catch(() => 'perhaps') },
}));

/** B1: the bound is always the lag before now, wherever the oldest pending row is. */
const boundByLag = overStore((_store, { clock }) => ({ bound: async () => clock.now() - 300_000 }));

/** Rows leave the selection without their stream taking their place. */
const parkedAlone = overStore((store) => ({
  writeStream: (ref, version, state, sent, selection) =>
    store.writeStream(
      ref,
      version,
      selection?.parked ? { ...state, parkedMs: undefined } : state,
      sent,
      selection,
    ),
}));

/** B6: rows are stamped by the clock of the process that commits them. */
const stampedByWorker: Way = { ...asBuilt, stamp: (clock) => () => clock.now() };

/** B3: each run of the transaction's function mints another ID. */
const freshIds: Way = {
  start(parts) {
    const built = asBuilt.start(parts);
    const { store, clock, newId } = parts;
    const box = outbox(store, { clock, newId });
    return {
      ...built,
      add: (texts, slot) =>
        store.transact(async (transaction) => {
          const reserved = await box.reserve(transaction, { ...slot, id: newId() });
          return reserved.add(...texts.map(message));
        }),
    };
  },
};

export const mutants: readonly Mutant[] = [
  { name: 'row leases in the relay', breaks: IN_ORDER, way: rowLeases },
  { name: 'cursor by last seen', breaks: 'nothing is lost', way: lastSeen },
  { name: 'second publish outstanding on a key', breaks: IN_ORDER, way: outstanding(2) },
  { name: 'rows of a batch concurrently', breaks: IN_ORDER, way: outstanding(50) },
  { name: 'fast path without the key’s lease', breaks: IN_ORDER, way: fastWithoutLease },
  { name: 'an unknown publish counts', breaks: 'nothing is lost', way: unknownCounts },
  { name: 'the bound is the lag before now', breaks: 'nothing is lost', way: boundByLag },
  { name: 'rows parked without their stream', breaks: 'nothing is lost', way: parkedAlone },
  { name: 'rows stamped by the worker’s clock', breaks: 'nothing is lost', way: stampedByWorker },
  { name: 'an ID for each run of a transaction', breaks: 'a call adds its rows once', way: freshIds },
];
