/**
 * Numbers that never come, by sweeps alone over streams that the test writes: asked of the publisher's outbox, then waited
 * for or skipped. Without an answer nothing is decided. With deliveries beside them: gaps-delivery.test.ts.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { storeUnavailable, TransientError } from '../../../shared/src/errors.ts';
import type { GapRepair } from '../../../shared/src/outbox/gap-repair.ts';
import type { MemoryStreams } from '../../../shared/src/order/memory.ts';
import type { StreamOptions } from '../../../shared/src/order/options.ts';
import { isSkipped, type StreamFields, type StreamState } from '../../../shared/src/order/stream-state.ts';
import type { StreamRef } from '../../../shared/src/order/stream-store.ts';
import { made, patchOf } from '../../../shared/src/testing/stream-samples.ts';
import { type Visiting, visiting } from './visiting.ts';

const MINUTE = 60_000;
const NOTHING = { due: 0, done: 0, isWhole: true, drained: 0, failed: 0, repaired: 0, skipped: 0 };

/** An outbox that answers with what `answers` gives, one after the other, and then with nothing. */
function outboxOf(...answers: readonly (readonly number[] | Error)[]) {
  const asked: string[] = [];
  const left = [...answers];
  const repair: GapRepair = {
    async republish(key, { from, to }) {
      asked.push(`${key} ${from}-${to}`);
      const answer = left.shift() ?? [];
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  return { asked, repair };
}

type Gapped = Visiting & Readonly<{ ref: StreamRef; state(): StreamState }>;

/** 1 is done, 5 and 6 wait for 2 to 4 from now on. */
async function withGap(
  options: StreamOptions,
  fields: StreamFields = {},
  wrap?: (store: MemoryStreams) => MemoryStreams,
): Promise<Gapped> {
  const { gap = {}, ...rest } = options;
  const bed = visiting({ gap: { timeout: '2m', ...gap }, ...rest }, wrap === undefined ? {} : { wrap });
  const since = bed.clock.now();
  const ref = await made(
    bed.store,
    { last: 1, recentHashes: ['x'], waitingSince: since, gapAt: 1, ...fields },
    [5, 6],
  );
  return { ...bed, ref, state: () => bed.store.stateOf(ref) ?? assert.fail('no stream') };
}

test('B15: a gap is skipped after its time, not before, and what waits behind it runs in the same sweep', async () => {
  const { clock, sweep, context, runs, state, lines } = await withGap({ onGap: 'skip' });
  await clock.advance(2 * MINUTE - 1);
  assert.deepEqual(await sweep(context()), NOTHING);
  await clock.advance(1);
  assert.deepEqual(await sweep(context()), { ...NOTHING, due: 1, done: 1, drained: 2, skipped: 3 });
  assert.deepEqual([runs, state().last, state().skipped], [['k#5', 'k#6'], 6, [{ from: 2, to: 4 }]]);
  assert.deepEqual([state().waitingSince, state().readyAt, state().held], [null, null, 0]);
  const told = lines.find(({ event }) => event === 'order_gap_skipped');
  assert.deepEqual([told?.level, told?.['from'], told?.['to'], told?.['numbers']], ['error', 2, 4, 3]);
});

test('B15: by default a gap is waited for without end, and stays visible', async () => {
  const { clock, sweep, context, state } = await withGap({});
  const since = state().waitingSince;
  for (let round = 0; round < 5; round += 1) {
    await clock.advance(60 * MINUTE);
    assert.deepEqual(await sweep(context()), NOTHING);
  }
  assert.deepEqual([state().last, state().waitingSince], [1, since]);
});

test('numbers that the outbox has are published again, and then have their time to come', async () => {
  const { asked, repair } = outboxOf([2, 3, 4]);
  const { clock, sweep, context, state } = await withGap({ onGap: 'skip', gap: { repair } });
  await clock.advance(2 * MINUTE);
  assert.deepEqual(
    [(await sweep(context())).repaired, (await sweep(context())).repaired, asked],
    [3, 0, ['k 2-4']],
  );
  await clock.advance(2 * MINUTE - 1);
  assert.equal((await sweep(context())).skipped, 0);
  await clock.advance(1);
  assert.deepEqual([(await sweep(context())).skipped, asked.length, state().last], [3, 1, 6]);
});

test('numbers that the outbox never had are skipped at once, or waited for', async () => {
  const never = outboxOf([]);
  const skips = await withGap({ onGap: 'skip', gap: { repair: never.repair } });
  await skips.clock.advance(2 * MINUTE);
  assert.equal((await skips.sweep(skips.context())).skipped, 3);
  const waits = outboxOf([]);
  const bed = await withGap({ gap: { repair: waits.repair } });
  for (let minute = 0; minute < 9; minute += 1) {
    await bed.clock.advance(MINUTE);
    await bed.sweep(bed.context());
  }
  assert.deepEqual([waits.asked.length, bed.state().last], [4, 1], 'asked once in each two minutes');
});

test('an outbox that does not answer decides nothing', async () => {
  const down = new TransientError('STORE_UNAVAILABLE', 'down');
  const { asked, repair } = outboxOf(down, down, []);
  const { clock, sweep, context, state } = await withGap({ onGap: 'skip', gap: { repair } });
  await clock.advance(2 * MINUTE);
  for (const _ of [1, 2]) assert.deepEqual(await sweep(context()), { ...NOTHING, failed: 1 });
  assert.deepEqual([state().last, state().repairedAt], [1, null]);
  assert.deepEqual([(await sweep(context())).skipped, asked.length], [3, 3]);
});

test('a gap of another `last` is another gap, with a time of its own', async () => {
  const { clock, sweep, context } = await withGap({ onGap: 'skip' }, { gapAt: 0 });
  await clock.advance(60 * MINUTE);
  assert.deepEqual(await sweep(context()), NOTHING);
});

test('a decision about a gap is not applied to another gap that has taken its place meanwhile', async () => {
  for (const policy of ['skip', 'wait'] as const) {
    const asked: string[] = [];
    const repair: GapRepair = {
      async republish(key, { from, to }) {
        asked.push(`${key} ${from}-${to}`);
        if (from !== 2) return [];
        // 2 and 3 come while the outbox is asked, and 4 has been missing for long enough by itself.
        const { version } = await bed.store.read(bed.ref);
        const fields = { last: 3, recentHashes: ['x', 'y', 'z'], gapAt: 3 };
        await bed.store.commit(bed.ref, { version, state: bed.state() }, { patch: patchOf(fields) });
        return [];
      },
    };
    const bed = await withGap({ onGap: policy, gap: { repair } });
    await bed.clock.advance(2 * MINUTE);
    assert.equal((await bed.sweep(bed.context())).skipped, 0);
    assert.deepEqual([bed.state().last, bed.state().skipped, bed.state().repairedAt], [3, [], null], policy);
    assert.equal((await bed.sweep(bed.context())).skipped, policy === 'skip' ? 1 : 0);
    assert.deepEqual(asked, ['k 2-4', 'k 4-4'], 'it is asked for by itself');
  }
});

test('a stream that is due, blocked, leased, or waits for its next try has no gap to skip', async () => {
  const { repair, asked } = outboxOf();
  for (const fields of [
    { readyAt: 9e12 },
    { blocked: { code: 'BAD', text: '', atMs: 1 } },
    { lease: { owner: 'dead', lengthMs: 1_000, to: 1 } },
  ] satisfies StreamFields[]) {
    const { clock, sweep, context, state } = await withGap({ onGap: 'skip', gap: { repair } }, fields);
    await clock.advance(60 * MINUTE);
    assert.deepEqual(await sweep(context()), NOTHING);
    assert.deepEqual([state().last, asked], [1, []]);
  }
});

test('a skip whose reply is lost, and two sweeps at once, skip once', async () => {
  const losing = (store: MemoryStreams): MemoryStreams => ({
    ...store,
    async commit(...given) {
      const version = await store.commit(...given);
      if (given[2].patch.skipped !== undefined) throw storeUnavailable('the reply was lost');
      return version;
    },
  });
  for (const wrap of [losing, undefined]) {
    const { clock, sweep, context, state, runs } = await withGap({ onGap: 'skip' }, {}, wrap);
    await clock.advance(2 * MINUTE);
    await Promise.all([sweep(context()), sweep(context())]);
    await sweep(context());
    assert.deepEqual([state().skipped, state().last, runs.length], [[{ from: 2, to: 4 }], 6, 2]);
  }
});

test('a gap that closes, or whose number has started, between the look and the skip is not skipped', async () => {
  for (const change of [
    { last: 2, waitingSince: null, gapAt: null },
    { lease: { owner: 'other', lengthMs: 60_000, to: 1 }, readyAt: 9e12 },
  ] satisfies StreamFields[]) {
    let isFirst = true;
    const closing = (store: MemoryStreams): MemoryStreams => ({
      ...store,
      async commit(ref, seen, given) {
        if (isFirst) {
          isFirst = false;
          const { version, state } = await store.read(ref);
          if (state !== undefined) await store.commit(ref, { version, state }, { patch: patchOf(change) });
        }
        return store.commit(ref, seen, given);
      },
    });
    const { clock, sweep, context, state } = await withGap({ onGap: 'skip' }, {}, closing);
    await clock.advance(2 * MINUTE);
    assert.equal((await sweep(context())).skipped, 0);
    assert.deepEqual([isFirst, isSkipped(state(), 3)], [false, false]);
  }
});

test('gaps of more streams than one page holds are all handled, and one that fails starves no other', async () => {
  const bad = new Set(['k0', 'k1', 'k2']);
  const wrap = (store: MemoryStreams): MemoryStreams => ({
    ...store,
    async held(ref, from, limit) {
      if (bad.has(ref.key)) throw new TransientError('UNREADABLE_STATE', 'a later version');
      return store.held(ref, from, limit);
    },
  });
  const bed = visiting({ onGap: 'skip', gap: { timeout: '1m' } }, { wrap });
  const fields = { waitingSince: bed.clock.now(), gapAt: 0 };
  for (let key = 0; key < 230; key += 1) await made(bed.store, fields, [2], `k${key}`);
  await bed.clock.advance(MINUTE);
  const { skipped, failed, drained } = await bed.sweep(bed.context());
  assert.deepEqual([skipped, failed, drained], [227, 3, 227]);
});

test('numbers older than the consumer are skipped without an alarm, and never published again', async () => {
  const { asked, repair } = outboxOf();
  const start = { read: async () => ({ next: 12, epoch: 'e' }) };
  const opening = { last: 0, recentHashes: [], gapAt: 0, opening: 12 };
  const { clock, sweep, context, state, lines } = await withGap({ start, gap: { repair } }, opening);
  await clock.advance(2 * MINUTE);
  assert.deepEqual(await sweep(context()), { ...NOTHING, due: 1, done: 1, drained: 2 });
  assert.deepEqual([state().last, asked], [6, []]);
  assert.deepEqual(
    lines.map(({ level, event }) => [level, event]),
    [['info', 'order_stream_began']],
  );
});
