/** Which filters are legal, and how many values they may have. */
import { double, type FirestoreCase, int, list, of, refused, text } from '../expect.ts';
import { QUERY } from '../sources.ts';
import type { FirestoreWorld } from '../world.ts';

const make = of('Filters');

/** A filter as it is on the wire, run over a collection with one document that has the field. */
async function run(world: FirestoreWorld, ...filters: readonly object[]): Promise<unknown> {
  await world.db.doc('c/a').set({ f: 1 });
  const where = filters.length === 1 ? filters[0] : { compositeFilter: { op: 'AND', filters } };
  return await world.call('RunQuery', {
    parent: `${world.database}/documents`,
    structuredQuery: { from: [{ collectionId: 'c' }], where },
  });
}

const field = (op: string, value: object, fieldPath = 'f'): object => ({
  fieldFilter: { field: { fieldPath }, op, value },
});
const numbers = (count: number): object => list(...Array.from({ length: count }, (_, i) => int(i)));
const bad = (title: string, ...filters: readonly object[]): FirestoreCase =>
  make(`${title} answers INVALID_ARGUMENT`, QUERY, async (world) => {
    await refused(run(world, ...filters), 'INVALID_ARGUMENT', 'the filter');
  });
const good = (title: string, ...filters: readonly object[]): FirestoreCase =>
  make(`${title} is accepted`, QUERY, async (world) => {
    await run(world, ...filters);
  });

export const filterLimitCases: readonly FirestoreCase[] = [
  good('in with 30 values', field('IN', numbers(30))),
  bad('in with 31 values', field('IN', numbers(31))),
  good('array-contains-any with 30 values', field('ARRAY_CONTAINS_ANY', numbers(30))),
  bad('array-contains-any with 31 values', field('ARRAY_CONTAINS_ANY', numbers(31))),
  good('not-in with 10 values', field('NOT_IN', numbers(10))),
  bad('not-in with 11 values', field('NOT_IN', numbers(11))),
  bad('in without values', field('IN', numbers(0))),
  bad('in with a value that is no list', field('IN', int(1))),
  good('in × in with 30 disjunctions', field('IN', numbers(5)), field('IN', numbers(6), 'g')),
  bad('in × in with more than 30 disjunctions', field('IN', numbers(6)), field('IN', numbers(6), 'g')),
  bad('!= with another !=', field('NOT_EQUAL', int(1)), field('NOT_EQUAL', int(2))),
  bad('!= with not-in', field('NOT_EQUAL', int(1)), field('NOT_IN', numbers(2))),
  bad('not-in with in', field('NOT_IN', numbers(2)), field('IN', numbers(2))),
  bad(
    'not-in with array-contains-any',
    field('NOT_IN', numbers(2)),
    field('ARRAY_CONTAINS_ANY', numbers(2), 'g'),
  ),
  bad(
    'array-contains with another one',
    field('ARRAY_CONTAINS', int(1)),
    field('ARRAY_CONTAINS', int(2), 'g'),
  ),
  bad(
    'array-contains with array-contains-any',
    field('ARRAY_CONTAINS', int(1)),
    field('ARRAY_CONTAINS_ANY', numbers(2), 'g'),
  ),
  bad('An operator that is not set', field('OPERATOR_UNSPECIFIED', int(1))),
  bad('A field path that is not legal', field('EQUAL', int(1), 'a..b')),
  bad('__name__ against a string', field('EQUAL', text('a'), '__name__')),
  bad('__name__ against a number', field('GREATER_THAN', double(1), '__name__')),
  bad('A composite filter without filters', { compositeFilter: { op: 'AND', filters: [] } }),
];
