/**
 * Checks that processes died at every place, often enough that a death there was followed in many states.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';

/** Deaths at each place that a deep search demands. */
const LEAST = 20;

/** Reports how often processes died at each place and, of a search that is deep, fails where that is less than 20 times. */
export function diedEverywhere(
  t: Pick<TestContext, 'diagnostic'>,
  deaths: readonly (readonly [place: string, count: number])[],
  isDeep: boolean,
): void {
  for (const [place, count] of deaths) t.diagnostic(`${count} died ${place}`);
  if (!isDeep) return;
  const rare = deaths.filter(([, count]) => count < LEAST).map(([place, count]) => `${count} died ${place}`);
  assert.ok(deaths.length > 0, 'no place is listed');
  assert.deepEqual(rare, [], `at least ${LEAST} processes die at each place`);
}
