/**
 * The limits on the index entries of a document, with the automatic indexes alone. What is refused is refused by the
 * document and by every known recording of the service, which counts and adds up otherwise close to the limits.
 */
import assert from 'node:assert/strict';
import { accepted, type FirestoreCase, int, of, refused, text } from '../expect.ts';
import { limit, type Written, write } from '../limit.ts';
import { INDEXES, QUOTAS, REPORTED } from '../sources.ts';

const entries = of('Limits of index entries');
/** Two entries each. */
const numbers = (count: number): object =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`f${i}`, int(i)]));
const LONG = 'x'.repeat(1_400);
/** Entries of more than 1,400 bytes each. */
const named = (count: number): Written[1] => [`c/${LONG}`, numbers(count)];

export const indexEntryLimitCases: readonly FirestoreCase[] = [
  ...limit(
    entries,
    'Index entries of a document',
    QUOTAS,
    ['40,000', ['c/a', numbers(20_000)]],
    ['40,002', ['c/a', numbers(20_001)]],
  ),
  entries('A map has index entries of its own beside those of its fields', INDEXES, async (world) => {
    const of = (count: number): object => ({ m: { mapValue: { fields: numbers(count) } } });
    await accepted(write(world, 'c/a', of(19_999)), 'a map of 19,999 numbers');
    await refused(write(world, 'c/a', of(20_000)), 'INVALID_ARGUMENT', 'a map of 20,000 numbers');
  }),
  entries('Too many index entries are refused in the words that users report', REPORTED, async (world) => {
    const { details = '' } = await refused(
      write(world, 'c/a', numbers(25_000)),
      'INVALID_ARGUMENT',
      '25,000 numbers',
    );
    assert.match(details, /too many index entries for entity/);
  }),
  entries('A string of more than 1,500 bytes is cut in its index entries', QUOTAS, async (world) => {
    await accepted(write(world, 'c/a', { f: text('x'.repeat(100_000)) }), 'a string of 100,000 bytes');
  }),
  ...limit(
    entries,
    'An index entry',
    QUOTAS,
    ['less than 5 KiB', [`c/${LONG}/d/${LONG}`, { f: int(1) }]],
    ['more than 7.5 KiB', [`c/${LONG}/d/${LONG}/e/${LONG}/f/a`, { f: int(1) }]],
  ),
  ...limit(
    entries,
    'The index entries of a document in sum',
    QUOTAS,
    ['8 MiB', named(2_800)],
    ['far more than 8 MiB', named(12_000)],
  ),
];
