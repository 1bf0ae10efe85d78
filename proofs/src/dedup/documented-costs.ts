/**
 * What docs/costs.md says of costs, so that the tests which count can hold the page to it. `page` is its text.
 */
import assert from 'node:assert/strict';

/** The cells of a row, by how its first cell begins. */
export function rowOf(page: string, name: string): readonly string[] {
  const line = page.split('\n').find((candidate) => candidate.startsWith(`| ${name}`));
  assert.ok(line, `docs/costs.md has no row ${name}`);
  const cells = line.split('|').map((cell) => cell.trim());
  return cells.slice(1, -1);
}

export type DocumentedBytes = Readonly<{
  fresh: Readonly<{ sent: number; answered: number }>;
  duplicate: Readonly<{ sent: number; answered: number }>;
  kept: number;
}>;

export function documentedBytes(page: string, name: string): DocumentedBytes {
  const [, , , fresh = '', duplicate = '', kept = ''] = rowOf(page, name);
  const pair = (cell: string) => {
    const [sent = NaN, answered = NaN] = cell.split('/').map(numberOf);
    return { sent, answered };
  };
  return { fresh: pair(fresh), duplicate: pair(duplicate), kept: numberOf(kept) };
}

/** List prices in dollars by region: of 100,000 reads, writes and deletes, and of a GiB for a month. */
export function documentedPrices(
  page: string,
): readonly Readonly<{ R: number; W: number; D: number; S: number }>[] {
  const dollars = String.raw`\$([0-9]+\.[0-9]+)`;
  const three = `${dollars}, ${dollars} and ${dollars}`;
  const [, ...found] = new RegExp(`${three} in us-west1[^;]*?, ${three} in nam5`).exec(page) ?? [];
  const [, ...stored] =
    new RegExp(`S is that of a GiB for a month, ${dollars} and ${dollars}`).exec(page) ?? [];
  assert.ok(found.length === 6 && stored.length === 2, 'the prices are not found');
  const [r1, w1, d1, r2, w2, d2] = found.map(Number) as [number, number, number, number, number, number];
  const [s1, s2] = stored.map(Number) as [number, number];
  return [
    { R: r1, W: w1, D: d1, S: s1 },
    { R: r2, W: w2, D: d2, S: s2 },
  ];
}

function numberOf(cell: string): number {
  return Number(/[0-9][0-9,]*/.exec(cell)?.[0].replaceAll(',', ''));
}
