import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { drawnFaults } from './arbitraries.ts';
import { diedEverywhere } from './died-everywhere.ts';
import { atCalls, inTurn, randomFault } from './faults.ts';
import { callerIn, matchesIn, newTally, placesOf, plannedDeaths } from './places.ts';
import { randomFrom } from './random.ts';
import { search, searchInThreads } from './search.ts';

test('a search that finds nothing counts the deaths, and one that finds something names the smallest schedule', async () => {
  const numbers = fc.nat(1_000);
  const found = await search(
    numbers,
    async (_number, died) => {
      died('before write');
      return [];
    },
    { seed: 1, numRuns: 50 },
  );
  assert.deepEqual(found, { deaths: { 'before write': 50 } });
  const { failure = '' } = await search(
    numbers,
    async (number) => (number < 100 ? [] : [{ invariant: 'small', text: `${number} is large` }]),
    { seed: 1, numRuns: 50 },
  );
  assert.match(failure, /seed: 1[\s\S]*Counterexample: \[100\][\s\S]*small: 100 is large/);
});

test('two threads search half of the schedules each, their deaths are added, and the failure of one ends both', async () => {
  const module = new URL('./testing/searched.ts', import.meta.url).href;
  assert.deepEqual(await searchInThreads(module, { seed: 7, numRuns: 9 }), {
    deaths: { 'seed 7': 5, 'seed 8': 4 },
  });
  // The first thread would take days.
  const failing = await searchInThreads(module, { seed: 8, numRuns: 1_000_000_000, breaks: 9 });
  assert.match(failing.failure ?? '', /broken: in seed 9/);
});

test('one seed is one sequence', () => {
  const drawn = (seed: number) => {
    const random = randomFrom(seed);
    return Array.from({ length: 20 }, () => [randomFault(random), random.chance(0.5)]);
  };
  assert.deepEqual(drawn(3), drawn(3));
  assert.notDeepEqual(drawn(3), drawn(4));
  assert.equal(new Set(Array.from({ length: 30 }, (_, seed) => randomFault(randomFrom(seed)).kind)).size, 6);
});

test('faults come in turn and round, or at the named call', () => {
  const next = inTurn(['a', 'b', 'c']);
  assert.deepEqual([next(), next(), next(), next()], ['b', 'c', 'a', 'b']);
  const at = atCalls({ 'write 2': 'lost' });
  assert.deepEqual(
    [at('write'), at('read'), at('write'), at('write')],
    [undefined, undefined, 'lost', undefined],
  );
});

test('drawn faults keep to their weights, and are late in the way that is asked for', () => {
  const drawn = fc.sample(drawnFaults({ none: 2, lost: 1 }, [{ kind: 'repeated' }], 'late copy'), {
    seed: 1,
    numRuns: 1_000,
  });
  const kinds = Object.groupBy(drawn, (fault) => fault?.kind ?? 'nothing');
  assert.deepEqual(Object.keys(kinds).toSorted(), ['late copy', 'none', 'nothing', 'repeated']);
  assert.ok(Math.abs((kinds['nothing']?.length ?? 0) - 400) < 60);
});

test('the process that passes a place as the hit-th dies there, and later ones do not', () => {
  const died: string[] = [];
  const [, after = 'after write'] = placesOf(['write']);
  const deaths = plannedDeaths([{ place: after, hit: 2 }], (place) => void died.push(place));
  assert.deepEqual(deaths.open(), ['after write']);
  const passes = [deaths.dies('before write'), ...[1, 2, 3].map(() => deaths.dies('after write'))];
  assert.deepEqual([passes, died, deaths.open()], [[false, false, true, false], ['after write'], []]);
});

test('places are read from the sources, without those in comments, and found again in the stack', () => {
  // A callerIn( that is none.
  const here = (): string | undefined => callerIn(/\/engine\/([\w.-]+)$/);
  const matched = matchesIn(new URL('./', import.meta.url), ['search.test.ts'], /=> (callerIn)\(/g);
  const [only] = matched;
  assert.ok(matched.length === 1 && only !== undefined);
  assert.deepEqual([only.match[1], `${only.file}:${only.line}`], ['callerIn', here()]);
  assert.match(only.above.at(-1) ?? '', /that is none/);
});

test('deaths are counted by place', () => {
  const tally = newTally();
  for (const place of ['a', 'b', 'a']) tally.add(place);
  assert.deepEqual([tally.of('a'), tally.of('b'), tally.of('c'), tally.places()], [2, 1, 0, ['a', 'b']]);
});

test('a deep search fails where processes died seldom, and a short one only reports', () => {
  const said: string[] = [];
  const t = { diagnostic: (text: string) => void said.push(text) };
  const counts = [
    ['before write', 20],
    ['after write', 19],
  ] as const;
  diedEverywhere(t, counts, false);
  assert.deepEqual(said, ['20 died before write', '19 died after write']);
  assert.throws(() => diedEverywhere(t, counts, true), /19 died after write/);
  diedEverywhere(t, counts.slice(0, 1), true);
  assert.throws(() => diedEverywhere(t, [], true), /no place is listed/);
});
