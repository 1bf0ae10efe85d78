/**
 * A long stream delays nothing else: neither the pass's deadline, nor the streams behind it, nor a publisher that
 * commits while the stream is drained.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../../../shared/src/clock.ts';
import { outbox } from '../../../shared/src/outbox/outbox.ts';
import { message, world } from './world.ts';

const { signal } = new AbortController();

/** A topic that takes 10 ms for each message. */
function slowWorld(options: Parameters<typeof world>[0] = {}) {
  const made = world(options);
  const { clock, publisher } = made;
  const { publish } = publisher;
  Object.assign(publisher, {
    publish: async (...args: Parameters<typeof publish>) => {
      await sleep(clock, 10);
      return publish(...args);
    },
  });
  return made;
}

test('a stream with more rows than the time of a pass ends with it, and the next one goes on', async () => {
  const { clock, store, relayOf, texts } = slowWorld();
  const box = outbox(store, { clock });
  const all = Array.from({ length: 500 }, (_, row) => `${row}`);
  await store.transact(async (transaction) =>
    (await box.reserve(transaction, { sequenceKey: 'long' })).add(...all.map(message)),
  );
  const deadline = clock.monotonic() + 1_000;
  const { isWhole } = await clock.until(relayOf().sweep({ signal, deadline }));
  assert.ok(clock.monotonic() <= deadline + 20, `it ended ${clock.monotonic() - deadline} ms late`);
  assert.equal(isWhole, false);
  assert.ok(texts().length >= 95, `${texts().length}`);
  await clock.until(relayOf().sweep({ signal }));
  assert.deepEqual(texts(), all);
});

test('streams behind thousands of rows of another do not wait for them', async () => {
  const { clock, store, add, relayOf, texts } = slowWorld();
  const box = outbox(store, { clock });
  for (let commit = 0; commit < 10; commit += 1) {
    const rows = Array.from({ length: 500 }, (_, row) => message(`long ${commit * 500 + row}`));
    await store.transact(async (transaction) =>
      (await box.reserve(transaction, { sequenceKey: 'long' })).add(...rows),
    );
  }
  await clock.advance(1);
  await add('short', { sequenceKey: 'short' });
  const pass = relayOf().sweep({ signal });
  await clock.advance(12_000);
  assert.ok(texts().includes('short'));
  const { done: published } = await clock.until(pass);
  assert.equal(published, 5_001);
  assert.deepEqual(
    texts().filter((text) => text !== 'short'),
    Array.from({ length: 5_000 }, (_, row) => `long ${row}`),
  );
});

test('a stream that grows as fast as it is published does not keep a pass from its end', async () => {
  const { clock, add, relayOf, texts } = slowWorld();
  await add('0', { sequenceKey: 'hot' });
  let isOver = false;
  const pass = relayOf()
    .sweep({ signal })
    .then(() => {
      isOver = true;
    });
  for (let row = 1; row < 6_000 && !isOver; row += 1) {
    await add(`${row}`, { sequenceKey: 'hot' });
    await clock.advance(5);
  }
  assert.ok(isOver, `${texts().length} published, and still at it`);
  await pass;
});

test('the loop does not pause while a stream grows as fast as it is published', async () => {
  const { clock, add, relayOf, texts } = slowWorld();
  const end = new AbortController();
  for (let row = 0; row < 50; row += 1) await add(`${row}`, { sequenceKey: 'hot' });
  const run = relayOf({ interval: '30s' }).run(end.signal);
  for (let row = 50; row < 3_000; row += 1) {
    await add(`${row}`, { sequenceKey: 'hot' });
    await clock.advance(10);
  }
  end.abort();
  await clock.until(run);
  assert.ok(texts().length > 2_900, `${texts().length} of 3000 are published`);
});

test('a thousand streams with one row each are one pass', async () => {
  const { clock, add, relayOf, texts, store } = slowWorld();
  for (let key = 0; key < 1_000; key += 1) await add(`${key}`, { sequenceKey: `k${key}` });
  const { due: pending, done: published, isWhole } = await clock.until(relayOf().sweep({ signal }));
  assert.deepEqual([pending, published, isWhole, new Set(texts()).size], [1_000, 1_000, true, 1_000]);
  assert.ok(store.rows().every(({ state }) => state === 'sent'));
});

test('a row that is committed just after the last read of the run that it joined is published by another run', async () => {
  let looks = 0;
  const { clock, store, relayOf, texts } = world({
    async network(request, send) {
      const answer = await send();
      if (request === 'after') {
        looks += 1;
        // The answer to the read after the release is on its way while the second row is committed.
        if (looks === 2) await sleep(clock, 1_000);
      }
      return answer;
    },
  });
  const box = outbox(store, { clock, relay: relayOf() });
  const send = async (text: string): Promise<readonly string[]> => {
    const added = await store.transact(async (transaction) =>
      (await box.reserve(transaction, { sequenceKey: 'k' })).add(message(text)),
    );
    await added.afterCommit();
    return [...texts()];
  };
  const first = send('a');
  await clock.advance(500);
  const second = send('b');
  assert.deepEqual(await clock.until(first), ['a']);
  assert.deepEqual(await clock.until(second), ['a', 'b']);
});
