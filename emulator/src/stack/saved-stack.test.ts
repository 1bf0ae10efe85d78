import assert from 'node:assert/strict';
import { test } from 'node:test';
import { movableClock } from '../movable-clock.ts';
import { type Holder, loadAll, parseSaved, resetAll, saveAll } from './saved-stack.ts';

/** Holds any object but one that is `bad`. */
function holder(name: string): Holder & { held: object; changes: number } {
  const own = {
    held: { is: `${name} at first` } as object,
    changes: 0,
    save: () => own.held,
    prepare(saved: unknown) {
      if (typeof saved === 'object' && saved !== null && 'bad' in saved)
        throw new Error('bad is true; accepted: false');
      return () => {
        own.changes += 1;
        own.held = saved as object;
      };
    },
  };
  return own;
}

const clockOf = () => movableClock(async () => undefined);

test('loads what was saved, at the saved time when that is later, and no service keeps what it had', async () => {
  const [pubsub, tasks, clock] = [holder('pubsub'), holder('tasks'), clockOf()];
  const holders = { pubsub, tasks };
  const empty = saveAll(holders, clock.now());
  const now = clock.now() + 86_400_000;
  pubsub.held = tasks.held = { is: 'changed' };
  const saved = parseSaved({ version: 1, now, pubsub: { is: 'loaded' } }, holders);
  await loadAll(holders, clock, saved, empty);
  assert.deepEqual([pubsub.held, tasks.held], [{ is: 'loaded' }, { is: 'tasks at first' }]);
  assert.ok(clock.now() >= now);
  await resetAll(holders, clock, empty);
  assert.deepEqual([pubsub.held, tasks.held], [empty.pubsub, empty.tasks]);
  assert.ok(clock.now() >= now, 'never back');
  clock.close();
});

test('when one service refuses its part, nothing has changed', async () => {
  const [pubsub, firestore, clock] = [holder('pubsub'), holder('firestore'), clockOf()];
  const holders = { pubsub, firestore };
  const before = saveAll(holders, 0);
  const saved = {
    version: 1,
    now: clock.now() + 86_400_000,
    pubsub: { is: 'other' },
    firestore: { bad: true },
  } as const;
  await assert.rejects(
    loadAll(holders, clock, saved, before),
    /^Error: firestore: bad is true; accepted: false$/,
  );
  assert.deepEqual(saveAll(holders, 0), before);
  assert.equal(pubsub.changes, 0, 'not even for a moment');
  assert.ok(clock.now() < saved.now);
  clock.close();
});

const REFUSED: readonly (readonly [saved: unknown, says: RegExp])[] = [
  [undefined, /^the saved state is undefined; accepted: an object/],
  [[], /^the saved state is \[\]; accepted: an object/],
  [{ version: 2, now: 0 }, /^version is 2; accepted: 1$/],
  [{ version: 1 }, /^now is undefined; accepted: milliseconds/],
  [{ version: 1, now: '2030' }, /^now is "2030"; accepted: milliseconds/],
  [{ version: 1, now: 1e300 }, /^now is 1e\+300; accepted: milliseconds/],
  [
    { version: 1, now: 8.64e15 },
    /^now is 8640000000000000; accepted: milliseconds .*, before the year 9999$/,
  ],
  [{ version: 1, now: 0, functions: { dedup: 5 } }, /^functions\.dedup is 5; accepted: a text$/],
  [
    { version: 1, now: 0, bogus: {} },
    /^bogus is not known; accepted: version, now, pubsub, firestore, tasks/,
  ],
  [{ version: 1, now: 0, pubsub: 5 }, /^pubsub is 5; accepted: an object$/],
  [{ version: 1, now: 0, tasks: {} }, /^tasks is state of Cloud Tasks, which this stack does not run$/],
];

for (const [saved, says] of REFUSED) {
  test(`refuses ${JSON.stringify(saved)} with one line`, () => {
    assert.throws(() => parseSaved(saved, { pubsub: holder('pubsub') }), { message: says });
  });
}
