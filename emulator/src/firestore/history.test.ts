import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { cpuMillisecondsDuring } from '../spent.ts';
import type { Change, Doc } from './doc.ts';
import { documents } from './documents.ts';
import { type History, history } from './history.ts';
import { parseDocument } from './names.ts';
import { arrayOf, fieldsOf, type Value } from './values.ts';

const DATABASE = 'projects/p/databases/d';
const HOUR = 3_600_000_000;
const START = 1_000 * HOUR;

const nameOf = (path: string) => parseDocument(`${DATABASE}/documents/${path}`, DATABASE);
const int = (n: number): Value => ({ valueType: 'integerValue', integerValue: String(n) });
const docOf = (path: string, value: Value, time: number): Doc => ({
  name: nameOf(path),
  fields: fieldsOf([['v', value]]),
  createTime: time,
  updateTime: time,
});

/** A store whose commits are noted. */
function store(past: History) {
  const kept = documents();
  return {
    kept,
    commit: (time: number, path: string, value: Value | undefined): void => {
      const name = nameOf(path);
      const after = value === undefined ? undefined : docOf(path, value, time);
      const changes: Change[] = [{ name, before: kept.get(name), after }];
      kept.apply(changes);
      past.record(changes, time);
    },
    /** What was there at the time: `c/a 1, c/b 2`. */
    at: (time: number, now = time): string => {
      const view = kept.before(past.since(time, now));
      const docs = [...view.collections()].flatMap((path) => [...view.collection(path)]);
      const shown = docs.map(({ name, fields }) => {
        const { v } = fields;
        return `${name.segments.join('/')} ${v?.valueType === 'integerValue' ? v.integerValue : '?'}`;
      });
      return shown.sort().join(', ');
    },
  };
}

describe('history', () => {
  test('shows each state of the past hour, created, changed and deleted documents alike', () => {
    const { commit, at } = store(history());
    commit(START + 10, 'c/a', int(1));
    commit(START + 20, 'c/a', int(2));
    commit(START + 20, 'c/b', int(5));
    commit(START + 30, 'c/a', undefined);
    commit(START + 40, 'c/a', int(3));
    const now = START + 100;
    const seen = [9, 10, 19, 20, 30, 39, 40].map((each) => at(START + each, now));
    assert.deepEqual(seen, ['', 'c/a 1', 'c/a 1', 'c/a 2, c/b 5', 'c/b 5', 'c/b 5', 'c/a 3, c/b 5']);
  });

  test('refuses what is older than an hour, and the future', () => {
    const past = history();
    const { commit, at } = store(past);
    commit(START, 'c/a', int(1));
    assert.equal(at(START, START + HOUR), 'c/a 1');
    assert.throws(() => past.since(START, START + HOUR + 1), {
      code: status.FAILED_PRECONDITION,
      message: /too old/,
    });
    assert.throws(() => past.since(START + 2, START + 1), { code: status.INVALID_ARGUMENT });
  });

  test('a snapshot of the past shows it, whatever is committed afterwards', () => {
    const past = history();
    const { commit, kept } = store(past);
    commit(START, 'c/a', int(1));
    commit(START + 10, 'c/a', int(2));
    const snapshot = kept.snapshot(past.since(START, START + 10));
    commit(START + 20, 'c/a', int(3));
    commit(START + 20, 'c/b', int(3));
    assert.equal(snapshot.get(nameOf('c/a'))?.updateTime, START);
    assert.deepEqual(
      [...snapshot.collection('c')].map(({ updateTime }) => updateTime),
      [START],
    );
    snapshot.close();
  });

  test('what was forgotten or does not fit in is refused, not answered wrong', () => {
    const past = history();
    const { commit, at } = store(past);
    commit(START, 'c/a', int(1));
    past.forget(START + 5);
    assert.throws(() => at(START + 4, START + 5), { code: status.UNIMPLEMENTED });
    assert.equal(at(START + 5), 'c/a 1');
    // Of 64 MB that are replaced, not all is kept.
    const large = arrayOf([{ valueType: 'stringValue', stringValue: 'x'.repeat(900_000) }]);
    for (let i = 0; i < 70; i++) commit(START + 10 + i, 'c/a', large);
    assert.throws(() => at(START + 10, START + 100), { code: status.UNIMPLEMENTED });
    assert.equal(at(START + 70, START + 100), 'c/a ?');
  });

  test('more changes than are kept are pruned in little time', async () => {
    const past = history();
    const { commit, at } = store(past);
    const took = await cpuMillisecondsDuring(() => {
      for (let i = 1; i <= 60_000; i++) commit(START + i, `c/${i % 100}`, int(i));
    });
    assert.ok(took < 5_000, `${took} ms of CPU time`);
    assert.ok(at(START + 50_000, START + 60_000).includes('c/0 50000'));
    assert.throws(() => at(START + 30_000, START + 60_000), { code: status.UNIMPLEMENTED });
  });
});
