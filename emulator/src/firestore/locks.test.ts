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
  const read = (who: ReturnType<typeof owner>, documents: string, range?: string, signal?: AbortSignal) =>
    locks.request(
      who,
      {
        ...(range === undefined ? {} : { range }),
        look: () => ({ documents: documents.split(''), ...(range === undefined ? {} : { range }) }),
        run: () => log.push(`${who.age} read ${documents}${range ?? ''}`),
      },
      signal,
    );
  const write = (who: ReturnType<typeof owner>, documents: string) =>
    locks.request(who, {
      isLast: true,
      look: () => ({ documents: documents.split('') }),
      plan: () => documents.split(''),
      run: () => log.push(`${who.age} wrote ${documents}`),
    });
  return { locks, log, owner, read, write };
}

describe('the lock table', () => {
  test('serves the requests for a document in the order of their arrival', async () => {
    const { log, owner, read, write } = party();
    const owners = [5, 4, 3, 2, 1].map(owner);
    const reads = owners.map((each) => read(each, 'a'));
    assert.deepEqual(log, ['5 read a']);
    const last = write(owner(6), 'a');
    for (const [i, each] of owners.entries()) {
      await reads[i];
      await write(each, 'a');
    }
    await last;
    const turns = [5, 4, 3, 2, 1].flatMap((age) => [`${age} read a`, `${age} wrote a`]);
    assert.deepEqual(log, [...turns, '6 wrote a']);
  });

  test('gives a request all its documents at once, and does not let later ones starve it', async () => {
    const { log, locks, owner, read } = party();
    const [one, two, both, late] = [owner(1), owner(2), owner(3), owner(4)];
    await read(one, 'a');
    await read(two, 'b');
    const waiting = [read(both, 'ab'), read(late, 'a')];
    locks.release(one);
    assert.equal(log.length, 2, 'a is free, but its turn is with the one that needs b too');
    locks.release(two);
    locks.release(both);
    await Promise.all(waiting);
    assert.deepEqual(log.slice(2), ['3 read ab', '4 read a']);
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

  test('aborts the youngest of a cycle of three, at once, and nobody else', async () => {
    const { log, locks, owner, read } = party();
    const [a, b, c] = [owner(1), owner(3), owner(2)];
    await Promise.all([read(a, 'a'), read(b, 'b'), read(c, 'c')]);
    const [ab, bc] = [read(a, 'b'), read(b, 'c')];
    const lost = assert.rejects(bc, { code: 10 });
    const ca = read(c, 'a');
    await lost;
    await ab;
    locks.release(a);
    await ca;
    assert.deepEqual(log.slice(3), ['3 aborted', '1 read b', '2 read a']);
  });

  test('goes around a queue rather than abort someone who holds nothing', async () => {
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
    const { log, locks, owner, read } = party(table(clock));
    const holder = owner(1);
    await read(holder, 'a');
    const cancel = new AbortController();
    const cancelled = assert.rejects(read(owner(2), 'a', undefined, cancel.signal), { code: 1 });
    const behind = read(owner(3), 'a');
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
});
