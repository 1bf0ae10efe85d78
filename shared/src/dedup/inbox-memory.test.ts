import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TransientError } from '../errors.ts';
import { type Log, silent } from '../log.ts';
import { ack } from '../outcome.ts';
import { aContext, aMessage } from '../testing/deliveries.ts';
import { virtualClock } from '../testing/index.ts';
import { claimStoreContract } from './contract.ts';
import { inbox } from './inbox.ts';
import { inboxContract } from './inbox-contract.ts';
import { memoryInbox, type Network } from './inbox-memory.ts';

claimStoreContract('the inbox in memory', async () => {
  const clock = virtualClock();
  return { store: memoryInbox({ clock }), pass: (ms) => clock.advance(ms), close: async () => {} };
});

inboxContract('memory', async () => {
  const clock = virtualClock();
  const store = memoryInbox({ clock });
  return {
    store,
    clock,
    get: async (transaction, id) => Number((await transaction.get(id)) ?? 0),
    set: (transaction, id, value) => transaction.set(id, value),
    read: async (id) => Number(store.peek(id) ?? 0),
    pass: (ms) => clock.advance(ms),
    until: (done) => clock.until(done),
    close: async () => {},
  };
});

test('after a commit whose answer was lost, what the handler wanted after it is called once', async () => {
  const clock = virtualClock();
  let losses = 1;
  const lossy: Network = async (request, send) => {
    const answer = await send();
    if (request !== 'commit' || losses === 0) return answer;
    losses -= 1;
    throw new TransientError('STORE_UNAVAILABLE', 'the answer was lost');
  };
  const store = memoryInbox({ clock, network: lossy });
  const called: string[] = [];
  const warnings: string[] = [];
  let runs = 0;
  const handle = inbox(store, { clock })(async (_message, { transaction, afterCommit }) => {
    runs += 1;
    transaction.set('a', runs);
    afterCommit(() => {
      called.push(`run ${runs}`);
      throw new Error('a metric without a reader');
    });
    afterCommit(() => called.push('the next one'));
    return ack();
  });
  const log: Log = { ...silent, warn: (text, fields) => void warnings.push(`${text}: ${fields?.['error']}`) };
  const outcome = await clock.until(handle(aMessage('m'), { ...aContext(clock), log }));
  assert.deepEqual([outcome, store.peek('a'), runs], [ack(), 1, 1]);
  assert.deepEqual(called, ['run 1', 'the next one']);
  assert.deepEqual(warnings, ['what a handler wanted after its commit failed: a metric without a reader']);
});

test('a transaction in memory reads before it writes, and sees what is committed', async () => {
  const store = memoryInbox({ clock: virtualClock() });
  store.put('a', 1);
  const failing = store.transact(async (transaction) => {
    assert.equal(await transaction.get('a'), 1);
    transaction.delete('a');
    await transaction.get('b');
    throw new Error('unreachable');
  });
  await assert.rejects(failing, /reads before it writes/);
  assert.equal(store.peek('a'), 1);
});
