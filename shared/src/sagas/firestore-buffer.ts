/**
 * A Firestore transaction whose writes are kept until it is known whether they count: what a step writes before it refuses
 * is dropped. Reads go through, and come before writes, as the client demands of its own.
 *
 * Each transaction of the client has one, the same in every run of its function: what is remembered by the transaction's
 * identity, as an outbox does, is remembered through it too.
 */
import type { Transaction } from '@google-cloud/firestore';
import type { StepRecords } from './step-records.ts';

type Buffer = Readonly<{ transaction: Transaction; writes: (() => unknown)[] }>;

const WRITES: ReadonlySet<unknown> = new Set(['create', 'set', 'update', 'delete']);

export function bufferedTransactions(): StepRecords<Transaction>['buffered'] {
  const buffers = new WeakMap<Transaction, Buffer>();
  return (transaction) => {
    const buffer = buffers.get(transaction) ?? bufferOf(transaction);
    buffers.set(transaction, buffer);
    buffer.writes.length = 0;
    return {
      transaction: buffer.transaction,
      apply: () => {
        for (const write of buffer.writes.splice(0)) write();
      },
    };
  };
}

function bufferOf(inner: Transaction): Buffer {
  const writes: (() => unknown)[] = [];
  const transaction: Transaction = new Proxy(inner, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return (...given: unknown[]): unknown => {
        if (WRITES.has(name)) {
          writes.push(() => Reflect.apply(value, target, given));
          return transaction;
        }
        if (writes.length > 0)
          return Promise.reject(new Error('Firestore transactions require all reads before all writes'));
        return Reflect.apply(value, target, given);
      };
    },
  });
  return { transaction, writes };
}
