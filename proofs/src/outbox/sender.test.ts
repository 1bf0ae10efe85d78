import assert from 'node:assert/strict';
import { test } from 'node:test';
import { storeUnavailable } from '../../../shared/src/errors.ts';
import { outboxSender } from '../../../shared/src/outbox/sender.ts';
import { message, world } from './world.ts';

test('what is sent while a commit is in flight shares the next one, in order', async () => {
  let commits = 0;
  const { clock, store, relayOf, texts } = world({
    network: (request, send) => {
      if (request === 'commit') commits += 1;
      return send();
    },
  });
  const { send } = outboxSender(store, (work) => store.transact(work), { clock, relay: relayOf() });
  const all = await Promise.all([
    send('k', message('a')),
    send('k', message('b'), message('c')),
    send('k', message('d')),
    send('other', message('x')),
  ]);
  assert.deepEqual(all, [[1], [2, 3], [4], [1]]);
  assert.deepEqual(
    texts().filter((text) => text !== 'x'),
    ['a', 'b', 'c', 'd'],
  );
  assert.equal(commits, 3);
});

test('B3: a commit of unknown outcome is asked again under its name', async () => {
  let lost = 0;
  const { clock, store } = world({ maxAttempts: 1 });
  const { send } = outboxSender(
    store,
    async (work) => {
      const result = await store.transact(work);
      lost += 1;
      if (lost === 1) throw storeUnavailable('the reply was lost');
      return result;
    },
    { clock },
  );
  assert.deepEqual(await send('k', message('a')), [1]);
  assert.deepEqual([lost, store.rows().length], [2, 1]);
  assert.deepEqual(await send('k', message('b')), [2]);
});

test('one bad message fails its own caller alone; a store that is down fails every caller', async () => {
  let isDown = false;
  const { clock, store } = world();
  const { send } = outboxSender(
    store,
    async (work) => {
      if (isDown) throw storeUnavailable('down');
      return store.transact(work);
    },
    { clock },
  );
  const bad = { ...message('b'), attributes: { goog: 'x' } };
  const large = { ...message(''), data: Buffer.alloc(1_040_000) };
  const answers = await Promise.allSettled([
    send('k', message('a')),
    send('k', bad),
    send('k', large),
    send('k', { ...message('c'), attributes: { sequence: '9' } }),
    send('k', { ...message('c'), attributes: { delay: '60' } }),
    send('k', message('d')),
  ]);
  assert.deepEqual(
    answers.map((one) => (one.status === 'fulfilled' ? one.value : (one.reason as { code: string }).code)),
    [[1], 'RESERVED_ATTRIBUTE', 'LIMIT_EXCEEDED', 'INVALID_ATTRIBUTE', 'INVALID_ATTRIBUTE', [2]],
  );
  isDown = true;
  await assert.rejects(send('k', message('e')), { code: 'STORE_UNAVAILABLE' });
  isDown = false;
  assert.deepEqual(await send('k', message('f')), [3]);
  await assert.rejects(send('', message('f')), {
    name: 'PermanentError',
    code: 'INVALID_MESSAGE',
    message: /^the sequenceKey has 0 bytes/,
  });
});

test('a commit is no larger than a request may be', async () => {
  const sizes: number[] = [];
  const { clock, store } = world();
  const counting = {
    ...store,
    writeSlot: (...args: Parameters<typeof store.writeSlot>) => {
      sizes.push(args[1].rows.length);
      store.writeSlot(...args);
    },
  };
  const { send } = outboxSender(counting, (work) => store.transact(work), { clock });
  const large = { ...message(''), data: Buffer.alloc(900_000) };
  await Promise.all(Array.from({ length: 12 }, () => send('k', large)));
  assert.deepEqual(sizes, [1, 5, 5, 1]);
  sizes.length = 0;
  await Promise.all(Array.from({ length: 402 }, () => send('k', message('a'))));
  assert.deepEqual(sizes, [1, 200, 200, 1]);
});
