import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import { firestoreLocks, reread, versionOf } from '../../../shared/src/sagas/firestore-locks.ts';
import { onLocalStack, type OpenedFirestore } from '../servers/firestore-servers.ts';

suite('countermeasures on Firestore', () => {
  let opened: OpenedFirestore;
  before(async () => {
    opened = await onLocalStack('enforce');
  });
  after(() => opened.close());

  const account = async () => {
    const collection = opened.firestore.collection(`accounts-${randomUUID()}`);
    const ref = collection.doc('a');
    await ref.set({ free: 5 });
    return { collection, ref, locks: firestoreLocks(collection) };
  };
  const mine = { saga: 'order', id: '17' };
  const other = { saga: 'order', id: '18' };

  test('a lock is taken once, is kept out of by others, and is released by its own saga alone', async () => {
    const { locks, ref } = await account();
    const seen: string[] = [];
    const within = async (saga: typeof mine, what: 'take' | 'release' | 'look'): Promise<void> => {
      await opened.firestore.runTransaction(async (transaction) => {
        const lock = await locks.read(transaction, 'a', saga);
        seen.push(lock.status);
        if (what !== 'look' && lock.status !== 'taken') lock[what]();
        if (what === 'release') lock.release();
      });
    };
    await within(mine, 'take');
    await within(mine, 'take');
    await within(other, 'take');
    await within(other, 'release');
    assert.equal((await ref.get()).get('lockedBy'), 'order/17');
    assert.deepEqual(
      (await locks.heldBy('order', '17')).map(({ id }) => id),
      ['a'],
    );
    await within(mine, 'release');
    await within(other, 'look');
    assert.deepEqual(seen, ['free', 'mine', 'taken', 'taken', 'mine', 'free']);
    assert.deepEqual((await ref.get()).data(), { free: 5 }, 'nothing of it is left');
    assert.deepEqual(await locks.heldBy('order', '17'), []);
  });

  test('a lock that is another saga’s, or of a document that is not there, cannot be taken', async () => {
    const { locks, ref } = await account();
    await ref.update({ lockedBy: 'order/18' });
    for (const id of ['a', 'none']) {
      const taking = opened.firestore.runTransaction(async (transaction) =>
        (await locks.read(transaction, id, mine)).take(),
      );
      await assert.rejects(taking, { code: 'LOCK_TAKEN' });
    }
  });

  test('of two sagas at once one has the lock', async () => {
    const { locks } = await account();
    const take = (saga: typeof mine): Promise<string> =>
      opened.firestore.runTransaction(async (transaction) => {
        const lock = await locks.read(transaction, 'a', saga);
        if (lock.status === 'free') lock.take();
        return lock.status;
      });
    assert.deepEqual((await Promise.all([take(mine), take(other)])).toSorted(), ['free', 'taken']);
  });

  test('a value that was changed since it was seen is found to be another', async () => {
    const { ref } = await account();
    const seen = versionOf(await ref.get());
    // A snapshot holds its client, which no text of a failure should be made of.
    const look = async (): Promise<unknown> => {
      const found = await opened.firestore.runTransaction((tx) => reread(tx, ref, seen));
      return found === undefined ? 'another' : found.get('free');
    };
    assert.equal(await look(), 5);
    await ref.update({ free: 5 });
    assert.equal(await look(), 5, 'a write that changes nothing is none');
    await ref.update({ free: 6 });
    assert.equal(await look(), 'another');
    await ref.delete();
    assert.equal(await look(), 'another');
    assert.equal(versionOf(await ref.get()), '');
  });
});
