import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { until } from '../until.ts';
import { type Answer, type TestBed, testBed } from './testing.ts';
import { brief, type RawListen, rawListen } from './testing-listen.ts';

const INVALID_ARGUMENT = 3;
const database = 'projects/p/databases/d';
const root = `${database}/documents`;
const name = (path: string): string => `${root}/${path}`;
const documents = (targetId: number, ...paths: string[]) => ({
  addTarget: { targetId, documents: { documents: paths.map(name) } },
});
const query = (targetId: number, more: object = {}, target: object = {}) => ({
  addTarget: {
    targetId,
    query: { parent: root, structuredQuery: { from: [{ collectionId: 'rows' }], ...more } },
    ...target,
  },
});

describe('the Listen stream', () => {
  let bed: TestBed;
  let stream: RawListen;
  before(async () => {
    bed = await testBed();
  });
  after(() => bed.close());
  beforeEach(() => {
    bed.server.clear();
    stream = rawListen(bed.server.address, database);
  });
  afterEach(async () => {
    stream.close();
    await until(() => bed.server.stats().listeners === 0);
  });

  const commit = (...writes: object[]) => bed.call('Commit', { database, writes });
  const set = (path: string, n: number) => ({
    update: { name: name(path), fields: { n: { integerValue: n } } },
  });
  const remove = (path: string) => ({ delete: name(path) });
  const snapshot = async (): Promise<string[]> => (await stream.snapshot()).map(brief);
  const readTimes = (): number[] =>
    stream.answers.flatMap((answer) => {
      const time = (answer['targetChange'] as Answer | undefined)?.['readTime'] as
        | { seconds: string; nanos: number }
        | null
        | undefined;
      return time ? [Number(time.seconds) * 1e6 + time.nanos / 1e3] : [];
    });

  test('updates each target of a stream by itself, and all of them at one read time', async () => {
    await commit(set('rows/a', 1));
    stream.send(documents(7, 'rows/a', 'rows/none', 'rows/a'));
    assert.deepEqual(await snapshot(), [
      'ADD 7',
      'change 7 rows/a',
      'delete 7 rows/none',
      'CURRENT 7',
      'NO_CHANGE',
    ]);
    stream.send(query(8));
    assert.deepEqual(await snapshot(), ['ADD 8', 'change 8 rows/a', 'CURRENT 8', 'NO_CHANGE']);
    await commit(set('rows/a', 2), set('rows/b', 3));
    assert.deepEqual(await snapshot(), [
      'change 7 rows/a',
      'change 8 rows/a',
      'change 8 rows/b',
      'NO_CHANGE',
    ]);
    await commit(remove('rows/a'));
    assert.deepEqual(await snapshot(), ['delete 7 rows/a', 'delete 8 rows/a', 'NO_CHANGE']);
    const times = readTimes();
    assert.deepEqual(
      times,
      [...times].sort((a, b) => a - b),
    );
    const last = stream.answers.at(-1)?.['targetChange'] as Answer;
    assert.ok((last['resumeToken'] as Buffer).length > 0);
  });

  test('distinguishes a document that has left the target from one that is gone', async () => {
    await commit(set('rows/a', 1), set('rows/b', 2));
    stream.send(query(1, { orderBy: [{ field: { fieldPath: 'n' } }], limit: { value: 1 } }));
    await stream.snapshot();
    await commit(set('rows/c', 0));
    assert.deepEqual(await snapshot(), ['remove 1 rows/a', 'change 1 rows/c', 'NO_CHANGE']);
    await commit(remove('rows/c'));
    assert.deepEqual(await snapshot(), ['delete 1 rows/c', 'change 1 rows/a', 'NO_CHANGE']);
  });

  test('a removed target gets no more updates, and its ID is free', async () => {
    stream.send(query(1));
    stream.send(documents(2, 'rows/a'));
    await stream.snapshot();
    await stream.snapshot();
    stream.send({ removeTarget: 1 });
    await stream.until('REMOVE 1');
    await commit(set('rows/a', 1));
    assert.deepEqual(await snapshot(), ['REMOVE 1', 'change 2 rows/a', 'NO_CHANGE']);
    stream.send(documents(1, 'rows/b'));
    assert.deepEqual(await snapshot(), ['ADD 1', 'delete 1 rows/b', 'CURRENT 1', 'NO_CHANGE']);
    assert.equal(bed.server.stats().listeners, 2);
  });

  test('a target that asks once is removed when it is current', async () => {
    stream.send(query(1, {}, { once: true }));
    assert.deepEqual(await snapshot(), ['ADD 1', 'CURRENT 1', 'NO_CHANGE']);
    stream.send(query(2));
    assert.deepEqual(await snapshot(), ['REMOVE 1', 'ADD 2', 'CURRENT 2', 'NO_CHANGE']);
  });

  test('a resumed target is reset and sent as a whole', async () => {
    await commit(set('rows/a', 1));
    stream.send(query(1));
    const first = (await stream.snapshot()).at(-1)?.['targetChange'] as Answer;
    stream.send({ removeTarget: 1 });
    const whole = ['ADD 1', 'RESET 1', 'change 1 rows/a', 'CURRENT 1', 'NO_CHANGE'];
    stream.send(query(1, {}, { resumeToken: first['resumeToken'] }));
    assert.deepEqual(await snapshot(), ['REMOVE 1', ...whole]);
    stream.send({ removeTarget: 1 });
    stream.send(query(1, {}, { readTime: first['readTime'] }));
    assert.deepEqual(await snapshot(), ['REMOVE 1', ...whole]);
  });

  test('an ID is given to a target without one, and then to all', async () => {
    stream.send(query(0));
    assert.equal((await snapshot())[0], 'ADD 1');
    stream.send(query(0));
    assert.equal((await snapshot())[0], 'ADD 2');
    stream.send(query(9));
    stream.send(query(0));
    assert.deepEqual((await snapshot()).slice(0, 2), ['REMOVE 9', 'ADD 3']);
  });

  test('a target that is not legal is removed with the cause, and the others go on', async () => {
    stream.send(query(1));
    await stream.snapshot();
    stream.send(query(2, { limit: { value: -1 } }));
    stream.send(documents(3));
    stream.send({ addTarget: { targetId: 4 } });
    stream.send(documents(5, 'rows'));
    await stream.until('REMOVE 5');
    await commit(set('rows/a', 1));
    const answers = await stream.snapshot();
    assert.deepEqual(answers.map(brief), [
      'REMOVE 2',
      'REMOVE 3',
      'REMOVE 4',
      'REMOVE 5',
      'change 1 rows/a',
      'NO_CHANGE',
    ]);
    const [first] = answers.map((answer) => answer['targetChange'] as Answer & { cause: Answer });
    const cause = first?.cause ?? {};
    assert.equal(cause['code'], INVALID_ARGUMENT);
    assert.match(String(cause['message']), /limit is -1/);
  });

  for (const [what, request] of Object.entries({
    'a target ID twice': query(1),
    'a negative target ID': query(-1),
    'another database': { ...query(2), database: 'projects/p/databases/other' },
    'neither a target nor a removal': {},
  })) {
    test(`ends with INVALID_ARGUMENT for ${what}`, async () => {
      stream.send(query(1));
      await stream.snapshot();
      stream.send(request);
      assert.equal((await stream.ended)?.code, INVALID_ARGUMENT);
      assert.equal(bed.server.stats().listeners, 0);
    });
  }

  test('ends when its client has nothing more to say', async () => {
    stream.send(query(1));
    await stream.snapshot();
    stream.end();
    assert.equal(await stream.ended, undefined);
    assert.equal(bed.server.stats().listeners, 0);
  });

  test('ends with its server', async () => {
    const other = await testBed();
    const far = rawListen(other.server.address, database);
    try {
      far.send(query(1));
      await far.snapshot();
      assert.equal(other.server.stats().listeners, 1);
      await other.server.close();
      assert.notEqual(await far.ended, undefined);
      assert.equal(other.server.stats().listeners, 0);
    } finally {
      far.close();
      await other.close();
    }
  });

  test('a client that is slow to read gets the latest when it reads on', async () => {
    await commit(set('rows/a', 0));
    stream.send(query(1));
    await stream.snapshot();
    stream.pause();
    const filler = { stringValue: 'x'.repeat(200_000) };
    for (let n = 1; n <= 40; n++) {
      await commit({ update: { name: name('rows/a'), fields: { n: { integerValue: n }, filler } } });
    }
    stream.resume();
    const isLast = (answers: readonly Answer[]): boolean =>
      answers.some((answer) =>
        JSON.stringify(answer['documentChange'] ?? {}).includes('"integerValue":"40"'),
      );
    for (let i = 0; i < 40 && !isLast(stream.answers); i++) await stream.snapshot();
    assert.ok(isLast(stream.answers));
    const sent = stream.answers.filter((answer) => brief(answer) === 'change 1 rows/a').length;
    assert.ok(sent < 40, `it got ${sent} versions of 41`);
  });
});
