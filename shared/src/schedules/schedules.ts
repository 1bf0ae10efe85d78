/**
 * Schedules for programs: a delivery that takes part in the caller's own transaction, and can be replaced and cancelled
 * by its key, also by messages of that `scheduleKey` through the same source.
 *
 * What a transaction schedules is committed with it or not at all. A crash after the commit leaves an entry without a
 * task, which the sweep gives one. A transaction function that is run again answers as it did, and writes nothing twice.
 */
import { randomUUID } from 'node:crypto';
import { parseDeliveryOptions } from '../attributes.ts';
import { type Clock, systemClock } from '../clock.ts';
import { offload } from '../tasks/claim-check.ts';
import { composeDelayed } from '../tasks/compose-delayed.ts';
import { MAX_TASK_BYTES, taskBytes, checkRoom } from '../tasks/task-options.ts';
import type { Delayed } from '../tasks/task-body.ts';
import type { TaskQueue } from '../tasks/task-queue.ts';
import { ConfigError, PermanentError } from '../errors.ts';
import { byteLength } from '../message.ts';
import type { PayloadStore } from '../payload/payload-store.ts';
import { type MessageParts, outgoing } from '../publish/compose-message.ts';
import { dedupIdOf } from '../publish/identity.ts';
import { shownValue } from '../shown-value.ts';
import { ATTR, count } from '../telemetry/instruments.ts';
import {
  type Answered,
  cancelByProgram,
  type Decision,
  markRefusedKept,
  markScheduled,
  putByProgram,
  reopen,
} from './decide.ts';
import { enqueue } from './enqueue.ts';
import {
  type Entry,
  entryId,
  MAX_ENTRY_BYTES,
  type ScheduleRef,
  type Version,
  versionAfter,
} from './entry.ts';
import type { TransactionalLedger } from './ledger.ts';
import { type ListOptions, lister, type ScheduleList, type ScheduleView, viewOf } from './views.ts';
import {
  checkOptions,
  clock as aClock,
  fullTopic,
  isObject,
  ledger as aLedger,
  name,
  payloads as somePayloads,
  required,
  taskQueue as aQueue,
} from '../options.ts';

export type SchedulesOptions = Readonly<{
  /** Default: the machine's. */
  clock?: Clock;
  /** The consumer and the source of the delay stage whose keys these are: `context.consumer` and `context.source` there. */
  consumer: string;
  /** The source of that stage. */
  source: string;
  /** `projects/…/topics/…`: where the republisher publishes. */
  topic: string;
  /** As for `delay` (default 102,400, at most 1,048,576). */
  maxTaskBytes?: number;
  /** As for `delay`: where messages wait that are larger than a task. Absent: a permanent error. */
  payloads?: PayloadStore;
}>;

/** What is to be delivered, and when: `delay` is counted from the store's time of the transaction. Neither: at once. */
export type ScheduleParts = Omit<
  MessageParts,
  'scheduleKey' | 'cancel' | 'sequence' | 'sequenceKey' | 'sequenceEpoch'
>;

/** `tooLate`: it is being delivered, or was. `superseded`: a newer write came while this transaction was run again. */
export type Change<Done extends string> = Readonly<{
  answer: Answered<Done>;
  /**
   * Call it once the transaction is committed: creates the task. Left out, or failed, the sweep does it a minute later.
   * Rejects as the queue and the ledger do; the schedule remains all the same. With a PermanentError (`TASK_REFUSED`)
   * it is `refused`: the queue will never take its task, the sweep leaves it alone, and `reopen` tries again.
   */
  afterCommit(): Promise<void>;
}>;

export type Slot = Readonly<{
  /** What stood there when the transaction read it. */
  found: ScheduleView | undefined;
  /** Replaces what is pending. Throws PermanentError for a message that is not valid or too large. */
  put(parts: ScheduleParts): Promise<Change<'scheduled'>>;
  cancel(): Change<'cancelled'>;
}>;

export type Schedules<Transaction> = Readonly<{
  /** Reads the key in the transaction: before its first write. What is decided is one of `put` and `cancel`, once. */
  reserve(transaction: Transaction, key: string): Promise<Slot>;
  /** `reserve` and `put` at once, where nothing is read afterwards. */
  put(transaction: Transaction, key: string, parts: ScheduleParts): Promise<Change<'scheduled'>>;
  /** `reserve` and `cancel` at once. Cancelling what is not there is final too: what is older comes to nothing. */
  cancel(transaction: Transaction, key: string): Promise<Change<'cancelled'>>;
  get(key: string): Promise<ScheduleView | undefined>;
  /**
   * Once the cause of the refusal is removed: creates the task of a schedule that is `refused`. False where the key has
   * none, or where its message is a dead letter. Rejects as `afterCommit` does.
   *
   * @example
   * for (const { key, state } of (await reminders.list()).schedules) {
   *   if (state === 'refused') await reminders.reopen(key);
   * }
   */
  reopen(key: string): Promise<boolean>;
  /** Schedules that are pending or refused, page by page. */
  list(options?: ListOptions): Promise<ScheduleList>;
}>;

/** One call of `runTransaction`: the same in every run of its function. */
type Attempted = Readonly<{ version: Version; generation: string }>;

/** 1 to 1,024 bytes, as `scheduleKey` on the wire. */
const KEY_BYTES = 1_024;

/**
 * Relies on the client to hand the same transaction object to every run of a transaction's function, as Google's does.
 * Throws ConfigError for an option that is not valid.
 *
 * @example
 * const reminders = schedules(firestoreLedger(firestore), queue, {
 *   consumer: 'delay',
 *   source: 'projects/shop/subscriptions/reminders',
 *   topic: 'projects/shop/topics/reminders',
 * });
 * const { afterCommit } = await firestore.runTransaction((transaction) =>
 *   reminders.put(transaction, 'order-17', { data: 'pay', delay: '3d' }),
 * );
 * await afterCommit();
 */
export function schedules<Transaction extends object>(
  ledger: TransactionalLedger<Transaction>,
  queue: TaskQueue,
  options: SchedulesOptions,
): Schedules<Transaction> {
  aLedger('ledger', ledger);
  aQueue('queue', queue);
  checkOptions<SchedulesOptions>(options, {
    clock: aClock,
    consumer: required(name),
    source: required(name),
    topic: required(fullTopic),
    maxTaskBytes: taskBytes,
    payloads: somePayloads,
  });
  const { clock = systemClock(), consumer, source, topic, payloads } = options;
  const { maxTaskBytes: asked = MAX_TASK_BYTES } = options;
  const maxTaskBytes = Math.min(asked, MAX_ENTRY_BYTES);
  checkRoom(maxTaskBytes, queue);
  const attempts = new WeakMap<Transaction, Map<string, Attempted>>();

  const refOf = (key: string): ScheduleRef => {
    const isKey = typeof key === 'string' && key !== '' && byteLength(key) <= KEY_BYTES && key.isWellFormed();
    if (isKey) return { consumer, source, key };
    throw new PermanentError(
      'INVALID_MESSAGE',
      `the key is ${shownValue(key)}; accepted: well-formed text of 1 to ${KEY_BYTES} bytes`,
    );
  };
  const attemptedIn = (transaction: Transaction, id: string, fresh: () => Attempted): Attempted => {
    const known = attempts.get(transaction) ?? new Map<string, Attempted>();
    attempts.set(transaction, known);
    const attempted = known.get(id) ?? fresh();
    known.set(id, attempted);
    return attempted;
  };
  const delayedOf = ({ version, generation }: Attempted, id: string, parts: ScheduleParts) => {
    const message = outgoing(topic, parts, { clock: { now: () => version.atMs } });
    const received = {
      ...message,
      id: generation,
      data: Buffer.from(message.data),
      publishTime: new Date(version.atMs),
    };
    const { scheduleKey, sequence, deliverAtMs = version.atMs } = parseDeliveryOptions(received);
    if (scheduleKey !== undefined || sequence !== undefined) {
      const text = 'a schedule carries scheduleKey or sequence; accepted: messages without them';
      throw new PermanentError('INVALID_MESSAGE', text);
    }
    const dedupId = dedupIdOf(received, { source });
    const place = { key: id, topic, dueTimeMs: deliverAtMs, dedupId, entry: { id, generation } };
    return composeDelayed(received, place);
  };
  const create = async (id: string, entry: Entry): Promise<void> => {
    try {
      await enqueue(queue, clock, entry);
    } catch (error) {
      if (error instanceof PermanentError) {
        const { answer } = await ledger.change(id, markRefusedKept(entry));
        if (answer === 'refused') count('schedules', { [ATTR.consumer]: consumer, [ATTR.answer]: answer });
      }
      throw error;
    }
    await ledger.change(id, markScheduled(entry));
  };
  const after = (id: string, answer: string, entry?: Entry, freed?: Delayed['payload']) => async () => {
    count('schedules', { [ATTR.consumer]: consumer, [ATTR.answer]: answer });
    if (entry !== undefined) await create(id, entry);
    if (freed !== undefined) await payloads?.done(freed);
  };

  const reserve = async (transaction: Transaction, key: string): Promise<Slot> => {
    isObject('transaction', transaction);
    const ref = refOf(key);
    const id = entryId(ref);
    const { entry: found, nowMs } = await ledger.readIn(transaction, id);
    const attempted = attemptedIn(transaction, id, () => ({
      version: versionAfter(found, nowMs, randomUUID()),
      generation: randomUUID(),
    }));
    let used = false;
    const use = (): void => {
      if (used)
        throw new ConfigError('SLOT_USED', 'a slot takes one put or cancel; reserve another transaction');
      used = true;
    };
    const written = <Answer>(decision: Decision<Answer>): Decision<Answer> => {
      if (decision.entry !== undefined) ledger.writeIn(transaction, id, decision.entry);
      return decision;
    };
    return {
      found: found && viewOf(found),
      async put(parts) {
        use();
        const { delayed, plain } = delayedOf(attempted, id, parts);
        const rule = (carried: Delayed) =>
          putByProgram({ ref, ...attempted, delayed: carried })(found, nowMs);
        if (rule(delayed).entry === undefined) {
          const { answer } = rule(delayed);
          const isMine = found?.generation === attempted.generation && found.state === 'unscheduled';
          return { answer, afterCommit: after(id, answer, isMine ? found : undefined) };
        }
        const { answer, entry, released } = written(
          rule(await offload(delayed, { queue, payloads, maxTaskBytes, plain })),
        );
        return { answer, afterCommit: after(id, answer, entry, released) };
      },
      cancel() {
        use();
        const { answer, released } = written(cancelByProgram({ ref, ...attempted })(found, nowMs));
        return { answer, afterCommit: after(id, answer, undefined, released) };
      },
    };
  };

  return {
    reserve,
    put: async (transaction, key, parts) => (await reserve(transaction, key)).put(parts),
    cancel: async (transaction, key) => (await reserve(transaction, key)).cancel(),
    async get(key) {
      const { entry } = await ledger.read(entryId(refOf(key)));
      return entry && viewOf(entry);
    },
    async reopen(key) {
      const id = entryId(refOf(key));
      const { answer } = await ledger.change(id, reopen);
      if (answer === 'notRefused') return false;
      await create(id, answer.entry);
      return true;
    },
    list: lister(ledger, consumer, source),
  };
}
