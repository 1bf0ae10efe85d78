import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LOCK_WAIT_MS, lockTable } from './locks.ts';
import { manualClock } from '../manual-clock.ts';

/** Ranges are sets of letters here, and a change is one letter. */
const table = (clock = manualClock()) =>
  lockTable<string, string>(clock, {
    overlap: (a, b) => a.split('').some((letter) => b.includes(letter)),
    alters: (letter, range) => range.includes(letter),
  });

function party(locks = table()) {
  const log: string[] = [];
  const owner = (age: number) => locks.owner(age, () => log.push(`${age} aborted`));
  const read = (by: ReturnType<typeof owner>, documents: string, range?: string, signal?: AbortSignal) =>
    locks.request(
      by,
      {
        ...(range === undefined ? {} : { range }),
        look: () => ({ documents: documents.split(''), ...(range === undefined ? {} : { range }) }),
        run: () => log.push(`${by.age} read ${documents}${range ?? ''}`),
      },
      signal,
    );
  const write = (by: ReturnType<typeof owner>, documents: string, signal?: AbortSignal) =>
    locks.request(
      by,
      {
        isLast: true,
        look: () => ({ documents: documents.split('') }),
        plan: () => documents.split(''),
        run: () => log.push(`${by.age} wrote ${documents}`),
      },
      signal,
    );
  return { locks, log, owner, read, write };
}

describe('the lock table', () => {
  test('lets owners that look share a document, and serves changes and later looks in the order of their arrival', async () => {
    const { log, locks, owner, read, write } = party();
    const [one, two] = [owner(1), owner(2)];
    await read(one, 'a');
    await read(two, 'a');
    const waiting = [write(owner(3), 'a'), read(owner(4), 'a'), read(owner(5), 'a'), write(owner(6), 'a')];
    locks.release(one);
    assert.deepEqual(log, ['1 read a', '2 read a']);
    locks.release(two);
    await Promise.all(waiting.slice(0, 3));
    assert.deepEqual(log.slice(2), ['3 wrote a', '4 read a', '5 read a']);
    assert.equal(locks.waiting(), 1);
  });

  test('lets the older of two that have read a document change it, and aborts the younger at once', async () => {
    const { log, owner, read, write } = party();
    const [older, younger] = [owner(1), owner(2)];
    await Promise.all([read(older, 'a'), read(younger, 'a')]);
    const lost = assert.rejects(write(younger, 'a'), { code: 10 });
    await write(older, 'a');
    await lost;
    assert.deepEqual(log, ['1 read a', '2 read a', '2 aborted', '1 wrote a']);
  });

  test('gives an owner that is tried again what it reads to itself, so that it loses to no other a second time', async () => {
    const { log, locks, read, write, owner } = party();
    const again = locks.owner(5, () => log.push('5 aborted'), { predecessor: undefined });
    const [first, later] = [owner(1), owner(6)];
    await read(first, 'a');
    const waiting = [read(again, 'a'), read(later, 'a')];
    assert.deepEqual(log, ['1 read a'], 'it waits for the share, and the later one for it');
    locks.release(first);
    await waiting[0];
    assert.deepEqual(log, ['1 read a', '5 read a']);
    await write(again, 'a');
    await waiting[1];
    assert.deepEqual(log, ['1 read a', '5 read a', '5 wrote a', '6 read a']);
  });

  test('gives a request all its documents at once, and does not let later ones starve it', async () => {
    const { log, locks, owner, read, write } = party();
    const [one, two] = [owner(1), owner(2)];
    await read(one, 'a');
    await read(two, 'b');
    const waiting = [write(owner(3), 'ab'), read(owner(4), 'a')];
    locks.release(one);
    assert.equal(log.length, 2, 'a is free, but its turn is with the one that needs b too');
    locks.release(two);
    await Promise.all(waiting);
    assert.deepEqual(log.slice(2), ['3 wrote ab', '4 read a']);
  });

  test('lets no change into a range that is held, and serves waiting changes before later looks', async () => {
    const { log, locks, owner, read, write } = party();
    const [holder, later] = [owner(1), owner(3)];
    await read(holder, '', 'xyz');
    const pending = [write(owner(2), 'y'), read(later, '', 'y')];
    await write(owner(4), 'q');
    locks.release(holder);
    await Promise.all(pending);
    assert.deepEqual(log, ['1 read xyz', '4 wrote q', '2 wrote y', '3 read y']);
  });

  test('aborts the youngest of a cycle of three, at once, and no other', async () => {
    const { log, owner, read, write } = party();
    const [a, b, c] = [owner(1), owner(3), owner(2)];
    await Promise.all([read(a, 'a'), read(b, 'b'), read(c, 'c')]);
    const [ab, bc] = [write(a, 'b'), write(b, 'c')];
    const lost = assert.rejects(bc, { code: 10 });
    const ca = write(c, 'a');
    await lost;
    await Promise.all([ab, ca]);
    assert.deepEqual(log.slice(3), ['3 aborted', '1 wrote b', '2 wrote a']);
  });

  test('goes around a queue rather than abort an owner that holds nothing', async () => {
    const { log, owner, read, write } = party();
    const holder = owner(1);
    await read(holder, 'a');
    const plain = write(owner(2), 'ab');
    await read(holder, 'b');
    await write(holder, 'ab');
    await plain;
    assert.deepEqual(log, ['1 read a', '1 read b', '1 wrote ab', '2 wrote ab']);
  });

  test('takes a cancelled request out, ends a long wait, and keeps no timer', async () => {
    const clock = manualClock();
    const { log, locks, owner, read, write } = party(table(clock));
    const holder = owner(1);
    await read(holder, 'a');
    const cancel = new AbortController();
    const cancelled = assert.rejects(write(owner(2), 'a', cancel.signal), { code: 1 });
    const behind = write(owner(3), 'a');
    const late = assert.rejects(behind, { code: 10 });
    cancel.abort();
    await cancelled;
    assert.equal(locks.waiting(), 1);
    clock.advance(LOCK_WAIT_MS);
    await late;
    assert.deepEqual(log, ['1 read a', '3 aborted']);
    locks.release(holder);
    assert.deepEqual([locks.held(), locks.waiting(), clock.timers()], [0, 0, 0]);
  });

  test('goes on after an owner has thrown when it had to give way', async () => {
    const locks = table();
    const look = (documents: string) => ({ look: () => ({ documents: documents.split('') }), run: () => 0 });
    const change = (documents: string) => ({ ...look(documents), isLast: true });
    const thrower = locks.owner(9, () => {
      throw new Error('it was not ready');
    });
    const other = locks.owner(1, () => undefined);
    await locks.request(thrower, look('a'));
    await locks.request(other, look('a'));
    void locks.request(thrower, change('a')).catch(() => undefined);
    // Their cycle closes here, and the one that must give way throws.
    await locks.request(other, change('a')).catch(() => undefined);
    locks.release(thrower);
    locks.release(other);
    const late = locks.owner(10, () => undefined);
    const waiter = locks.owner(11, () => undefined);
    await locks.request(late, look('b'));
    const waited = locks.request(waiter, change('b'));
    locks.release(late);
    assert.equal(await waited, 0);
  });

  test('N owners that read and change one document cost no more than the square of their number', async () => {
    let looks = 0;
    const run = async (count: number): Promise<number> => {
      looks = 0;
      const locks = table();
      let [done, ages] = [0, 0];
      const one = async (age: number): Promise<void> => {
        for (;;) {
          const owner = locks.owner(age, () => undefined);
          const look = () => {
            looks += 1;
            return { documents: ['a'] };
          };
          try {
            await locks.request(owner, { look, run: () => 0 });
            await locks.request(owner, { look, isLast: true, plan: () => [], run: () => (done += 1) });
            return;
          } catch {
            await new Promise((resolve) => setImmediate(resolve));
          }
        }
      };
      await Promise.all(Array.from({ length: count }, () => one((ages += 1))));
      assert.deepEqual([done, locks.held(), locks.waiting()], [count, 0, 0]);
      return looks;
    };
    for (const count of [50, 100, 200]) assert.ok((await run(count)) <= count * count, `${count}: ${looks}`);
  });
});
