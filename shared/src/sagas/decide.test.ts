import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defineSaga } from './definition.ts';
import { isParked, problemsOf } from './instance.ts';
import { driver, sent } from '../testing/saga-driver.ts';

type Order = Readonly<{ id: string; total: number }>;

const body = ({ id }: Order) => ({ id });
const own = (topic: string) => ({ topic, do: body, undo: body });

/** order (begun) → credit → charge (pivot) → ship. */
const placeOrder = defineSaga<Order>('place-order', { version: 1, deadline: '10m' })
  .compensable('order', { topic: 'orders', undo: body })
  .compensable('credit', {
    topic: 'credit',
    do: ({ total }) => ({ reserve: total }),
    undo: (order, reply) => ({ id: order.id, reply }),
    replied: (order, { limit }: { limit: number }) => ({ ...order, limit }),
    replyTimeout: '10s',
  })
  .pivot('charge', { topic: 'payments', do: ({ id, limit }) => ({ id, limit }), replyTimeout: '30s' })
  .retriable('ship', { topic: 'shipping', do: body, replyTimeout: '5m' });

/** One step, then three side by side, and no pivot. */
const groups = defineSaga<Order>('groups', { version: 1 })
  .compensable('first', own('first'))
  .compensableGroup({ a: own('a'), b: own('b'), c: own('c') })
  .retriable('last', { topic: 'last', do: body });

const charging = () => {
  const play = driver(placeOrder);
  play.start();
  play.reply('credit', 'done', 'do', '{"limit":9}');
  return play;
};
const shipping = () => {
  const play = charging();
  play.reply('charge', 'done');
  return play;
};

test('a saga goes forward, step by step, with the data that replies change', () => {
  const play = driver(placeOrder);
  assert.deepEqual(sent(play.start()), ['do credit #1']);
  const moved = play.reply('credit', 'done', 'do', '{"limit":9}');
  assert.deepEqual(sent(moved), ['do charge #1']);
  assert.equal(moved.commands[0]?.body, '{"id":"i","limit":9}');
  assert.deepEqual(sent(play.reply('charge', 'done')), ['do ship #1']);
  assert.deepEqual(sent(play.reply('ship', 'done')), []);
  const { state, wakeAtMs, armedAtMs } = play.instance();
  assert.deepEqual([state, wakeAtMs, armedAtMs], ['completed', undefined, undefined]);
});

test('a refusal undoes what was done, the last first, and what the starting transaction did', () => {
  const play = charging();
  const refused = play.reply('charge', 'refused');
  assert.deepEqual(sent(refused), ['undo credit #1 known']);
  assert.equal(refused.commands[0]?.body, '{"id":"i","reply":{"limit":9}}');
  assert.deepEqual(sent(play.reply('credit', 'undone', 'undo')), ['undo order #1 known']);
  play.reply('order', 'undone', 'undo');
  assert.deepEqual([play.instance().state, play.instance().reason], ['compensated', 'charge: refused']);
});

test('what the starting transaction did is undone in whichever group it stands', () => {
  const saga = defineSaga<Order>('s', { version: 1 })
    .compensable('a', own('a'))
    .compensable('begun', { topic: 'b', undo: body });
  const play = driver(saga);
  assert.deepEqual(sent(play.start()), ['do a #1']);
  assert.deepEqual(sent(play.reply('a', 'refused')), ['undo begun #1 known']);
});

test('a step that when refuses is skipped, and never undone', () => {
  const saga = defineSaga<Order>('s', { version: 1 })
    .compensable('a', { ...own('a'), when: ({ total }) => total > 100 })
    .compensable('b', own('b'))
    .pivot('p', { topic: 'p', do: body });
  const play = driver(saga);
  assert.deepEqual(sent(play.start()), ['do b #1']);
  play.reply('b', 'done');
  assert.deepEqual(sent(play.reply('p', 'refused')), ['undo b #1 known']);
  assert.deepEqual(sent(play.reply('b', 'undone', 'undo')), []);
  assert.equal(play.instance().state, 'compensated');
});

test('a saga whose steps are all skipped is completed at once', () => {
  const saga = defineSaga<Order>('s', { version: 1 }).retriable('a', {
    topic: 'a',
    do: body,
    when: () => false,
  });
  const play = driver(saga);
  play.start();
  assert.equal(play.instance().state, 'completed');
  assert.deepEqual(play.ticks(), []);
});

test('S3: a step in doubt is undone like one that is done, though it is not known to be', () => {
  const play = driver(groups);
  play.start();
  play.reply('first', 'done');
  play.reply('b', 'done');
  assert.deepEqual(sent(play.reply('a', 'refused')), ['undo b #1 known', 'undo c #1']);
});

test('S5b: a tick that finds nothing due asks for the next one, not before a second from now', () => {
  const play = driver(placeOrder);
  play.start();
  assert.deepEqual(play.ticks(), [10_000]);
  play.advance(1_000);
  play.reply('credit', 'done', 'do', '{"limit":9}');
  assert.deepEqual(play.ticks(), [10_000], 'the timer stays where it is');
  const early = play.tick();
  assert.deepEqual([early.answer, sent(early)], ['moved', []]);
  assert.deepEqual(play.ticks(), [10_000, 31_000]);
  assert.deepEqual(sent(play.tick()), ['do charge #2']);
  assert.equal(play.now(), 31_000);
});

test('S5b: two ticks of an instance are never closer than a second', () => {
  const saga = defineSaga<Order>('s', { version: 1 }).retriable('a', {
    topic: 'a',
    do: body,
    replyTimeout: '5ms',
  });
  const play = driver(saga);
  play.start();
  play.tick();
  play.tick();
  assert.deepEqual(play.ticks(), [5, 1_005, 2_005]);
});

test('S6: a tick of another arm times out nothing, and an early one neither', () => {
  const play = driver(placeOrder);
  play.start();
  play.advance(60_000);
  assert.equal(play.on({ kind: 'tick', arm: 2 }).answer, 'stale');
  assert.equal(play.on({ kind: 'tick', arm: 0 }).answer, 'stale');
  assert.deepEqual(sent(play.on({ kind: 'tick', arm: 1 })), ['do credit #2']);
  assert.equal(play.on({ kind: 'tick', arm: 1 }).answer, 'stale', 'it was used up');
});

test('S6: a step is due from the commit that sent it, and not from what its transaction read', () => {
  const play = driver(placeOrder);
  play.on(
    { kind: 'start', ref: { consumer: 'c', saga: 'place-order', id: 'i' }, body: '{"id":"i"}' },
    15_000,
  );
  const tick = play.tick();
  assert.deepEqual([play.now(), tick.answer, sent(tick)], [15_000, 'moved', []]);
  assert.deepEqual(sent(play.tick()), ['do credit #2']);
  assert.equal(play.now(), 25_000);
});

test('S8: a reply counts only for the step that waits for it, whichever attempt it answers', () => {
  const play = driver(placeOrder);
  play.start();
  play.tick();
  assert.equal(play.instance().steps['credit']?.attempt, 2);
  for (const stray of [
    play.reply('ship', 'done'),
    play.reply('charge', 'refused'),
    play.reply('credit', 'undone', 'undo'),
    play.reply('credit', 'withdrawn', 'withdraw'),
    play.reply('no such step', 'done'),
  ])
    assert.deepEqual([stray.answer, stray.instance], ['stale', undefined]);
  assert.deepEqual(sent(play.reply('credit', 'done', 'do', '{"limit":1}')), ['do charge #1']);
  assert.equal(play.reply('credit', 'done', 'do', '{"limit":1}').answer, 'stale');
  play.reply('charge', 'refused');
  assert.equal(play.reply('credit', 'done', 'do', '{"limit":1}').answer, 'stale', 'it is being compensated');
});

test('S9: a pivot in doubt is asked until it answers, and nothing is undone before', () => {
  const play = charging();
  play.advance(600_000);
  assert.deepEqual(sent(play.tick()), ['withdraw charge #1']);
  assert.equal(play.instance().state, 'running');
  for (const attempt of [2, 3, 4]) assert.deepEqual(sent(play.tick()), [`withdraw charge #${attempt}`]);
  assert.deepEqual(sent(play.reply('charge', 'withdrawn', 'withdraw')), ['undo credit #1 known']);
});

test('S9: the last attempt of a pivot asks it; done, it goes on', () => {
  const play = charging();
  for (const attempt of [2, 3]) {
    let tick = play.tick();
    while (sent(tick).length === 0) tick = play.tick();
    assert.deepEqual(sent(tick), [`do charge #${attempt}`]);
  }
  assert.deepEqual(sent(play.tick()), ['withdraw charge #1']);
  assert.deepEqual(sent(play.reply('charge', 'done', 'withdraw')), ['do ship #1']);
  assert.equal(play.instance().reason, undefined);
});

test('S9: a late reply to the do of a pivot that is being withdrawn counts the same', () => {
  for (const [outcome, next] of [
    ['done', 'do ship #1'],
    ['refused', 'undo credit #1 known'],
    ['cancelled', 'undo credit #1 known'],
  ] as const) {
    const play = charging();
    play.on({ kind: 'cancel', id: 'c' });
    assert.deepEqual(sent(play.reply('charge', outcome)), [next]);
  }
});

test('S10: after the decision deadline and cancel have no effect, and the instance is listed as late', () => {
  const play = shipping();
  assert.equal(play.on({ kind: 'cancel', id: 'c' }).answer, 'tooLate');
  play.advance(700_000);
  assert.deepEqual(sent(play.tick()), ['do ship #2']);
  assert.deepEqual([play.instance().late, play.instance().state], [true, 'running']);
  for (let attempt = 3; attempt < 20; attempt += 1)
    assert.deepEqual(sent(play.tick()), [`do ship #${attempt}`]);
  play.reply('ship', 'done');
  assert.equal(play.instance().state, 'completed');
});

test('S10: without a pivot the commit that sends the first retriable step is the decision', () => {
  const play = driver(groups);
  play.start();
  for (const step of ['first', 'a', 'b', 'c']) play.reply(step, 'done');
  assert.equal(play.on({ kind: 'cancel', id: 'c' }).answer, 'tooLate');
  assert.equal(play.instance().state, 'running');
});

test('S11: groups are undone from the last to the first, each after every undone of the one behind it', () => {
  const play = driver(groups);
  play.start();
  play.reply('first', 'done');
  play.reply('b', 'done');
  play.reply('a', 'refused');
  assert.deepEqual(sent(play.reply('c', 'undone', 'undo')), []);
  assert.deepEqual(sent(play.reply('b', 'undone', 'undo')), ['undo first #1 known']);
  play.reply('first', 'undone', 'undo');
  assert.equal(play.instance().state, 'compensated');
});

test('S12: undo is sent again for ever, with doubled waits up to ten minutes', () => {
  const play = charging();
  play.reply('charge', 'refused');
  const times: number[] = [];
  while (times.length < 12) if (sent(play.tick()).length > 0) times.push(play.now() / 1_000);
  const waits = times.map((time, index) => time - (times[index - 1] ?? 0));
  assert.deepEqual(waits.slice(0, 8), [10, 20, 40, 80, 160, 320, 600, 600]);
  assert.deepEqual(problemsOf(play.instance()), ['credit: UNANSWERED'], 'visible after ten attempts');
  play.reply('credit', 'undone', 'undo');
  assert.equal(isParked(play.instance()), false);
});

test('S13: a refusal of an undo or a retriable step parks the instance, and the step goes on being asked', () => {
  const compensating = charging();
  compensating.reply('charge', 'refused');
  const refusal = {
    kind: 'reply',
    step: 'credit',
    action: 'undo',
    outcome: 'refused',
    reply: '',
    code: 'NO',
  } as const;
  assert.deepEqual(sent(compensating.on(refusal)), []);
  assert.deepEqual(problemsOf(compensating.instance()), ['credit: UNDO_REFUSED NO']);
  assert.deepEqual(sent(compensating.tick()), ['undo credit #2 known']);
  assert.equal(isParked(compensating.instance()), true, 'until it is answered otherwise');

  const running = shipping();
  running.reply('ship', 'refused');
  assert.deepEqual([running.instance().state, isParked(running.instance())], ['running', true]);
  running.tick();
  assert.deepEqual(sent(running.tick()), ['do ship #2']);
  running.reply('ship', 'done');
  assert.deepEqual([running.instance().state, isParked(running.instance())], ['completed', false]);
});

test('S16: cancel says cancelling, asked or tooLate, whichever is certain', () => {
  const early = driver(placeOrder);
  early.start();
  const cancelled = early.on({ kind: 'cancel', id: 'c1' });
  assert.deepEqual([cancelled.answer, sent(cancelled)], ['cancelling', ['undo credit #1']]);
  assert.equal(early.on({ kind: 'cancel', id: 'c2' }).answer, 'cancelling');

  const doubtful = charging();
  assert.equal(doubtful.on({ kind: 'cancel', id: 'c1' }).answer, 'asked');
  const again = doubtful.on({ kind: 'cancel', id: 'c2' });
  assert.deepEqual([again.answer, sent(again)], ['asked', []]);
  assert.equal(shipping().on({ kind: 'cancel', id: 'c' }).answer, 'tooLate');
});

test('S16: the same call has the same answer, and is applied once', () => {
  const play = charging();
  assert.equal(play.on({ kind: 'cancel', id: 'c' }).answer, 'asked');
  play.reply('charge', 'done', 'withdraw');
  const repeat = play.on({ kind: 'cancel', id: 'c' });
  assert.deepEqual([repeat.answer, repeat.instance], ['asked', undefined]);
  assert.equal(play.on({ kind: 'cancel', id: 'd' }).answer, 'tooLate');
});

test('S17: a second start of an ID is stale, and with other data a conflict', () => {
  const play = driver(placeOrder);
  assert.equal(play.start().answer, 'started');
  assert.deepEqual([play.start().answer, play.start().instance], ['stale', undefined]);
  const ref = { consumer: 'sagas', saga: 'place-order', id: 'i' };
  assert.equal(play.on({ kind: 'start', ref, body: '{}' }).answer, 'conflict');
});

test('S18: a record that is missing parks the instance, which is asked further', () => {
  const play = charging();
  play.reply('charge', 'refused');
  play.reply('credit', 'missing', 'undo');
  assert.deepEqual(problemsOf(play.instance()), ['credit: RECORD_MISSING']);
  assert.deepEqual(sent(play.tick()), ['undo credit #2 known']);
});

test('S19: the tick of a saga that has ended is stale, and arms nothing', () => {
  const play = shipping();
  const { arm } = play.instance();
  play.reply('ship', 'done');
  const late = play.on({ kind: 'tick', arm });
  assert.deepEqual([late.answer, late.instance, late.tick], ['stale', undefined, undefined]);
  assert.equal(play.on({ kind: 'sweep' }).answer, 'stale');
});

test('S20: the sweep goes on two minutes after a tick that has not come, which is stale then', () => {
  const play = driver(placeOrder);
  play.start();
  play.advance(129_999);
  assert.equal(play.on({ kind: 'sweep' }).answer, 'stale', 'a task is late before it is lost');
  play.advance(1);
  const swept = play.on({ kind: 'sweep' });
  assert.deepEqual([sent(swept), swept.tick?.arm], [['do credit #2'], 2]);
  assert.equal(play.on({ kind: 'tick', arm: 1 }).answer, 'stale');
});

test('a function that throws parks the instance, and the timer tries again with growing pauses', () => {
  let isBroken = true;
  const saga = defineSaga<Order>('s', { version: 1 }).retriable('a', {
    topic: 'a',
    do: ({ id }) => {
      if (isBroken) throw new Error('a bug');
      return { id };
    },
  });
  const play = driver(saga);
  assert.deepEqual([play.start().answer, play.instance().state], ['failed', 'running']);
  assert.deepEqual(problemsOf(play.instance()), ['a bug']);
  for (let round = 0; round < 12; round += 1) assert.equal(play.tick().answer, 'failed');
  assert.deepEqual(play.ticks().slice(0, 4), [2_000, 6_000, 14_000, 30_000]);
  const last = play.ticks().slice(-2);
  assert.equal((last[1] ?? 0) - (last[0] ?? 0), 600_000);
  isBroken = false;
  assert.deepEqual(sent(play.tick()), ['do a #1']);
  assert.equal(isParked(play.instance()), false);
});

test('an event that throws is lost like a message: the step stays in doubt and is asked again', () => {
  let isBroken = true;
  const saga = defineSaga<Order>('s', { version: 1 }).compensable('a', {
    ...own('a'),
    replyTimeout: '1s',
    replied: (order) => {
      if (isBroken) throw new Error('a bug');
      return order;
    },
  });
  const play = driver(saga);
  play.start();
  assert.equal(play.reply('a', 'done').answer, 'failed');
  assert.equal(play.instance().steps['a']?.status, 'doing');
  isBroken = false;
  assert.deepEqual(sent(play.tick()), ['do a #2']);
  play.reply('a', 'done');
  assert.equal(play.instance().state, 'completed');
});

test('an instance that no document would take is parked, and not written', () => {
  const saga = defineSaga<Order>('s', { version: 1 }).compensable('a', {
    ...own('a'),
    replied: (order, reply: { notes: string }) => ({ ...order, notes: reply.notes }),
  });
  const play = driver(saga);
  play.start();
  const large = play.reply('a', 'done', 'do', JSON.stringify({ notes: 'x'.repeat(500_000) }));
  assert.equal(large.answer, 'failed');
  assert.match(problemsOf(play.instance()).join(), /would take \d+ bytes/);
});

test('an operator settles a step of a parked instance, and only that', () => {
  const settle = { kind: 'settle', step: 'ship', outcome: 'done', reason: 'shipped by hand' } as const;
  const play = shipping();
  assert.equal(play.on({ ...settle, id: 'c1' }).answer, 'notParked');
  play.reply('ship', 'refused');
  assert.equal(play.on({ ...settle, outcome: 'refused', id: 'c2' }).answer, 'notOpen');
  assert.equal(play.on({ ...settle, step: 'credit', id: 'c3' }).answer, 'notOpen');
  assert.equal(play.on({ ...settle, id: 'c4' }).answer, 'settled');
  assert.equal(play.instance().state, 'completed');
  assert.equal(play.instance().history.at(-1)?.event, 'settle ship done: shipped by hand');
});

test('an operator settles an undo that no participant will answer', () => {
  const play = charging();
  play.reply('charge', 'refused');
  play.reply('credit', 'missing', 'undo');
  const settle = { kind: 'settle', step: 'credit', outcome: 'undone', reason: 'looked' } as const;
  assert.equal(play.on({ ...settle, outcome: 'done', id: 'c1' }).answer, 'notOpen');
  assert.deepEqual(sent(play.on({ ...settle, id: 'c2' })), ['undo order #1 known']);
});

test('an operator has every open command sent again at once', () => {
  const play = driver(groups);
  play.start();
  play.reply('first', 'done');
  play.reply('b', 'done');
  const retried = play.on({ kind: 'retry', id: 'c' });
  assert.deepEqual([retried.answer, sent(retried)], ['retried', ['do a #2', 'do c #2']]);
});

test('the history has the last hundred events', () => {
  const play = shipping();
  for (let round = 0; round < 120; round += 1) play.tick();
  const { history } = play.instance();
  assert.equal(history.length, 100);
  assert.match(history.at(-1)?.event ?? '', /^tick \d+$/);
});
