/**
 * Native ordering keys are healthy again by themselves: Google's own client refuses a key after a failure until a program
 * calls `resumePublishing`, and what is published meanwhile is lost or out of order.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../clock.ts';
import { TransientError } from '../errors.ts';
import type { OutgoingMessage } from '../message.ts';
import { virtualClock } from '../testing/index.ts';
import { batching } from './batching.ts';

type Fate = Readonly<{ afterMs: number; how: 'taken' | 'refused' | 'reply lost' | 'never answered' }>;

/** A topic that remembers what it has taken, request by request, each with a fate of its key. */
function setUp(fates: Readonly<Record<string, readonly Fate[]>>, timeoutMs = 60_000) {
  const clock = virtualClock();
  const taken: string[] = [];
  const outstanding = new Map<string, number>();
  let most = 0;
  const left = new Map(Object.entries(fates).map(([key, list]) => [key, [...list]]));
  const { publish } = batching(
    async (messages) => {
      const key = messages[0]?.orderingKey ?? '';
      const { afterMs, how } = left.get(key)?.shift() ?? { afterMs: 1, how: 'taken' };
      outstanding.set(key, (outstanding.get(key) ?? 0) + 1);
      most = Math.max(most, outstanding.get(key) ?? 0);
      await sleep(clock, how === 'never answered' ? timeoutMs : afterMs);
      outstanding.set(key, (outstanding.get(key) ?? 1) - 1);
      if (how === 'taken' || how === 'reply lost') taken.push(...messages.map(textOf));
      if (how !== 'taken') throw new TransientError('PUBSUB_UNAVAILABLE', how);
      return messages.map(textOf);
    },
    { clock, timeoutMs, delayMs: 0, maxMessages: 100, maxBytes: 10_000 },
  );
  return {
    clock,
    taken,
    mostOutstanding: () => most,
    send: (key: string, text: string) =>
      publish({ topic: 't', data: Buffer.from(text), attributes: {}, orderingKey: key }),
  };
}
const textOf = ({ data }: OutgoingMessage): string => Buffer.from(data).toString();

test('a key that failed is free once what waited behind it is answered; later ones go after it', async () => {
  const { clock, taken, send, mostOutstanding } = setUp({ a: [{ afterMs: 1_000, how: 'refused' }] });
  const statuses: string[] = [];
  const follow = (text: string): Promise<unknown> =>
    send('a', text).then(
      () => statuses.push(`${text} taken`),
      () => statuses.push(`${text} rejected`),
    );
  const first = [follow('a1')];
  await clock.advance(10);
  first.push(follow('a2'), follow('a3'));
  await clock.until(Promise.all(first));
  assert.deepEqual(statuses, ['a1 rejected', 'a2 rejected', 'a3 rejected']);
  assert.deepEqual(taken, []);
  await clock.until(Promise.all(['a1', 'a2', 'a3', 'a4'].map(follow)));
  assert.deepEqual(taken, ['a1', 'a2', 'a3', 'a4']);
  assert.equal(mostOutstanding(), 1);
});

test('a caller that publishes again as soon as it is rejected keeps its order', async () => {
  const { clock, taken, send, mostOutstanding } = setUp({
    a: [
      { afterMs: 500, how: 'refused' },
      { afterMs: 500, how: 'refused' },
    ],
  });
  const insist = async (text: string): Promise<void> => {
    for (let attempt = 0; attempt < 5; attempt += 1) {
      try {
        return void (await send('a', text));
      } catch {
        // Again.
      }
    }
    throw new Error(`${text} was never taken`);
  };
  await clock.until(Promise.all(['a1', 'a2', 'a3'].map(insist)));
  assert.deepEqual(taken, ['a1', 'a2', 'a3']);
  assert.equal(mostOutstanding(), 1);
});

test('a caller that publishes again as soon as it is rejected keeps its order, also with others waiting behind it', async () => {
  for (const how of ['refused', 'reply lost'] as const) {
    const { clock, taken, send, mostOutstanding } = setUp({ a: [{ afterMs: 500, how }] });
    const attempts = new Map<string, number>();
    const insist = async (text: string): Promise<void> => {
      for (let attempt = 1; attempt < 5; attempt += 1) {
        attempts.set(text, attempt);
        try {
          return void (await send('a', text));
        } catch {
          // Again.
        }
      }
      throw new Error(`${text} was never taken`);
    };
    const first = insist('a1');
    await clock.advance(10);
    await clock.until(Promise.all([first, ...['a2', 'a3'].map(insist)]));
    assert.deepEqual(taken.slice(-3), ['a1', 'a2', 'a3']);
    assert.deepEqual(
      [...attempts.values()],
      [2, 2, 2],
      'what comes after the failure is not rejected with it',
    );
    assert.equal(mostOutstanding(), 1);
  }
});

test('a key that fails, or whose server is silent, holds no other key', async () => {
  const { clock, taken, send } = setUp({ a: [{ afterMs: 0, how: 'never answered' }] }, 20_000);
  const stuck = send('a', 'a1').catch(() => 'rejected');
  const behind = send('a', 'a2').catch(() => 'rejected');
  await clock.advance(10);
  await clock.until(Promise.all([send('b', 'b1'), send('b', 'b2'), send('c', 'c1')]), 100);
  assert.deepEqual(taken.toSorted(), ['b1', 'b2', 'c1']);
  assert.deepEqual(await clock.until(Promise.all([stuck, behind])), ['rejected', 'rejected']);
  await clock.until(send('a', 'a3'));
  assert.deepEqual(taken.slice(-1), ['a3']);
});

test('after an unknown outcome nothing of the key goes before that publish is over', async () => {
  const { clock, taken, send } = setUp({ a: [{ afterMs: 5_000, how: 'reply lost' }] });
  const first = send('a', 'a1').catch(() => 'unknown');
  await clock.advance(1_000);
  const second = send('a', 'a2').catch(() => 'rejected');
  await clock.advance(1_000);
  assert.deepEqual(taken, []);
  assert.deepEqual(await clock.until(Promise.all([first, second])), ['unknown', 'rejected']);
  await clock.until(Promise.all([send('a', 'a1'), send('a', 'a2')]));
  assert.deepEqual(taken, ['a1', 'a1', 'a2']);
});

test('a publish that is answered late is over before what comes after its failure is sent', async () => {
  const { clock, taken, send, mostOutstanding } = setUp(
    {
      a: [
        { afterMs: 900, how: 'taken' },
        { afterMs: 5_000, how: 'refused' },
      ],
    },
    1_000,
  );
  const first = send('a', 'a1');
  await clock.advance(100);
  const second = send('a', 'a2').catch(() => 'unknown');
  await clock.advance(900);
  const third = send('a', 'a3').catch(() => 'rejected');
  await clock.advance(200);
  assert.deepEqual([await first, await second, await third], ['a1', 'unknown', 'rejected']);
  const again = ['a2', 'a3'].map((text) => send('a', text).catch(() => 'unknown'));
  await clock.advance(999);
  assert.deepEqual(taken, ['a1']);
  await clock.advance(10);
  assert.deepEqual(await Promise.all(again), ['unknown', 'unknown'], 'the request before them is not over');
  await clock.advance(10_000);
  await clock.until(Promise.all(['a2', 'a3'].map((text) => send('a', text))));
  assert.deepEqual(taken, ['a1', 'a2', 'a3']);
  assert.equal(mostOutstanding(), 1);
});
