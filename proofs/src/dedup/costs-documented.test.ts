/**
 * The money of docs/costs.md follows from the operations that other tests count and the prices that the page names.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { documentedBytes, documentedPrices, rowOf } from './documented-costs.ts';

const page = readFileSync(new URL('../../../docs/costs.md', import.meta.url), 'utf8');

type Operations = Readonly<{ R?: number; W?: number; D?: number }>;

/** As counted: by costs.test.ts, firestore.test.ts, firestore-inbox.test.ts and order/firestore.test.ts. */
const COUNTED: readonly (readonly [row: string, formula: string, operations: Operations])[] = [
  ['Firestore, once or inbox, fresh', '10 × (2 W + D)', { W: 2, D: 1 }],
  ['Firestore, duplicate', '10 × (W + R)', { W: 1, R: 1 }],
  ['inbox, each message returned', '10 × (W + D)', { W: 1, D: 1 }],
  ['in order, in its turn', '10 × 2 W', { W: 2 }],
];

const dollars = (amount: number): string => `$${amount.toFixed(2)}`;

for (const [row, formula, { R = 0, W = 0, D = 0 }] of COUNTED) {
  test(`a million messages, ${row}: the dollars are those of the operations`, () => {
    const [, said = '', ...amounts] = rowOf(page, row);
    assert.ok(said.includes(formula), `${said}, expected ${formula}`);
    // A million operations are ten times a hundred thousand.
    const expected = documentedPrices(page).map((price) =>
      dollars(10 * (R * price.R + W * price.W + D * price.D)),
    );
    assert.deepEqual(amounts, expected);
  });
}

const gibibytesOf = (store: string): number => (documentedBytes(page, store).kept * 1_000_000) / 2 ** 30;

test('a million messages: what is kept for them in Redis is what the page says', () => {
  const hours = Math.round(gibibytesOf('Redis, once') * 8 * 24);
  assert.equal(rowOf(page, 'Redis, memory')[2], `${hours} × P`);
});

test('a million messages: what is kept for them in Firestore costs what the page says', () => {
  const [, , ...amounts] = rowOf(page, 'Firestore, what is kept');
  const gibibytes = gibibytesOf('Firestore, once');
  assert.deepEqual(
    amounts,
    documentedPrices(page).map(({ S }) => dollars(((gibibytes * 10) / 30) * S)),
  );
});
