/**
 * Rows that cannot be published now do not keep a pass from the rest, however short the pass is and however many they
 * are; and rows behind a blocked stream are read once, not by each pass.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../../../shared/src/clock.ts';
import { TransientError } from '../../../shared/src/errors.ts';
import { encodeMessage } from '../../../shared/src/stored-message.ts';
import { outbox } from '../../../shared/src/outbox/outbox.ts';
import { message, world } from './world.ts';

const { signal } = new AbortController();
const SWEEP_MS = 60_000;
const [STUCK, GOOD] = [40, 200];

type Kind = 'rows without order' | 'streams' | 'groups of the inbox';

/** Stuck rows first, whose topic does not answer; then good ones. Passes of a minute, each by a new relay. */
async function passes(kind: Kind, count: number) {
  const made = world();
  const { clock, store, publisher, add, texts, relayOf } = made;
  const { publish } = publisher;
  const tried: string[] = [];
  Object.assign(publisher, {
    async publish(...args: Parameters<typeof publish>) {
      const text = Buffer.from(args[0].data).toString();
      tried.push(text);
      if (!text.startsWith('stuck')) return publish(...args);
      await sleep(clock, 30_000);
      throw new TransientError('PUBLISH_TIMEOUT', 'no answer');
    },
  });
  const plant = async (text: string): Promise<void> => {
    if (kind === 'streams') return void (await add(text, { sequenceKey: text }));
    if (kind === 'rows without order') return void (await add(text));
    const name = `${text.replace(' ', '-')}.w`;
    const rows = ['first', 'second'].map((part, n) => {
      const whole = { ...message(`${text} ${part}`), data: Buffer.from(`${text} ${part}`) };
      const bytes = encodeMessage({ ...whole, id: name, publishTime: new Date(0) });
      return { id: `${name}.${n}`, topic: 'projects/p/topics/t', message: bytes, group: name };
    });
    await store.transact(async (transaction) => store.writeSlot(transaction, { rows }));
  };
  for (let n = 0; n < STUCK; n += 1) await plant(`stuck ${n}`);
  await clock.advance(1);
  for (let n = 0; n < GOOD; n += 1) await plant(`good ${n}`);
  await clock.advance(60_000);
  for (let pass = 0; pass < count; pass += 1) {
    await clock.until(relayOf().sweep({ signal, deadline: clock.monotonic() + SWEEP_MS }));
  }
  return { ...made, tried, good: new Set(texts()).size };
}

for (const kind of ['rows without order', 'streams', 'groups of the inbox'] as const) {
  test(`${STUCK} ${kind} whose topic does not answer do not starve ${GOOD} others`, async () => {
    const { good } = await passes(kind, 4);
    const all = kind === 'groups of the inbox' ? GOOD * 2 : GOOD;
    assert.equal(good, all, `${good} of ${all} are published after four passes`);
  });
}

/** One stream that fails, and so many rows behind its first. */
async function blocked(how: 'permanent' | 'refused', behind: number) {
  const made = world();
  const { clock, store, failing } = made;
  failing.set('bad', how === 'permanent' ? ['permanent'] : Array.from({ length: 1_000 }, () => 'refused'));
  const box = outbox(store, { clock });
  const commit = (texts: readonly string[]) =>
    store.transact(async (transaction) =>
      (await box.reserve(transaction, { sequenceKey: 'blocked' })).add(...texts.map(message)),
    );
  await commit(['bad']);
  for (let row = 0; row < behind; row += 500) {
    await commit(Array.from({ length: Math.min(500, behind - row) }, (_, n) => `behind ${row + n}`));
  }
  const read = { pending: 0, rows: 0 };
  const { pending, after } = store;
  Object.assign(store, {
    async pending(...asked: Parameters<typeof pending>) {
      const page = await pending(...asked);
      read.pending += page.rows.length;
      return page;
    },
    async after(...asked: Parameters<typeof after>) {
      const rows = await after(...asked);
      read.rows += rows.length;
      return rows;
    },
  });
  return { ...made, read };
}

for (const how of ['permanent', 'refused'] as const) {
  test(`rows behind a stream that is ${how === 'permanent' ? 'blocked' : 'backing off'} are read once, and go when it goes on`, async () => {
    const behind = 1_000;
    const { clock, read, relayOf, add, texts, failing, store } = await blocked(how, behind);
    const relay = relayOf();
    const first = await relay.sweep({ signal });
    assert.deepEqual([first.due, read.pending], [behind + 1, behind + 1]);
    const before = { ...read };
    for (let pass = 0; pass < 120; pass += 1) {
      await clock.advance(5_000);
      await relay.sweep({ signal });
    }
    const seen = { pending: read.pending - before.pending, rows: read.rows - before.rows };
    // Ten minutes: with pauses of up to a minute it is tried about sixteen times, which reads the stream and its first row.
    const most = how === 'permanent' ? 0 : 20;
    assert.ok(seen.pending <= most && seen.rows <= most, JSON.stringify(seen));
    const swept = await relay.sweep({ signal });
    assert.equal(swept.blocked, how === 'permanent' ? 1 : 0);
    // Rows that are committed meanwhile are read once as well, and another stream is not delayed.
    await add('late', { sequenceKey: 'blocked' });
    await add('other', { sequenceKey: 'other' });
    await relay.sweep({ signal });
    assert.deepEqual(texts(), ['other']);
    failing.clear();
    if (how === 'permanent') assert.equal(await relay.resume('blocked'), true);
    await clock.advance(60_000);
    await relay.sweep({ signal });
    const rest = Array.from({ length: behind }, (_, n) => `behind ${n}`);
    assert.deepEqual(texts(), ['other', 'bad', ...rest, 'late']);
    assert.ok(store.rows().every(({ state, dueMs }) => state === 'sent' && dueMs === undefined));
    const after = { ...read };
    for (let pass = 0; pass < 3; pass += 1) await relay.sweep({ signal });
    assert.deepEqual(read, after, 'nothing of it is looked at any more');
  });
}

test('a blocked stream with more rows than a pass has time for delays no other stream', async () => {
  const { clock, add, texts, relayOf, store } = await blocked('permanent', 3_000);
  await clock.advance(1_000);
  await add('other', { sequenceKey: 'other' });
  // A store that takes a second for each page: a pass of three seconds sees few of them.
  const { pending } = store;
  Object.assign(store, {
    async pending(...asked: Parameters<typeof pending>) {
      await sleep(clock, 1_000);
      return pending(...asked);
    },
  });
  // Three pages of 25 rows in each of 16 shards leave the selection with a pass: 1,200 of 3,000, less where the names
  // of the rows, which are random, are unevenly spread.
  for (let pass = 0; pass < 5 && texts().length === 0; pass += 1) {
    await clock.until(relayOf().sweep({ signal, deadline: clock.monotonic() + 3_000 }));
  }
  assert.deepEqual(texts(), ['other']);
});

test('a pass tries each row once, however long it takes, and comes to its end', async () => {
  const { clock, add, publisher, relayOf } = world({ shards: 1 });
  const tried: string[] = [];
  Object.assign(publisher, {
    async publish({ data }: { data: Uint8Array }) {
      tried.push(Buffer.from(data).toString());
      await sleep(clock, 1_500);
      throw new TransientError('PUBSUB_UNAVAILABLE', 'down');
    },
  });
  for (let row = 0; row < 900; row += 1) await add(`${row}`);
  const { isWhole, failed } = await clock.until(relayOf().sweep({ signal }));
  assert.deepEqual([isWhole, failed, tried.length, new Set(tried).size], [true, 900, 900, 900]);
});
