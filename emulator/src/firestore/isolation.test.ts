import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { StatusError } from '../grpc-server.ts';
import { type Database, database } from './database.ts';
import { parseDocument } from './names.ts';
import { parseQuery, type WireQuery } from './query.ts';
import { rangeOf, runQuery } from './query-run.ts';
import { manualClock } from '../manual-clock.ts';
import type { WireWrite } from './writes.ts';
import type { Reading, Selector } from './reading.ts';

/**
 * Transactions, plain writes and snapshots run at once over five documents, and give way to each other at random
 * points. Whatever the schedule, each must have seen exactly what it would have seen if all had run one after the
 * other in the order of their commits; and none may be left waiting, though the clock is stopped.
 */
const root = 'projects/p/databases/d';
const IDS = ['d0', 'd1', 'd2', 'd3', 'd4'];
const ABORTED = 10;

type State = Readonly<Record<string, number>>;
type Step =
  | Readonly<{ kind: 'get'; ids: readonly string[] }>
  | Readonly<{ kind: 'query'; group: number; offset: number; limit: number }>
  | Readonly<{ kind: 'pause' }>;
type Change = Readonly<{ id: string; value: number | undefined }>;
type Script = Readonly<{
  mode: 'readWrite' | 'readOnly' | 'plain';
  steps: readonly Step[];
  writes: readonly Change[];
}>;
type Seen = Readonly<{ step: Step; result: State }>;
type Event = Readonly<{ time: number; isRead: boolean; seen: readonly Seen[]; writes: readonly Change[] }>;

const id = fc.constantFrom(...IDS);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('get' as const), ids: fc.uniqueArray(id, { minLength: 1, maxLength: 2 }) }),
  fc.record({
    kind: fc.constant('query' as const),
    group: fc.nat(1),
    offset: fc.nat(1),
    limit: fc.integer({ min: 1, max: 3 }),
  }),
  fc.constant({ kind: 'pause' as const }),
);
const change: fc.Arbitrary<Change> = fc.record({ id, value: fc.option(fc.nat(9), { nil: undefined }) });
const script: fc.Arbitrary<Script> = fc.record({
  mode: fc.constantFrom('readWrite', 'readWrite', 'readWrite', 'readOnly', 'plain'),
  steps: fc.array(step, { maxLength: 4 }),
  writes: fc.uniqueArray(change, { maxLength: 2, selector: (each) => each.id }),
});

const toWrite = ({ id, value }: Change): WireWrite => {
  const name = `${root}/documents/c/${id}`;
  const common = { updateMask: null, updateTransforms: [], currentDocument: null };
  if (value === undefined) return { ...common, operation: 'delete', delete: name };
  const number = (n: number) => ({ valueType: 'integerValue' as const, integerValue: String(n) });
  return {
    ...common,
    operation: 'update',
    update: { name, fields: { n: number(value), group: number(value % 2) } },
  };
};

/** The first documents of a group by number and name: every query is a range, an order and a limit. */
const wireQuery = (group: number, offset: number, limit: number): WireQuery => ({
  select: null,
  from: [{ collectionId: 'c', allDescendants: false }],
  where: {
    filterType: 'fieldFilter',
    fieldFilter: {
      field: { fieldPath: 'group' },
      op: 'EQUAL',
      value: { valueType: 'integerValue', integerValue: String(group) },
    },
  },
  orderBy: [{ field: { fieldPath: 'n' }, direction: 'ASCENDING' }],
  startAt: null,
  endAt: null,
  offset,
  limit: { value: limit },
});

function readingOf(step: Exclude<Step, { kind: 'pause' }>): Reading<State> {
  const stateOf = (docs: readonly { name: { full: string }; fields: Record<string, unknown> }[]): State =>
    Object.fromEntries(
      docs.map(({ name, fields }) => [
        name.full.slice(-2),
        Number((fields['n'] as { integerValue: string }).integerValue),
      ]),
    );
  if (step.kind === 'query') {
    const query = parseQuery(wireQuery(step.group, step.offset, step.limit), `${root}/documents`, root);
    return {
      range: rangeOf(query),
      look(view) {
        const { docs, range } = runQuery(view, query);
        return { documents: docs.map(({ name }) => name.full), range, result: stateOf(docs) };
      },
    };
  }
  const names = step.ids.map((each) => parseDocument(`${root}/documents/c/${each}`, root));
  return {
    look: (view) => ({
      documents: names.map(({ full }) => full),
      result: stateOf(names.flatMap((name) => view.get(name) ?? [])),
    }),
  };
}

/** What the step sees of a state, by the plainest means. */
function expected(state: State, step: Step): State {
  if (step.kind === 'get')
    return Object.fromEntries(Object.entries(state).filter(([key]) => step.ids.includes(key)));
  if (step.kind === 'pause') return {};
  const rows = Object.entries(state).filter(([, n]) => n % 2 === step.group);
  rows.sort(([a, n], [b, m]) => n - m || (a < b ? -1 : 1));
  return Object.fromEntries(rows.slice(step.offset, step.offset + step.limit));
}

async function run(db: Database, { mode, steps, writes }: Script): Promise<Event | undefined> {
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const seen: Seen[] = [];
  let transaction: Buffer | undefined;
  let readTime = 0;
  try {
    if (mode !== 'plain') {
      transaction = db.begin(mode === 'readOnly' ? { mode } : { mode, retry: undefined });
      const selector: Selector = { kind: 'transaction', id: transaction };
      for (const each of steps) {
        await turn();
        if (each.kind === 'pause') continue;
        const read = await db.read(selector, readingOf(each));
        readTime = read.readTime;
        seen.push({ step: each, result: read.result });
      }
      await turn();
    }
    const isRead = mode === 'readOnly';
    const { commitTime } = await db.commit(isRead ? [] : writes.map(toWrite), transaction);
    return { time: isRead ? readTime : commitTime, isRead, seen, writes: isRead ? [] : writes };
  } catch (error) {
    if (error instanceof StatusError && error.code === ABORTED) return undefined;
    throw error;
  }
}

function checkSerial(events: readonly Event[]): State {
  let state: State = {};
  // A snapshot shows the commits up to its own time.
  for (const event of [...events].sort((a, b) => a.time - b.time || Number(a.isRead) - Number(b.isRead))) {
    for (const { step, result } of event.seen) assert.deepEqual(result, expected(state, step));
    const next = new Map(Object.entries(state));
    for (const { id, value } of event.writes) {
      if (value === undefined) next.delete(id);
      else next.set(id, value);
    }
    state = Object.fromEntries(next);
  }
  return state;
}

describe('isolation', () => {
  test('makes any mix of transactions equal to one after the other, and leaves none waiting', async () => {
    let aborted = 0;
    let committed = 0;
    const property = fc.asyncProperty(fc.array(script, { minLength: 2, maxLength: 8 }), async (scripts) => {
      const db = database(root, manualClock());
      const outcomes = await Promise.all(scripts.map((each) => run(db, each)));
      const events = outcomes.filter((event) => event !== undefined);
      aborted += outcomes.length - events.length;
      committed += events.length;
      const state = checkSerial(events);
      const all = await db.read({ kind: 'strong' }, readingOf({ kind: 'get', ids: IDS }));
      assert.deepEqual(all.result, state);
      const { openTransactions: _, documents, ...rest } = db.stats();
      assert.equal(documents, Object.keys(state).length);
      assert.deepEqual(rest, { heldLocks: 0, waitingRequests: 0, replacedDocuments: 0 });
    });
    await fc.assert(property, { numRuns: 400, timeout: 60_000 });
    assert.ok(aborted > 0, 'no schedule had a deadlock: the scripts are too tame');
    assert.ok(committed > 10 * aborted, `${aborted} of ${committed + aborted} aborted`);
  });
});
