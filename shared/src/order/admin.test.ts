import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf, storeUnavailable, TransientError } from '../errors.ts';
import type { Middleware } from '../handler.ts';
import { type Outcome, retry } from '../outcome.ts';
import { memoryPayloads } from '../payload/memory.ts';
import { virtualClock } from '../testing/virtual-clock.ts';
import { streamAdmin, type StreamOperations } from './admin.ts';
import { memoryStreams, type MemoryStreams } from './memory.ts';
import { type StreamOptions, streamPolicy } from './options.ts';
import type { StreamFields } from './stream-state.ts';
import { CONSUMER, heldAs, made, patchOf } from '../testing/stream-samples.ts';
import { refusal } from '../testing/refusal.ts';

const codesOf = (work: Promise<unknown>): Promise<string> => work.then((value) => String(value), codeOf);
const K = { consumer: CONSUMER, source: 's', key: 'k' };
const BLOCKED = { code: 'BAD', text: 'never', atMs: 1_000 };

function setUp(options: StreamOptions = {}, wrap = (store: MemoryStreams): MemoryStreams => store) {
  const clock = virtualClock();
  const store = memoryStreams({ clock });
  const admin: StreamOperations = streamAdmin(
    streamPolicy(wrap(store), { clock, ...options }),
    options.deadLetters !== undefined,
  );
  return { clock, store, ...admin };
}

function deadLetters(refusals = 0): Readonly<{ published: string[]; deadLetters: Middleware }> {
  const published: string[] = [];
  const middleware: Middleware = (next) => async (message, context) => {
    const outcome = await next(message, context);
    if (outcome.kind !== 'deadLetter') return outcome;
    if (refusals-- > 0) return retry(new TransientError('DEAD_LETTER_UNPUBLISHED', 'no'));
    published.push(`${message.attributes['sequence']} ${codeOf(outcome.error)} ${context.source}`);
    return { ...outcome, published: true };
  };
  return { published, deadLetters: middleware };
}

test('inspect says what a stream waits for, what is held, and which process has it', async () => {
  const { clock, store, inspect } = setUp();
  assert.equal(await inspect(K), undefined);
  const since = clock.now();
  const lease = { owner: 'mine', lengthMs: 5_000, to: 1 };
  await made(store, { lease, readyAt: since + 5_000, waitingSince: since, gapAt: 0, epoch: 'e' }, [4, 9]);
  assert.deepEqual(await inspect(K), {
    key: 'k',
    source: 's',
    status: 'running',
    last: 0,
    next: 1,
    held: 2,
    attempts: 0,
    waitingSince: new Date(since),
    leasedUntil: new Date(since + 5_000),
    epoch: 'e',
    skipped: [],
    firstHeld: 4,
    gap: { from: 1, to: 3 },
    leaseOwner: 'mine',
  });
});

test('a stream whose document counts other than is held says both', async () => {
  const { store, inspect } = setUp();
  await made(store, { held: 5 }, [2]);
  const seen = await inspect(K);
  assert.deepEqual([seen?.held, seen?.counted], [5, 1]);
});

test('each state of a stream has a name', async () => {
  const { clock, store, inspect } = setUp();
  const now = clock.now();
  const made_: Readonly<Record<string, StreamFields>> = {
    idle: { last: 1 },
    blocked: { blocked: BLOCKED },
    retrying: { attempts: 1, readyAt: now + 50_000, nextTryAt: now + 50_000 },
    stalled: { lease: { owner: 'dead', lengthMs: 0, to: 1 }, readyAt: now },
    running: { lease: { owner: 'alive', lengthMs: 9_000, to: 1 }, readyAt: now + 9_000 },
    due: { readyAt: now },
    waiting: { waitingSince: now, gapAt: 0 },
  };
  for (const [key, fields] of Object.entries(made_)) {
    await made(store, fields, [], key);
    assert.equal((await inspect({ ...K, key }))?.status, key);
  }
});

test('list pages through the streams of one state, the oldest first, of all sources, with what is unreadable', async () => {
  const { store, list } = setUp({}, (inner) => ({
    ...inner,
    async list(...given) {
      const page = await inner.list(...given);
      const error = new TransientError('UNREADABLE_STATE', 'a later version');
      return {
        ...page,
        streams: page.streams.map(({ ref, ...rest }) =>
          ref.key === 'bad' ? { ref, error } : ({ ref, ...rest } as never),
        ),
      };
    },
  }));
  await made(store, { last: 1 }, [], 'idle');
  for (const [index, key] of ['c', 'a', 'bad', 'b'].entries())
    await made(store, { blocked: { ...BLOCKED, atMs: index + 1 } }, [1], key);
  const first = await list(CONSUMER, { state: 'blocked', pageSize: 3 });
  const second = await list(CONSUMER, {
    state: 'blocked',
    pageSize: 3,
    pageToken: first.nextPageToken ?? '',
  });
  assert.deepEqual(
    [...first.streams, ...second.streams].map(
      ({ key, source, held, poison }) => `${key} ${source} ${held} ${poison?.number} ${poison?.code}`,
    ),
    ['c s 1 1 BAD', 'a s 1 1 BAD', 'b s 1 1 BAD'],
  );
  assert.deepEqual(
    first.unreadable.map(({ key, source, error }) => [key, source, codeOf(error)]),
    [['bad', 's', 'UNREADABLE_STATE']],
  );
  assert.deepEqual([second.nextPageToken, (await list(CONSUMER)).streams.length], [undefined, 4]);
  for (const pageSize of [0, 501, 1.5])
    await assert.rejects(list(CONSUMER, { pageSize }), refusal('pageSize', /a whole number from 1 to 500$/));
  await assert.rejects(list(CONSUMER, { state: 'late' as 'due' }), refusal('state'));
});

test('a blocked stream that is resumed is due, with all its attempts; one that is not blocked is left alone', async () => {
  const { clock, store, resume } = setUp();
  const ref = await made(store, { blocked: BLOCKED, attempts: 3, nextTryAt: 9e12 }, [1]);
  assert.deepEqual([await resume(K), await resume(K)], [true, false]);
  const state = store.stateOf(ref);
  assert.deepEqual(
    [state?.blocked, state?.attempts, state?.nextTryAt, state?.readyAt],
    [null, 0, 0, clock.now()],
  );
  assert.equal(await codesOf(resume({ ...K, key: 'unknown' })), 'STREAM_UNKNOWN');
});

test('skip passes missing numbers up to the one it is given, and never one that is held', async () => {
  const { clock, store, skip } = setUp();
  const fields = { last: 1, recentHashes: ['x'], waitingSince: clock.now(), gapAt: 1 };
  const ref = await made(store, fields, [5]);
  assert.equal(await skip(K, 3), true);
  const state = store.stateOf(ref);
  assert.deepEqual([state?.last, state?.skipped, state?.readyAt], [3, [{ from: 2, to: 3 }], clock.now()]);
  assert.deepEqual([await skip(K, 3), await skip(K, 1)], [true, false]);
  assert.equal(await codesOf(skip(K, 5)), 'NUMBER_HELD');
  assert.equal(await skip(K, 4), true);
  assert.deepEqual([store.stateOf(ref)?.last, store.stateOf(ref)?.held], [4, 1]);
  for (const number of [200_000, 1.5, 0])
    assert.equal(await codesOf(skip(K, number)), 'SEQUENCE_TOO_FAR_AHEAD');
  assert.equal(await codesOf(skip({ ...K, key: 'unknown' }, 1)), 'STREAM_UNKNOWN');
});

test('skip passes poison only with its dead letter, and discards its content after', async () => {
  const clock = virtualClock();
  const payloads = memoryPayloads({ clock });
  const payload = await payloads.put('owner', Buffer.from('large'), clock.now() + 1_000_000);
  const { published, deadLetters: letters } = deadLetters(1);
  const made_ = setUp({ deadLetters: letters, payloads });
  const ref = await made(made_.store, { blocked: BLOCKED, held: 2 }, [2]);
  const { version, state } = await made_.store.read(ref);
  assert.ok(state !== undefined);
  const large = { ...heldAs(1), message: new Uint8Array(), payload };
  await made_.store.commit(ref, { version, state }, { patch: patchOf({}), create: [large] });
  const without = streamAdmin(streamPolicy(made_.store, {}), false);
  assert.equal(await codesOf(without.skip(K, 1)), 'DEAD_LETTER_TOPIC_MISSING');
  assert.equal(await codesOf(made_.skip(K, 2)), 'NUMBER_HELD');
  assert.equal(await codesOf(made_.skip(K, 1)), 'DEAD_LETTER_UNPUBLISHED');
  assert.deepEqual([made_.store.stateOf(ref)?.last, made_.store.heldNumbers(ref)], [0, [1, 2]]);
  assert.equal(await made_.skip(K, 1), true);
  const after = made_.store.stateOf(ref);
  assert.deepEqual(
    [after?.last, after?.blocked, after?.held, made_.store.heldNumbers(ref)],
    [1, null, 1, [2]],
  );
  assert.deepEqual(published, ['1 BAD projects/p/subscriptions/s']);
  assert.equal(await codesOf(payloads.get(payload)), 'PAYLOAD_DONE');
});

test('the content of poison that is resumed while its dead letter is published is kept', async () => {
  const clock = virtualClock();
  const payloads = memoryPayloads({ clock });
  const payload = await payloads.put('owner', Buffer.from('large'), clock.now() + 1_000_000);
  const resuming: Middleware = (next) => async (message, context) => {
    await resume(K);
    return { ...(await next(message, context)), published: true } as Outcome;
  };
  const { store, skip, resume } = setUp({ deadLetters: resuming, payloads });
  const ref = await made(store, { blocked: BLOCKED, held: 1 });
  const { version, state } = await store.read(ref);
  assert.ok(state !== undefined);
  const large = { ...heldAs(1), message: new Uint8Array(), payload };
  await store.commit(ref, { version, state }, { patch: patchOf({}), create: [large] });
  assert.equal(await codesOf(skip(K, 1)), 'NUMBER_HELD');
  assert.equal((await payloads.get(payload)).toString(), Buffer.from('large').toString());
});

test('a number behind one that is skipped keeps the attempt that it may have had beside a process that died', async () => {
  const { deadLetters: letters } = deadLetters();
  const { store, skip } = setUp({ deadLetters: letters });
  const ref = await made(store, { blocked: BLOCKED, attempts: 3, suspectsTo: 2, held: 1 }, [1]);
  assert.equal(await skip(K, 1), true);
  const after = store.stateOf(ref);
  assert.deepEqual([after?.last, after?.suspectsTo, after?.attempts], [1, 2, 1]);
});

test('W11: a skip whose reply is lost removes and counts once, also where the stream has gone on since', async () => {
  const { published, deadLetters: letters } = deadLetters();
  const losing = (store: MemoryStreams): MemoryStreams => ({
    ...store,
    async commit(ref, seen, change) {
      await store.commit(ref, seen, change);
      const { version, state } = await store.read(ref);
      if (state !== undefined) await store.commit(ref, { version, state }, { patch: patchOf({}) });
      throw storeUnavailable('the reply was lost');
    },
  });
  const { store, skip } = setUp({ deadLetters: letters }, losing);
  const ref = await made(store, { blocked: BLOCKED }, [1, 2]);
  assert.equal(await skip(K, 1), true);
  assert.deepEqual([store.stateOf(ref)?.held, store.stateOf(ref)?.last, published.length], [1, 1, 1]);
});

test('skip leaves a stream alone that a process works on', async () => {
  const { store, skip } = setUp();
  const ref = await made(store, { lease: { owner: 'other', lengthMs: 9_000, to: 1 } }, [3]);
  assert.equal(await codesOf(skip(K, 1)), 'STREAM_BUSY');
  assert.equal(store.stateOf(ref)?.last, 0);
});
