import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { until } from '../until.ts';
import { LOCK_WAIT_MS } from './locks.ts';
import { type ManualClock, manualClock } from '../manual-clock.ts';
import { type Answer, type TestBed, testBed } from './testing.ts';
import { IDLE_MS, TOTAL_MS } from './transactions.ts';

const [CANCELLED, INVALID_ARGUMENT, ABORTED] = [1, 3, 10];
const database = 'projects/p/databases/(default)';
const name = (path: string): string => `${database}/documents/${path}`;
const set = (path: string, n: number): object => ({
  operation: 'update',
  update: { name: name(path), fields: { n: { integerValue: String(n) } } },
});

describe('the life of a transaction', () => {
  let bed: TestBed;
  let clock: ManualClock;
  before(async () => {
    clock = manualClock();
    bed = await testBed(clock);
  });
  after(async () => {
    await bed.close();
    assert.equal(clock.timers(), 0, 'closing drops every timer');
  });
  beforeEach(() => bed.server.clear());

  const begin = async (): Promise<unknown> =>
    (await bed.call('BeginTransaction', { database }))[0]?.['transaction'];
  const read = (transaction: unknown, ...paths: string[]): Promise<readonly Answer[]> =>
    bed.call('BatchGetDocuments', { database, documents: paths.map(name), transaction });
  const commit = (transaction: unknown, ...writes: object[]): Promise<readonly Answer[]> =>
    bed.call('Commit', { database, transaction, writes });
  /** Until the server has as many requests waiting. */
  async function waiting(count: number): Promise<void> {
    await until(
      () => bed.server.stats().waitingRequests === count,
      () => `${bed.server.stats().waitingRequests} requests wait, not ${count}`,
    );
  }

  /** Until as many timers are set: the server has noticed what happened to a connection. */
  async function timers(count: number): Promise<void> {
    await until(() => clock.timers() >= count);
  }

  test('ends after 60 s without use, and its locks are free', async () => {
    const transaction = await begin();
    await read(transaction, 'a/a');
    clock.advance(IDLE_MS - 1);
    await read(transaction, 'a/b');
    clock.advance(IDLE_MS - 1);
    assert.equal(bed.server.stats().heldLocks, 2);
    clock.advance(1);
    assert.deepEqual([bed.server.stats().heldLocks, bed.server.stats().openTransactions], [0, 0]);
    await assert.rejects(commit(transaction, set('a/a', 1)), {
      code: INVALID_ARGUMENT,
      message: /transaction has expired/,
    });
  });

  test('ends a second after the connection of its client, which cannot finish it any more', async () => {
    const gone = await bed.raw();
    const [begun] = await gone.call('BeginTransaction', { database });
    const transaction = begun?.['transaction'];
    await gone.call('BatchGetDocuments', { database, documents: [name('a/a')], transaction });
    const written = commit(undefined, set('a/a', 7));
    await waiting(1);
    const before = clock.timers();
    gone.cut();
    await timers(before + 1);
    clock.advance(1_000);
    assert.equal((await written).length, 1);
    assert.equal(bed.server.stats().openTransactions, 0);
  });

  test('goes on when its client has come back on another connection', async () => {
    const first = await bed.raw();
    const [begun] = await first.call('BeginTransaction', { database });
    const transaction = begun?.['transaction'];
    const before = clock.timers();
    first.cut();
    await timers(before + 1);
    await read(transaction, 'a/a');
    clock.advance(1_000);
    assert.equal((await commit(transaction, set('a/a', 1))).length, 1);
  });

  test('ends after 270 s however busy it is', async () => {
    const transaction = await begin();
    for (let passed = 0; passed < TOTAL_MS; passed += 30_000) {
      await read(transaction, 'a/a');
      clock.advance(30_000);
    }
    await assert.rejects(read(transaction, 'a/a'), { code: INVALID_ARGUMENT });
  });

  test('lets a waiting write go on when the transaction that blocks it expires', async () => {
    const transaction = await begin();
    await read(transaction, 'a/a');
    clock.advance(IDLE_MS - 10_000);
    const written = commit(undefined, set('a/a', 7));
    await waiting(1);
    clock.advance(10_000);
    assert.equal((await written).length, 1);
  });

  test('ends a wait for a lock after 30 s with ABORTED, and releases all else', async () => {
    const [holder, waiter] = [await begin(), await begin()];
    await read(holder, 'a/a');
    await read(waiter, 'a/b');
    const refused = assert.rejects(commit(waiter, set('a/a', 1)), { code: ABORTED });
    await waiting(1);
    clock.advance(LOCK_WAIT_MS - 1);
    assert.equal(bed.server.stats().heldLocks, 2);
    clock.advance(1);
    await refused;
    assert.equal(bed.server.stats().heldLocks, 1);
    await commit(holder);
  });

  test('forgets a call that was cancelled while it waited', async () => {
    const holder = await begin();
    await read(holder, 'a/a');
    const cancel = new AbortController();
    const plain = commit(undefined, set('a/a', 6));
    await waiting(1);
    const gone = bed.call('Commit', { database, writes: [set('a/a', 1)] }, cancel.signal);
    await waiting(2);
    const begun = bed.call(
      'BatchGetDocuments',
      { database, documents: [name('a/a')], newTransaction: { readWrite: {} } },
      cancel.signal,
    );
    const rejected = [assert.rejects(gone, { code: CANCELLED }), assert.rejects(begun, { code: CANCELLED })];
    await waiting(3);
    cancel.abort();
    await Promise.all(rejected);
    await waiting(1);
    assert.equal(bed.server.stats().openTransactions, 1, 'the one that the cancelled read began is gone');
    await commit(holder, set('a/a', 5));
    await plain;
    const [answer] = await bed.call('GetDocument', { name: name('a/a') });
    assert.deepEqual(answer?.['fields'], { n: { valueType: 'integerValue', integerValue: '6' } });
  });

  test('ends the predecessor of a retry, which may still hold its locks', async () => {
    const first = await begin();
    await read(first, 'a/a');
    const [answer] = await bed.call('BatchGetDocuments', {
      database,
      documents: [name('a/a')],
      newTransaction: { readWrite: { retryTransaction: first } },
    });
    await commit(answer?.['transaction'], set('a/a', 1));
    await assert.rejects(commit(first), { code: ABORTED });
    await bed.call('Rollback', { database, transaction: first });
  });

  test('lets the older one win a deadlock, and a retry is as old as its first attempt', async () => {
    const old = await begin();
    await bed.call('Rollback', { database, transaction: old });
    const young = await begin();
    const [first] = await bed.call('BatchGetDocuments', {
      database,
      documents: [name('a/a')],
      newTransaction: { readWrite: { retryTransaction: old } },
    });
    await read(young, 'a/b');
    const crossing = commit(young, set('a/a', 1));
    const lost = assert.rejects(crossing, { code: ABORTED });
    await waiting(1);
    await commit(first?.['transaction'], set('a/b', 1));
    await lost;
  });

  test('does not abort a waiting write that a transaction overtakes', async () => {
    const transaction = await begin();
    await read(transaction, 'a/a');
    const written = commit(undefined, set('a/a', 1), set('a/b', 1));
    await waiting(1);
    // The write is first in the queue for a/b, but waits for this transaction.
    await read(transaction, 'a/b');
    await commit(transaction, set('a/a', 2), set('a/b', 2));
    await written;
    const [answer] = await bed.call('GetDocument', { name: name('a/b') });
    assert.deepEqual(answer?.['fields'], { n: { valueType: 'integerValue', integerValue: '1' } });
  });

  test('refuses writes in a read-only transaction and what it does not know', async () => {
    const [answer] = await bed.call('BeginTransaction', { database, options: { readOnly: {} } });
    await assert.rejects(commit(answer?.['transaction'], set('a/a', 1)), { code: INVALID_ARGUMENT });
    await assert.rejects(commit(Buffer.from('nonsense'), set('a/a', 1)), { code: INVALID_ARGUMENT });
    await assert.rejects(bed.call('Rollback', { database, transaction: Buffer.from('x') }), {
      code: INVALID_ARGUMENT,
    });
  });
});
