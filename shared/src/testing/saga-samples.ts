/** Instances and records for tests of stores, and a transaction of an inbox to write them in. */
import { randomUUID } from 'node:crypto';
import type { InboxStore } from '../dedup/inbox-store.ts';
import type { Instance } from '../sagas/instance.ts';
import type { StepRecord } from '../sagas/step-records.ts';

export function anInstance(change: Partial<Instance> = {}): Instance {
  return {
    ref: { consumer: 'sagas', saga: 'place-order', id: randomUUID() },
    version: 2,
    startHash: 'h'.repeat(43),
    state: 'running',
    plan: [
      { name: 'order', kind: 'begun', group: 0, topic: 'orders', timeoutMs: 60_000, attempts: 3 },
      { name: 'a.b', kind: 'compensable', group: 1, topic: 'a', timeoutMs: 10_000, attempts: 2 },
      { name: 'c', kind: 'compensable', group: 1, topic: 'c', timeoutMs: 10_000, attempts: 3 },
      { name: 'charge', kind: 'pivot', group: 2, topic: 'projects/p/topics/t', timeoutMs: 1, attempts: 3 },
    ],
    steps: {
      order: { status: 'done', attempt: 0 },
      'a.b': {
        status: 'doing',
        attempt: 2,
        body: '{"x":"Łódź 🚀"}',
        sentAtMs: 1_893_456_000_123,
        waitMs: 20_000,
      },
      c: { status: 'undoing', attempt: 1, body: '', sentAtMs: 5, waitMs: 1, known: true, reply: '[[1],[2]]' },
    },
    data: '{"id":"i","lists":[[1,[2]]]}',
    arm: 3,
    armedAtMs: 1_893_456_020_123,
    wakeAtMs: 1_893_456_020_123,
    history: [
      { atMs: 1_893_456_000_001, event: 'start', id: 'd' },
      { atMs: 1_893_456_000_002, event: 'cancel', id: 'call', answer: 'asked' },
      { atMs: 1_893_456_000_003, event: 'tick 1' },
    ],
    startedAtMs: 1_893_456_000_001,
    atMs: 1_893_456_000_003,
    ...change,
  };
}

/** What an instance that has ended is stored as. */
export function anEnded(state: 'completed' | 'compensated', change: Partial<Instance> = {}): Instance {
  const { wakeAtMs: _wake, armedAtMs: _armed, ...rest } = anInstance(change);
  return { ...rest, state };
}

export const aRecord = (change: Partial<StepRecord> = {}): StepRecord => ({
  ref: { consumer: 'credit', saga: 'place-order', id: randomUUID(), step: 'credit' },
  state: 'done',
  reply: '{"limit":9}',
  ...change,
});

/** As an inbox makes one for a message: what `work` does is committed with the message's record. */
export async function inTransaction<Tx, Result>(
  store: InboxStore<Tx>,
  work: (transaction: Tx) => Promise<Result>,
): Promise<Result> {
  const answer = await store.claim({
    key: randomUUID().replaceAll('-', '').padEnd(43, 'k'),
    owner: randomUUID(),
    fingerprint: 'f'.repeat(43),
    messageId: '1',
    leaseMs: 60_000,
    retentionMs: 600_000,
    mayTakeOver: true,
  });
  if (answer.kind !== 'claimed') throw new Error(`the claim was ${answer.kind}`);
  const made: { result?: Result } = {};
  await store.transact(async (transaction) => {
    made.result = await work(transaction);
    return { held: answer.held, rows: [] };
  });
  return made.result as Result;
}
