import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FieldValue } from '@google-cloud/firestore';
import { status } from '@grpc/grpc-js';
import { manualClock } from '../manual-clock.ts';
import { type TestBed, testBed } from './testing.ts';
import type { TtlPolicy } from './ttl.ts';

type Run = (bed: TestBed) => Promise<void>;

/** Mode `off` is for queries: the limits hold all the same. */
async function withIndexes(definitions: object, run: Run, ttl: readonly TtlPolicy[] = []): Promise<void> {
  const bed = await testBed(manualClock(), { indexes: { mode: 'off', definitions }, ttl });
  try {
    await run(bed);
  } finally {
    await bed.close();
  }
}

async function refused(write: Promise<unknown>, message: string): Promise<void> {
  await assert.rejects(write, (error: { code?: number; details?: string }) => {
    assert.deepEqual([error.code, error.details], [status.INVALID_ARGUMENT, message]);
    return true;
  });
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
/** Two entries each. */
const fields = (count: number): Record<string, number> =>
  Object.fromEntries(numbers(count).map((i) => [`f${i}`, i]));
const up = (fieldPath: string) => ({ fieldPath, order: 'ASCENDING' });
const exempt = (collectionGroup: string, fieldPath: string) => ({ collectionGroup, fieldPath, indexes: [] });
const TOO_MANY = 'too many index entries for entity /c/a';

describe('a document of more than 40,000 index entries', () => {
  test('is refused, one of 40,000 is not, and the refused one changes nothing', () =>
    withIndexes({}, async ({ db }) => {
      const doc = db.doc('c/a');
      await doc.set(fields(20_000));
      await refused(doc.set(fields(20_001)), TOO_MANY);
      await refused(doc.update({ another: true }), TOO_MANY);
      await refused(doc.update({ n: FieldValue.increment(1) }), TOO_MANY);
      assert.equal(Object.keys((await doc.get()).data() ?? {}).length, 20_000);
      await doc.update({ f0: FieldValue.delete(), another: true });
      await doc.delete();
    }));

  test('is refused for the elements of an array, equal ones counted once', () =>
    withIndexes({}, async ({ db }) => {
      const doc = db.doc('c/a');
      await doc.set({ list: numbers(39_998) });
      await refused(doc.set({ list: numbers(39_999) }), TOO_MANY);
      await doc.set({ list: Array.from({ length: 50_000 }, (_, i) => i % 10) });
    }));

  test('is refused for the fields in a map, and the whole commit with it', () =>
    withIndexes({}, async ({ db }) => {
      const batch = db.batch().set(db.doc('c/b'), { n: 1 });
      await refused(batch.set(db.doc('c/a'), { m: fields(20_000) }).commit(), TOO_MANY);
      assert.equal((await db.doc('c/b').get()).exists, false);
      await db.doc('c/a').set({ m: fields(19_999) });
    }));

  test('is refused in a transaction and by a bulk writer', () =>
    withIndexes({}, async ({ db }) => {
      const inTransaction = db.runTransaction(async (transaction) => {
        transaction.set(db.doc('c/a'), fields(20_001));
      });
      await refused(inTransaction, TOO_MANY);
      const writer = db.bulkWriter();
      const outcomes = Promise.allSettled([
        writer.set(db.doc('c/a'), fields(20_001)),
        writer.set(db.doc('c/b'), { n: 1 }),
      ]);
      await writer.close();
      assert.deepEqual(
        (await outcomes).map((each) => each.status),
        ['rejected', 'fulfilled'],
      );
    }));

  test('goes in where its fields are exempt', () => {
    const fieldOverrides = [exempt('c', 'list'), exempt('c', 'm'), exempt('all', '*')];
    const list = { list: numbers(41_000) };
    const run: Run = async ({ db }) => {
      await db.doc('c/a').set(list);
      await db.doc('c/a').set({ m: fields(20_000) });
      await db.doc('all/a').set(list);
      await refused(db.doc('other/a').set(list), 'too many index entries for entity /other/a');
    };
    return withIndexes({ fieldOverrides }, run, [{ collectionGroup: 'c', field: 'expiresAt' }]);
  });

  test('is refused for the entries of the composite indexes that are defined', async () => {
    const tagged = { collectionGroup: 'c', queryScope: 'COLLECTION' };
    const indexes = ['a', 'b'].map((name) => ({
      ...tagged,
      fields: [up(name), { fieldPath: 'list', arrayConfig: 'CONTAINS' }],
    }));
    const large = { a: 1, b: 2, list: numbers(13_332) };
    await withIndexes({ indexes }, async ({ db }) => {
      // 6 + 3 × 13,331 = 39,999.
      await db.doc('c/a').set({ ...large, list: numbers(13_331) });
      await refused(db.doc('c/a').set(large), TOO_MANY);
    });
    await withIndexes({}, async ({ db }) => void (await db.doc('c/a').set(large)));
  });
});

describe('an index entry of more than 7.5 KiB', () => {
  const indexes = [
    {
      collectionGroup: 'c',
      queryScope: 'COLLECTION',
      fields: ['a', 'b', 'd', 'e', 'f', 'g'].map((name) => up(name)),
    },
  ];
  const long = 'x'.repeat(2_000);
  const five = { a: long, b: long, d: long, e: long, f: long };

  test('is refused: six long values in one composite index, of 7,680 bytes at most', () =>
    withIndexes({ indexes }, async ({ db }) => {
      // The name c/a has 20 bytes, the entry 32 more.
      await db.doc('c/a').set({ ...five, g: 'x'.repeat(127) });
      await refused(
        db.doc('c/a').set({ ...five, g: 'x'.repeat(128) }),
        'Index entry is too large. (a, b, d, e, f, g of /c/a: 7681 bytes, at most 7680)',
      );
      await db.doc('c/a').set(five);
      await db.doc('other/a').set({ ...five, g: long });
    }));

  test('is refused with a message that fits, however many fields the index has', () => {
    const names = numbers(100).map((i) => `${'f'.repeat(1_000)}${i}`);
    const wide = [{ ...indexes[0], fields: names.map((name) => up(name)) }];
    return withIndexes({ indexes: wide }, async ({ db }) => {
      const doc = Object.fromEntries(names.map((name) => [name, 'x'.repeat(100)]));
      await refused(
        db.doc('c/a').set(doc),
        `Index entry is too large. (${'f'.repeat(200)}… of /c/a: 10152 bytes, at most 7680)`,
      );
    });
  });

  test('is refused for a long name as well', () =>
    withIndexes({ fieldOverrides: [exempt('l', 'exempt')] }, async ({ db }) => {
      const id = 'x'.repeat(1_400);
      const path = `c/${id}/d/${id}/e/${id}/l/a`;
      // Its name has 4,229 bytes, that of its parent 4,225.
      await refused(
        db.doc(path).set({ f: 1 }),
        `Index entry is too large. (f of /${path}: 8496 bytes, at most 7680)`,
      );
      await db.doc(path).set({ exempt: 1 });
      await db.doc(path).set({});
    }));

  test('is not what a long string, list or map by itself has', () =>
    withIndexes({}, async ({ db }) => {
      const huge = 'x'.repeat(300_000);
      await db.doc('c/a').set({ s: huge, list: [huge], m: { s: huge } });
    }));
});

test('index entries of more than 8 MiB in sum are refused, of one field less they are not', () =>
  withIndexes({ fieldOverrides: [exempt('exempt', '*')] }, async ({ db }) => {
    const id = 'x'.repeat(1_400);
    // The name has 1,419 bytes; an entry of the number f1000 1,419 + 6 + 8 + 32.
    const some = (count: number) => Object.fromEntries(numbers(count).map((i) => [`f${i + 1_000}`, i]));
    const most = Math.floor(8_388_608 / (2 * 1_465));
    await db.doc(`c/${id}`).set(some(most));
    await refused(
      db.doc(`c/${id}`).set(some(most + 1)),
      `Transaction too big. Decrease transaction size. (the index entries of /c/${id}: ${(most + 1) * 2 * 1_465} bytes, at most 8388608)`,
    );
    await db.doc(`exempt/${id}`).set(some(most + 1));
  }));
