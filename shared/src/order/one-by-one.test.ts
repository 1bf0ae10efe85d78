/** What a process sends for one key never meets itself at the server. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setImmediate as turnOfLoop } from 'node:timers/promises';
import { test } from 'node:test';
import { systemClock } from '../clock.ts';
import { onLocalStack } from '../testing/firestore-servers.ts';
import { firestoreOrder } from './firestore.ts';
import { freshKey } from './key-state.ts';
import { oneByOne } from './one-by-one.ts';

test('work on one key goes in the order in which it came, also behind a failure; other keys do not wait', async () => {
  const run = oneByOne();
  const log: string[] = [];
  const work =
    (name: string, fails = false) =>
    async () => {
      log.push(`${name} begins`);
      await turnOfLoop();
      log.push(`${name} ends`);
      if (fails) throw new Error(name);
      return name;
    };
  const all = [run('k', work('1', true)), run('k', work('2')), run('other', work('o')), run('k', work('3'))];
  const settled = await Promise.allSettled(all);
  assert.deepEqual(
    settled.map((one) => (one.status === 'fulfilled' ? one.value : String(one.reason))),
    ['Error: 1', '2', 'o', '3'],
  );
  assert.deepEqual(
    log.filter((line) => !line.startsWith('o')),
    ['1', '2', '3'].flatMap((name) => [`${name} begins`, `${name} ends`]),
  );
  assert.ok(log.indexOf('o begins') < log.indexOf('1 ends'), 'another key waited');
  assert.equal(await run('k', work('4')), '4');
  log.length = 0;
  const fifth = run('k', work('5'));
  const sixth = run('k', work('6'));
  await fifth;
  // It comes while 6 is under way.
  await Promise.all([sixth, run('k', work('7'))]);
  assert.deepEqual(
    log,
    ['5', '6', '7'].flatMap((name) => [`${name} begins`, `${name} ends`]),
  );
});

test('a process has one write or transaction under way on a key, and as many as there are keys', async () => {
  const { firestore, close } = await onLocalStack('off');
  try {
    const store = firestoreOrder(firestore, { clock: systemClock() });
    const ref = { consumer: randomUUID(), key: 'a' };
    const base = freshKey(1);
    const expected = { version: await store.write(ref, { version: undefined, base }, {}), base };
    const log: string[] = [];
    const client = firestore as unknown as Record<string, (...rest: unknown[]) => Promise<unknown>>;
    const { runTransaction = async () => {}, request = async () => {} } = client;
    client['runTransaction'] = async (...rest) => {
      log.push('begins');
      return runTransaction.apply(firestore, rest).finally(() => log.push('ends'));
    };
    client['request'] = async (method, ...rest) => {
      if (method === 'commit') log.push('commits');
      return request.call(firestore, method, ...rest);
    };
    const transact = (key: string) =>
      store.transact({ ...ref, key }, base, { numbers: [2] }, () => ({
        result: 'done',
        patch: { attempts: 1 },
      }));
    const [version, ...results] = await Promise.all([
      store.write(ref, expected, { attempts: 2 }),
      transact('a'),
      transact('a'),
    ]);
    assert.ok(version !== undefined, 'the write was first');
    assert.deepEqual(results, ['done', 'done']);
    const transaction = ['begins', 'commits', 'ends'];
    assert.deepEqual(log, ['commits', ...transaction, ...transaction]);
    log.length = 0;
    await Promise.all([transact('b'), transact('c')]);
    assert.deepEqual(log.slice(0, 2), ['begins', 'begins']);
  } finally {
    await close();
  }
});
