import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { changeFeed } from './change-feed.ts';
import type { Doc } from './doc.ts';
import { documents } from './documents.ts';
import { parseTarget } from './listen-targets.ts';
import { parseDocument } from './names.ts';
import { parseQuery, type WireQuery } from './query.ts';
import { runQuery } from './query-run.ts';
import { fieldsOf } from './values.ts';

const root = 'projects/p/databases/d';
const parent = `${root}/documents`;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const integer = (n: number) => ({ valueType: 'integerValue' as const, integerValue: String(n) });
const nameOf = (path: string) => parseDocument(`${parent}/${path}`, root);

let version = 0;
const docOf = (path: string, n: number): Doc => ({
  name: nameOf(path),
  fields: fieldsOf([['n', integer(n)]]),
  createTime: 1,
  updateTime: ++version,
});

const query = fc
  .record({
    least: fc.option(fc.nat(5)),
    direction: fc.constantFrom('ASCENDING', 'DESCENDING'),
    offset: fc.nat(2),
    limit: fc.option(fc.nat(4)),
    from: fc.constantFrom(
      { collectionId: 'c', allDescendants: false },
      { collectionId: 'c', allDescendants: true },
      { collectionId: '', allDescendants: true },
      { collectionId: '', allDescendants: false },
    ),
  })
  .map(
    ({ least, direction, offset, limit, from }): WireQuery => ({
      select: null,
      from: [from],
      where:
        least === null
          ? null
          : {
              filterType: 'fieldFilter',
              fieldFilter: { field: { fieldPath: 'n' }, op: 'GREATER_THAN_OR_EQUAL', value: integer(least) },
            },
      orderBy: [{ field: { fieldPath: 'n' }, direction }],
      startAt: null,
      endAt: null,
      offset,
      limit: limit === null ? null : { value: limit },
    }),
  );
const path = fc.constantFrom('c/a', 'c/b', 'c/d', 'c/e', 'c/a/c/f', 'c/a/x/g', 'x/h');
const commit = fc.uniqueArray(fc.record({ path, n: fc.option(fc.nat(9)) }), {
  minLength: 1,
  maxLength: 3,
  selector: (change) => change.path,
});
/** How many commits go by before the listener looks. */
const rounds = fc.array(fc.array(commit, { minLength: 1, maxLength: 3 }), { maxLength: 8 });

describe('a listener', () => {
  test('that applies its updates has the result of its query, however many commits one update covers', () => {
    const property = fc.property(query, rounds, (wire, all) => {
      const store = documents();
      const feed = changeFeed();
      const structuredQuery = wire;
      const target = parseTarget(
        { targetType: 'query', query: { parent, structuredQuery }, targetId: 1, once: false },
        root,
      );
      const watched = feed.watch(target.interest, () => undefined);
      const mirror = new Map<string, Doc>();
      const look = (touched: Parameters<typeof target.refresh>[1]): void => {
        for (const update of target.refresh(store, touched)) {
          if (update.kind === 'changed') {
            assert.notEqual(mirror.get(update.doc.name.full), update.doc, 'no update comes twice');
            mirror.set(update.doc.name.full, update.doc);
          } else {
            assert.equal(
              store.get(nameOf(update.name.slice(parent.length + 1))) === undefined,
              update.kind === 'deleted',
            );
            assert.ok(mirror.delete(update.name), 'nothing leaves that was not there');
          }
        }
        const { docs } = runQuery(store, parseQuery(wire, parent, root));
        assert.deepEqual([...mirror.keys()].sort(), docs.map(({ name }) => name.full).sort());
        for (const doc of docs) assert.equal(mirror.get(doc.name.full), doc);
      };
      look(undefined);
      for (const round of all) {
        for (const changes of round) {
          const applied = changes.map(({ path: at, n }) => {
            const name = nameOf(at);
            return { name, before: store.get(name), after: n === null ? undefined : docOf(at, n) };
          });
          store.apply(applied);
          feed.changed(applied);
          // Also what was handed out and not taken yet adds up.
          if (changes.length === 1) feed.settle();
        }
        feed.settle();
        if (watched.isTouched()) look(watched.take());
        else look(new Map());
      }
      watched.end();
    });
    fc.assert(property, { numRuns: 400 });
  });

  test('is notified after the commit, in turns with others, and once for many commits', async () => {
    const feed = changeFeed();
    const notified: number[] = [];
    const all = Array.from({ length: 100 }, (_, i) =>
      feed.watch({ documents: new Set([nameOf('c/a').full]) }, () => notified.push(i)),
    );
    const doc = docOf('c/a', 1);
    feed.changed([{ name: doc.name, before: undefined, after: doc }]);
    feed.changed([{ name: doc.name, before: doc, after: undefined }]);
    assert.equal(notified.length, 0);
    await turn();
    assert.ok(notified.length > 0 && notified.length < 100, `${notified.length} were notified in one turn`);
    for (let i = 0; i < 10; i++) await turn();
    assert.deepEqual(
      notified,
      Array.from({ length: 100 }, (_, i) => i),
    );
    for (const each of all) {
      assert.equal(each.take()?.get(doc.name.full)?.before, undefined);
      each.end();
    }
    assert.equal(feed.watched(), 0);
  });
});
