/** Random requests to the lock table, beside a plain one that remembers everything and looks at all of it each time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { manualClock } from '../manual-clock.ts';
import type { Owner } from './lock-types.ts';
import { lockTable } from './locks.ts';

type Asked = { readonly owner: number; readonly documents: readonly string[]; readonly isChange: boolean };

/** Which owner shares what, and which requests wait, in arrival order. */
function plain() {
  const shares = new Map<number, Set<string>>();
  const waiting: Asked[] = [];
  const sharersOf = (asked: Asked): readonly number[] =>
    [...shares].flatMap(([owner, held]) =>
      owner !== asked.owner && asked.documents.some((document) => held.has(document)) ? [owner] : [],
    );
  /** Those that a request that waits waits for: sharers of what it would change, and earlier ones it cannot share with. */
  const before = (asked: Asked): readonly Asked[] =>
    waiting
      .slice(0, waiting.indexOf(asked))
      .filter(
        (other) =>
          other.owner !== asked.owner &&
          (other.isChange || asked.isChange) &&
          other.documents.some((document) => asked.documents.includes(document)),
      );
  const waitsFor = (owner: number): ReadonlySet<number> => {
    const all = new Set<number>();
    const visit = (each: number): void => {
      for (const asked of waiting.filter((one) => one.owner === each)) {
        for (const next of asked.isChange ? sharersOf(asked) : []) {
          if (all.has(next)) continue;
          all.add(next);
          visit(next);
        }
      }
    };
    visit(owner);
    return all;
  };
  return { shares, waiting, sharersOf, before, waitsFor };
}

test('grants nothing that another owner has, leaves no request waiting without need, and no deadlock', async () => {
  const documents = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1, maxLength: 3 });
  const step = fc.oneof(
    fc.record({ kind: fc.constant('look' as const), owner: fc.nat(7), documents }),
    fc.record({ kind: fc.constant('change' as const), owner: fc.nat(7), documents }),
    fc.record({ kind: fc.constant('release' as const), owner: fc.nat(7) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const clock = manualClock();
      const locks = lockTable<string, string>(clock, { overlap: () => false, alters: () => false });
      const { shares, waiting, sharersOf, before, waitsFor } = plain();
      const owners = new Map<number, { owner: Owner; id: number }>();
      let ids = 0;
      const gone = (id: number): void => {
        shares.delete(id);
        for (const asked of waiting.filter((one) => one.owner === id))
          waiting.splice(waiting.indexOf(asked), 1);
        for (const [slot, each] of owners) if (each.id === id) owners.delete(slot);
      };
      const at = (slot: number): { owner: Owner; id: number } => {
        const known = owners.get(slot);
        if (known !== undefined) return known;
        const id = (ids += 1);
        const made = { id, owner: locks.owner(id, () => gone(id)) };
        owners.set(slot, made);
        return made;
      };
      for (const each of steps) {
        if (each.kind === 'release') {
          const released = owners.get(each.owner);
          if (released === undefined) continue;
          gone(released.id);
          locks.release(released.owner);
        } else {
          const { owner, id } = at(each.owner);
          // As a client does: one request at a time, and nothing after a change.
          if (waiting.some((asked) => asked.owner === id)) continue;
          const asked: Asked = { owner: id, documents: each.documents, isChange: each.kind === 'change' };
          waiting.push(asked);
          const attempt = {
            look: () => ({ documents: asked.documents }),
            isLast: asked.isChange,
            run() {
              waiting.splice(waiting.indexOf(asked), 1);
              if (!asked.isChange) {
                shares.set(id, new Set([...(shares.get(id) ?? []), ...asked.documents]));
                return;
              }
              assert.deepEqual(sharersOf(asked), [], 'it changed what another has read');
              gone(id);
            },
          };
          locks.request(owner, attempt).catch(() => undefined);
        }
        for (const asked of waiting) {
          const holders = asked.isChange ? sharersOf(asked) : [];
          assert.ok(holders.length + before(asked).length > 0, 'it waits for no owner');
          assert.ok(!waitsFor(asked.owner).has(asked.owner), 'it waits for itself');
        }
        assert.equal(locks.waiting(), waiting.length);
        assert.equal(
          locks.held(),
          [...shares.values()].reduce((sum, held) => sum + held.size, 0),
        );
      }
      for (const { owner, id } of owners.values()) {
        gone(id);
        locks.release(owner);
      }
      await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual([locks.held(), locks.waiting(), clock.timers()], [0, 0, 0]);
    }),
    { numRuns: 400 },
  );
});
