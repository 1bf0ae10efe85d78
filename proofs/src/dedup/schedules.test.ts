import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Call, Place } from './mortal.ts';
import { prove } from './proof.ts';

/** `npm run test:deep` takes 3,000, with which each await must be died at. */
const DEEP = 3_000;
const SCHEDULES = Number(process.env['TEST_SCHEDULES'] ?? 300);
const LEAST_DEATHS = 20;
/** The same each time, so that a count that is too small is no accident. A failure prints the seed and the schedule. */
const SEED = Number(process.env['TEST_SEED'] ?? 20_260_101);
const FOLDER = new URL('../../../shared/src/dedup/', import.meta.url);
const FILES = ['claiming.ts', 'shared-polls.ts', 'run-claimed.ts', 'lease.ts', 'document-claims.ts'];
const CALL = /\bsleep(?=\(clock)|\bdocuments\.(?:create|read|update|remove)(?=\()|await next(?=\()/;

/** Every await of the protocol that waits for the store, the clock or the handler. All others wait for one of these. */
function places(): Place[] {
  return FILES.flatMap((file) => {
    let room = '';
    const names = new Set<string>();
    const lines = readFileSync(new URL(file, FOLDER), 'utf8').split('\n');
    return lines.flatMap((line, index): Place[] => {
      room = /(?:function|const) (\w+) ?(?:<\w+>)?(?:\(|= async)/.exec(line)?.[1] ?? room;
      const call = CALL.exec(line)?.[0] as Call | undefined;
      if (call === undefined) return [];
      const first = `${file} ${room}: ${call}`;
      const name = names.has(first) ? `${first}, again` : first;
      names.add(name);
      const place = { site: `${file}:${index + 1}`, name, call };
      const before: Place = { ...place, point: 'before' };
      return call === 'sleep' ? [before] : [before, { ...place, point: 'after' }];
    });
  });
}

test(`${SCHEDULES} random schedules with a death at every await break no invariant`, async (t) => {
  const all = places();
  const { failure, deaths } = await prove({ seed: SEED, numRuns: SCHEDULES, places: all });
  assert.equal(failure, undefined, failure);
  const counts = all.map(({ site, name, point }, index) => `${deaths[index]} ${point} ${name} (${site})`);
  for (const count of counts) t.diagnostic(count);
  if (SCHEDULES < DEEP) return;
  const rare = counts.filter((count) => Number.parseInt(count) < LEAST_DEATHS);
  assert.deepEqual(rare, [], `each await is died at ${LEAST_DEATHS} times or more`);
});
