/**
 * Sagas and step records in this process's memory, in the transactions of a `memoryInbox`: for tests, under
 * `virtualClock()`. They keep to what the ports promise; everything is gone with the process.
 */
import { type Clock, systemClock } from '../clock.ts';
import type { MemoryInbox, MemoryTransaction } from '../dedup/inbox-memory.ts';
import { checkOptions, clock as aClock, port } from '../options.ts';
import { MEMORY_PROJECT } from '../outbox/memory.ts';
import { dueMsOf, SHARDS } from '../shards.ts';
import { asCommitted, type Instance, instanceId, isEnded } from './instance.ts';
import { type Page, SAGA_TIMES, type SagaStore } from './saga-store.ts';
import { dueRange, isListed, listRange, type Range, sortKeys } from './sort-keys.ts';
import { type StepRecord, type StepRecords, stepRecordId } from './step-records.ts';

export type MemorySagas = SagaStore<MemoryTransaction> &
  Readonly<{
    /** Every instance that has not expired. */
    instances(): readonly Instance[];
  }>;

export type MemoryStepRecords = StepRecords<MemoryTransaction> &
  Readonly<{
    /** Loses the record, as an operator's mistake does. */
    forget(record: StepRecord['ref']): void;
  }>;

type Values = Pick<MemoryInbox, 'peek' | 'put'>;

const values = port(['peek', 'put'], 'an inbox in memory, for example memoryInbox({ clock })');

/**
 * Throws ConfigError for an option that is not valid.
 *
 * @example
 * const clock = virtualClock();
 * const claims = memoryInbox({ clock });
 * const handler = inbox(claims, { publisher, clock })(orchestrator(memorySagas(claims, { clock }), [placeOrder], { topic: 'saga' }));
 */
export function memorySagas(inbox: Values, options: Readonly<{ clock?: Clock }> = {}): MemorySagas {
  values('inbox', inbox);
  checkOptions<{ clock: Clock }>(options, { clock: aClock });
  const { clock = systemClock() } = options;
  const shards = SHARDS;
  const known = new Set<string>();
  const { endedRetentionMs } = SAGA_TIMES;

  const nameOf = (id: string): string => `saga/${id}`;
  const isExpired = (instance: Instance): boolean =>
    isEnded(instance) && instance.atMs + endedRetentionMs <= clock.now();
  const alive = (value: unknown): Instance | undefined => {
    const instance = value as Instance | undefined;
    return instance === undefined || isExpired(instance) ? undefined : instance;
  };
  const all = (): readonly Instance[] =>
    [...known].map((name) => alive(inbox.peek(name))).filter((instance) => instance !== undefined);

  /** Sorted as Firestore sorts texts: by their bytes. */
  const inRange = ({ field, from, to }: Range, limit: number, after = ''): Page<[string, Instance]> => {
    const bytes = (text: string): Buffer => Buffer.from(text);
    const isIn = (text: string): boolean =>
      bytes(text).compare(bytes(from)) >= 0 &&
      bytes(text).compare(bytes(to)) < 0 &&
      (after === '' || bytes(text).compare(bytes(after)) > 0);
    const found = all()
      .map((instance): [string | null, Instance] => [sortKeys(instance, shards)[field], instance])
      .filter((pair): pair is [string, Instance] => pair[0] !== null && isIn(pair[0]))
      .toSorted(([one], [other]) => bytes(one).compare(bytes(other)));
    const items = found.slice(0, limit);
    const next = items.at(-1)?.[0];
    return { items, ...(found.length > limit && next !== undefined && { next }) };
  };

  return {
    project: () => MEMORY_PROJECT,
    shards,
    instances: all,
    async readIn(transaction, ref) {
      const instance = alive(await transaction.get(nameOf(instanceId(ref))));
      return { instance, nowMs: clock.now() };
    },
    writeIn(transaction, instance) {
      const name = nameOf(instanceId(instance.ref));
      transaction.set(name, (atMs: number) => {
        known.add(name);
        return asCommitted(instance, atMs);
      });
    },
    async read(ref) {
      return { instance: alive(inbox.peek(nameOf(instanceId(ref)))), nowMs: clock.now() };
    },
    async due(consumer, shard, graceMs, limit, after) {
      const { items, ...rest } = inRange(dueRange(consumer, shard, clock.now() - graceMs), limit, after);
      const due = items.map(([text, { ref }]) => ({ ref, wakeAtMs: dueMsOf(text) }));
      return { items: due, ...rest };
    },
    async list(query) {
      const { items, ...rest } = inRange(listRange(query), query.limit, query.after);
      const instances = items.map(([, instance]) => instance);
      return { items: instances.filter((instance) => isListed(instance, query)), ...rest };
    },
  };
}

/**
 * Step records beside the values of a `memoryInbox`. They do not expire.
 *
 * @example
 * const records = memoryStepRecords(memoryInbox({ clock }));
 */
export function memoryStepRecords(inbox: Values): MemoryStepRecords {
  values('inbox', inbox);
  const nameOf = (ref: StepRecord['ref']): string => `saga-step/${stepRecordId(ref)}`;
  return {
    project: () => MEMORY_PROJECT,
    forget: (ref) => inbox.put(nameOf(ref), undefined),
    readIn: async (transaction, ref) => (await transaction.get(nameOf(ref))) as StepRecord | undefined,
    writeIn: (transaction, record) => transaction.set(nameOf(record.ref), record),
    buffered(transaction) {
      const writes: (() => void)[] = [];
      const inner: MemoryTransaction = {
        async get(id) {
          if (writes.length > 0) throw new Error('a transaction reads before it writes');
          return transaction.get(id);
        },
        set: (id, value) => void writes.push(() => transaction.set(id, value)),
        delete: (id) => void writes.push(() => transaction.delete(id)),
      };
      return {
        transaction: inner,
        apply: () => {
          for (const write of writes) write();
        },
      };
    },
    async change(ref, rule) {
      const { answer, record } = rule(inbox.peek(nameOf(ref)) as StepRecord | undefined);
      if (record !== undefined) inbox.put(nameOf(ref), record);
      return answer;
    },
  };
}
