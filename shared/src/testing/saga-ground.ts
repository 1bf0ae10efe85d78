/** What a test of sagas needs: an inbox with sagas, step records and the participants' own data beside it. */
import type { Clock } from '../clock.ts';
import { memoryInbox, type MemoryTransaction } from '../dedup/inbox-memory.ts';
import type { InboxStore } from '../dedup/inbox-store.ts';
import { virtualClock } from './virtual-clock.ts';
import { memorySagas, memoryStepRecords } from '../sagas/memory.ts';
import type { SagaStore } from '../sagas/saga-store.ts';
import { memoryTraces } from '../sagas/memory-traces.ts';
import type { TraceStore } from '../sagas/saga-traces.ts';
import type { StepRecords, StepRef } from '../sagas/step-records.ts';

export type Ground<Tx> = Readonly<{
  inbox: InboxStore<Tx>;
  store: SagaStore<Tx>;
  records: StepRecords<Tx>;
  traces: TraceStore<Tx>;
  /** Of the processes. */
  clock: Clock;
  /** The store's time. */
  now(): number;
  /** Lets that much of the store's time pass. */
  pass(milliseconds: number): Promise<void>;
  /** Waits, and moves time where it does not move by itself. */
  until<Value>(done: Promise<Value>): Promise<Value>;
  /** A number of a participant's own. */
  get(transaction: Tx, name: string): Promise<number>;
  set(transaction: Tx, name: string, value: number): void;
  read(name: string): Promise<number>;
  /** Loses a record. */
  forget(ref: StepRef): Promise<void>;
  close(): Promise<void>;
}>;

export function memoryGround(): Ground<MemoryTransaction> {
  const clock = virtualClock();
  const inbox = memoryInbox({ clock });
  const records = memoryStepRecords(inbox);
  return {
    inbox,
    store: memorySagas(inbox, { clock }),
    records,
    traces: memoryTraces(inbox, { clock }),
    clock,
    now: () => clock.now(),
    pass: (milliseconds) => clock.advance(milliseconds),
    until: (done) => clock.until(done),
    get: async (transaction, name) => Number((await transaction.get(name)) ?? 0),
    set: (transaction, name, value) => transaction.set(name, value),
    read: async (name) => Number(inbox.peek(name) ?? 0),
    forget: async (ref) => records.forget(ref),
    close: async () => {},
  };
}
