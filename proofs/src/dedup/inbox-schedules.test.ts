import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TransientError } from '../../../shared/src/errors.ts';
import { hashOf } from '../../../shared/src/hash.ts';
import type { HeldClaim } from '../../../shared/src/dedup/claim-store.ts';
import { diedEverywhere } from '../engine/died-everywhere.ts';
import { deathSites } from './inbox-process.ts';
import { type Mutation, playInbox } from './inbox-play.ts';
import { proveInbox } from './inbox-proof.ts';
import { type InboxSchedule, schedules } from './inbox-schedule.ts';

/** `npm run test:deep` takes 3,000, and demands deaths at each await. */
const DEEP = 3_000;
const SCHEDULES = Number(process.env['TEST_SCHEDULES'] ?? 300);
/** The seed is fixed, so that the counts are the same in each run. A failure prints the seed and the schedule. */
const seed = Number(process.env['TEST_SEED'] ?? 20_260_101);

test('random schedules: every effect exactly once, nothing acked without its commit, no message lost', async (t) => {
  const { failure, deaths } = await proveInbox({ seed, numRuns: SCHEDULES });
  assert.equal(failure, undefined, failure);
  const counts = deathSites.map((site) => [site, deaths[site] ?? 0] as const);
  diedEverywhere(t, counts, SCHEDULES >= DEEP);
});

/** B32, on purpose: the writes and the messages are committed under a record of their own, and the message is done later. */
const twoCommits: Mutation = (documents) => ({
  ...documents,
  async transact(attempt) {
    let held: HeldClaim | undefined;
    await documents.transact(async (transaction) => {
      const completion = await attempt(transaction);
      held = completion.held;
      const key = hashOf(held.request.owner, String(performance.now()));
      const request = { ...held.request, key };
      const created = await documents.create(key, { kind: 'claim', request });
      const revision = created.kind === 'written' ? created.revision : '';
      return { held: { request, revision }, rows: completion.rows };
    });
    if (held === undefined) return;
    const { request, revision } = held;
    const done = await documents.update(request.key, revision, { kind: 'done', request });
    if (done.kind === 'refused') throw new TransientError('TRANSACTION_REFUSED', 'another revision');
  },
});
/** Commits under whatever revision the claim has by then. */
const noFence: Mutation = (documents) => ({
  ...documents,
  transact: (attempt) =>
    documents.transact(async (transaction) => {
      const { held, rows } = await attempt(transaction);
      const found = await documents.read(held.request.key);
      return { held: found.kind === 'found' ? { ...held, revision: found.revision } : held, rows };
    }),
});
/** A duplicate is acked without a look at what is left of the messages. */
const noLook: Mutation = (documents) => ({
  ...documents,
  outbox: { ...documents.outbox, first: async () => undefined },
});

for (const [name, mutation, symptom] of [
  ['two commits', twoCommits, /with [2-9] effects|has [2-9] effects/],
  ['no fence', noFence, /with [2-9] effects|has [2-9] effects/],
  ['no look at messages left behind', noLook, /before its message was published/],
] as const) {
  test(`random schedules catch a broken inbox: ${name}`, async (t) => {
    const play = async (schedule: InboxSchedule): Promise<void> => {
      const broken = await playInbox(schedule, () => {}, mutation);
      assert.ok(!broken.some((text) => symptom.test(text)), broken.join('; '));
    };
    const options = { numRuns: 2_000, seed, endOnFailure: true };
    const { failed, numRuns } = await fc.check(fc.asyncProperty(schedules, play), options);
    t.diagnostic(`${name}: seen in schedule ${numRuns}`);
    assert.ok(failed, `not seen in ${numRuns} schedules`);
  });
}
