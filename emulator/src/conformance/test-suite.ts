/** For the tests of each suite: every case is a test on the embedded server. */
import { test } from 'node:test';
import type { Suite, World } from './case.ts';

export function testSuite<Own extends World>({ service, cases, embedded }: Suite<Own>): void {
  for (const { feature, title, run, refusedHere } of cases) {
    void test(`${service}, ${feature}: ${title}`, async () => {
      const world = await embedded();
      try {
        await (refusedHere ?? run)(world);
      } finally {
        await world.close();
      }
    });
  }
}
