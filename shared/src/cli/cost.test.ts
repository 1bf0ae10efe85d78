import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type CostQuestion, costs } from './cost.ts';
import { answerCost, costQuestion } from './cost-command.ts';
import { readCommandLine } from './command-line.ts';
import { CommandLineError } from './usage.ts';

/** A million messages in a month. */
const MILLION: CostQuestion = {
  rate: 1e6 / (30 * 86_400),
  bytes: 1_000,
  once: 'off',
  later: 'off',
  order: false,
  duplicates: 0,
  region: 'us-west1',
};
const dollars = (question: Partial<CostQuestion>, what: RegExp): string => {
  const line = costs({ ...MILLION, ...question }).find((one) => what.test(one.what));
  return (line?.dollars ?? Number.NaN).toFixed(2);
};

test('each line is what the documents say of a million messages', () => {
  const page = readFileSync(new URL('../../../docs/costs.md', import.meta.url), 'utf8');
  const documented = (row: string): string =>
    new RegExp(`^\\| ${row} \\|[^|]*\\| \\$([\\d.]+)`, 'm').exec(page)?.[1] ?? 'no row';
  assert.equal(dollars({ once: 'firestore' }, /^once, in F/), documented('Firestore, once or inbox, fresh'));
  assert.equal(
    dollars({ once: 'firestore', duplicates: 1 }, /duplicates/),
    documented('Firestore, duplicate'),
  );
  assert.equal(dollars({ order: true }, /^in order/), documented('in order, in its turn'));
  const large = { later: 'queue', bytes: 900_000 } as const;
  assert.equal(dollars(large, /large/), documented('later, a message of 100 to 900 KB'));
  assert.equal(dollars({ ...large, bytes: 10_000_000 }, /large/), documented('later, a message of 10 MB'));
  assert.equal(dollars({ later: 'queue' }, /^later, tasks/), '0.80');
  assert.equal(dollars({}, /^Pub/), '0.07');
  assert.equal(dollars({ region: 'nam5', order: true }, /^in order/), '3.60');
});

test('the sums of a module are those of its guarantees', () => {
  const page = readFileSync(new URL('../../../docs/costs.md', import.meta.url), 'utf8');
  assert.match(page, /`dedup` \$1\.90, `fifo` \$1\.80,/);
});

test('a delayed message of a pipeline passes twice, and its log lines are counted', () => {
  const once = dollars({ later: 'queue', once: 'firestore' }, /^Pub/);
  assert.equal(once, (2 * Number((((4e9 / 2 ** 40) * 40) / 2).toFixed(4))).toFixed(2));
  assert.equal(dollars({}, /request logs/), '0.56');
});

test('what has no list price is an amount and no sum', () => {
  const { lines, object } = answerCost({ ...MILLION, once: 'redis' });
  assert.match(lines.join('\n'), /once, in Redis: memory for 8 days +0\.0 GiB +at your price/);
  assert.ok(Number(Reflect.get(object, 'total')) < 1);
});

test('a line is read, and refused by the name of what is wrong', () => {
  const line = readCommandLine(
    ['cost', '--rate', '500', '--size', '2.5mb', '--later', 'ledger', '--order'],
    {},
  );
  assert.ok(line !== 'help' && line.area === 'cost');
  assert.deepEqual(line.question, {
    rate: 500,
    bytes: 2_500_000,
    once: 'firestore',
    later: 'ledger',
    order: true,
    duplicates: 0,
    region: 'us-west1',
  });
  for (const [values, says] of [
    [{}, /--rate is not given/],
    [{ rate: '0' }, /--rate is "0"; accepted: a number from/],
    [{ rate: '1', size: '20mb' }, /--size is "20mb"/],
    [{ rate: '1', once: 'always' }, /accepted: off, firestore, redis/],
  ] as const) {
    assert.throws(
      () => costQuestion([], values),
      (error: Error) => error instanceof CommandLineError && says.test(error.message),
    );
  }
});
