/**
 * Plays one schedule against a way of relaying, on virtual time, and says which invariants it broke.
 *
 * Three processes share one store and one topic. Each makes its calls and passes over the outbox now and then; it is
 * paused, or dies at any request and is replaced. A way may be told of rows by events, of which some are lost, late, or
 * come twice. After a while nothing fails any more: by then everything must be published.
 */
import { type Clock, sleep } from '../../../shared/src/clock.ts';
import { storeUnavailable, TransientError } from '../../../shared/src/errors.ts';
import { hashOf } from '../../../shared/src/hash.ts';
import { silent } from '../../../shared/src/log.ts';
import type { OutgoingMessage } from '../../../shared/src/message.ts';
import type { Publisher } from '../../../shared/src/publish/publisher.ts';
import { virtualClock } from '../../../shared/src/testing/index.ts';
import { memoryTable, type Network, type Table } from '../../../shared/src/outbox/memory-table.ts';
import { memoryOutbox, type MemoryOutbox } from '../../../shared/src/outbox/memory.ts';
import { type Added, outbox, type SlotOptions } from '../../../shared/src/outbox/outbox.ts';
import { relay } from '../../../shared/src/outbox/relay.ts';
import { type Invariant, type Outcome, violations } from './invariants.ts';
import { supervise } from '../engine/supervisor.ts';
import { inTurn } from '../engine/faults.ts';
import { plannedDeaths } from '../engine/places.ts';
import { startProcess } from '../engine/process.ts';
import { type Schedule, type Site, FAULTS_END_MS } from './schedule.ts';
import { message } from './world.ts';

export type Parts = Readonly<{
  store: MemoryOutbox;
  publisher: Publisher;
  /** The process, with a wall clock that may be wrong. */
  clock: Clock;
  newId: () => string;
}>;

/** One process's way of adding and relaying. */
export type Way = Readonly<{
  /** How rows are stamped; undefined: by the store. */
  stamp?: (clock: Clock) => () => number;
  start(parts: Parts): Readonly<{
    pass(signal: AbortSignal): Promise<unknown>;
    add(texts: readonly string[], slot: SlotOptions, fast: boolean): Promise<Added>;
    /** What it does with the event of a row. Absent: it is told nothing. */
    tell?(id: string): Promise<unknown>;
  }>;
}>;

export const asBuilt: Way = {
  start(parts) {
    const { tell: _told, ...started } = withTrigger.start(parts);
    return started;
  },
};

export const withTrigger: Way = {
  start({ store, publisher, clock, newId }) {
    const relayed = relay(store, publisher, { clock, log: silent, newId, pageSize: 2 });
    const boxes = {
      fast: outbox(store, { relay: relayed, clock, newId }),
      slow: outbox(store, { clock, newId }),
    };
    return {
      pass: (signal) => relayed.sweep({ signal }),
      add: (texts, slot, fast) =>
        store.transact(async (transaction) => {
          const reserved = await boxes[fast ? 'fast' : 'slow'].reserve(transaction, slot);
          return reserved.add(...texts.map(message));
        }),
      tell: (id) => relayed.tailRow(id),
    };
  },
};

/** When the events of a row come, in milliseconds after its commit: lost, once, twice, late, or two of them at once. */
const EVENTS: readonly (readonly number[])[] = [[], [100], [100, 2_000], [40_000], [300, 300]];
/** By its ID, so that a schedule is the same each time. */
const drawnBy = (id: string, among: number): number =>
  Buffer.from(hashOf('event', id)).readUInt32BE(0) % among;

const WORKERS = 3;
const PASS_EVERY_MS = 60_000;
/** Several times as long as a lease, a pause and the longest backoff together. */
const LIMIT_MS = FAULTS_END_MS + 1_800_000;

export async function play(
  way: Way,
  schedule: Schedule,
  died: (site: Site) => void = () => {},
): Promise<readonly Readonly<{ invariant: Invariant; text: string }>[]> {
  const { calls, faults, down, away, pauses, deaths, skews } = schedule;
  const clock = virtualClock();
  const documents = memoryTable();
  const table: Table = {
    ...documents,
    put(name, value) {
      const isNew = documents.get(name) === undefined;
      const version = documents.put(name, value);
      const [, id] = /^row\/(.*)$/.exec(name) ?? [];
      if (isNew && id !== undefined) created(id);
      return version;
    },
  };
  const hasFaults = (): boolean => clock.monotonic() < FAULTS_END_MS;
  const applied: OutgoingMessage[] = [];
  const outcomes: Outcome[] = calls.map(() => ({ kind: 'unknown' }));
  const due = plannedDeaths(deaths, died);

  const nextFault = inTurn(faults);
  let ids = 0;
  const isIn = (times: typeof down): boolean =>
    times.some(({ at, milliseconds }) => {
      const now = clock.monotonic();
      return now >= at && now < at + milliseconds;
    });
  const workers = supervise(WORKERS, (slot, replace) => {
    const end = new AbortController();
    const process = startProcess(clock, {
      faultOf: () => (hasFaults() ? nextFault() : undefined),
      dies: (request, when) => hasFaults() && due.dies(`${when} ${request}` as Site),
      lost: (_request, how) => storeUnavailable(how),
      died() {
        end.abort();
        replace();
      },
    });
    const network: Network = process.call;
    const wrong = skews[slot % skews.length] ?? 0;
    const skewed: Clock = { ...process.clock, now: () => clock.now() + wrong };
    const stamp = way.stamp?.(skewed);
    const store = memoryOutbox({
      clock: process.clock,
      network,
      table,
      shards: 2,
      ...(stamp !== undefined && { stamp }),
    });
    const publisher: Publisher = {
      publish: (outgoing) =>
        network('publish', async () => {
          if (isIn(away)) return undefined;
          applied.push(outgoing);
          return String(applied.length);
        }).then((id) => id ?? Promise.reject(new TransientError('PUBSUB_UNAVAILABLE', 'the topic is away'))),
    };
    const newId = (): string => `id-${(ids += 1)}`;
    const started = way.start({ store, publisher, clock: skewed, newId });
    const loop = async (): Promise<void> => {
      while (!end.signal.aborted && clock.monotonic() < LIMIT_MS) {
        await sleep(process.clock, PASS_EVERY_MS + slot * 1_000, end.signal);
        if (!isIn(down) || !hasFaults()) await started.pass(end.signal).catch(() => {});
      }
    };
    void loop();
    return { ...started, pause: process.pause, end };
  });
  function created(id: string): void {
    for (const [index, delayMs] of (EVENTS[drawnBy(id, EVENTS.length)] ?? []).entries()) {
      const worker = (drawnBy(id, WORKERS) + index) % WORKERS;
      clock.after(
        delayMs,
        () =>
          void workers
            .at(worker)
            .tell?.(id)
            .catch(() => {}),
      );
    }
  }
  for (const { at, worker, milliseconds } of pauses) {
    clock.after(at, () => workers.at(worker).pause(milliseconds));
  }
  for (const [index, { at, worker, key, count, fast }] of calls.entries()) {
    const texts = Array.from({ length: count }, (_, part) => `call ${index} part ${part}`);
    const slot = key === 2 ? {} : { sequenceKey: `key-${key}` };
    const make = async (): Promise<void> => {
      try {
        const added = await workers.at(worker).add(texts, slot, fast);
        outcomes[index] = { kind: 'committed' };
        await added.afterCommit();
      } catch {
        // The outcome is unknown: it may be committed, now or later.
      }
    };
    clock.after(at, () => void make());
  }

  await clock.advance(FAULTS_END_MS);
  const isOut = (): boolean => table.rows().every(({ state }) => state === 'sent');
  // At least one more pass after the last delayed request has arrived.
  await clock.advance(60_000);
  while (!isOut() && clock.monotonic() < LIMIT_MS) await clock.advance(60_000);
  for (let slot = 0; slot < workers.size; slot += 1) workers.at(slot).end.abort();
  return violations(table, applied, calls, outcomes);
}
