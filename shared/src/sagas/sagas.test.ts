import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryGround } from '../testing/saga-ground.ts';
import { stage } from '../testing/saga-stage.ts';
import { defineSaga } from './definition.ts';

type Order = Readonly<{ id: string }>;

const order = defineSaga<Order>('order', { version: 1, deadline: '1h' })
  .compensable('credit', { topic: 'credit', do: ({ id }) => ({ id }), undo: ({ id }) => ({ id }) })
  .retriable('ship', { topic: 'ship', do: ({ id }) => ({ id }) });

function orders() {
  const ground = memoryGround();
  const play = stage(ground, [order]);
  /** A call, with the orchestrator at work on what it asks for. */
  const during = async <Answer>(asked: Promise<Answer>): Promise<Answer> => {
    await new Promise((resolve) => setImmediate(resolve));
    for (const name of ['cancel', 'retry', 'settle'])
      if (play.waiting().includes(name)) await play.deliver(name);
    return ground.until(asked);
  };
  return { ground, play, during, sagas: play.sagas };
}

test('an instance is shown with its steps, its data and what has happened to it', async () => {
  const { play, sagas } = orders();
  play.start(order, 'i');
  await play.deliver('start');
  await play.deliver('do credit #1');
  await play.deliver('credit done');
  const view = await sagas.inspect('order', 'i');
  assert.ok(view);
  assert.deepEqual([view.state, view.isEnded, view.isParked, view.isLate], ['running', false, false, false]);
  assert.deepEqual(view.data, { id: 'i' });
  assert.deepEqual(
    view.steps.map(({ name, status, attempt, reply }) => [name, status, attempt, reply]),
    [
      ['credit', 'done', 1, { by: 'credit', attempt: 1 }],
      ['ship', 'doing', 1, undefined],
    ],
  );
  assert.deepEqual(
    view.history.map(({ event }) => event),
    ['start', 'credit do done'],
  );
  assert.equal((view.deadlineAt?.getTime() ?? 0) - view.startedAt.getTime(), 3_600_000);
  assert.equal(await sagas.inspect('order', 'other'), undefined);
});

test('a call that is repeated under its ID is applied once, and has the same answer', async () => {
  const { play, sagas, during } = orders();
  play.start(order, 'i');
  await play.deliver('start');
  for (let round = 0; round < 2; round += 1) {
    assert.deepEqual(await during(sagas.retry('order', 'i', { call: 'mine' })), {
      call: 'mine',
      answer: 'retried',
    });
  }
  assert.deepEqual(play.waiting(), ['do credit #1', 'do credit #2']);
});

test('a call without an answer in its time says under which ID to ask again', async () => {
  const { play, sagas, ground } = orders();
  play.start(order, 'i');
  await play.deliver('start');
  const asked = ground.until(sagas.cancel('order', 'i', { call: 'mine' }));
  await assert.rejects(asked, { code: 'SAGA_NO_ANSWER', message: /ask again with call mine/ });
  assert.equal(await play.deliver('cancel'), 'handled');
  assert.deepEqual(await ground.until(sagas.cancel('order', 'i', { call: 'mine' })), {
    call: 'mine',
    answer: 'cancelling',
  });
});

test('of an instance that has ended each call tells what is certain', async () => {
  const { play, sagas, ground } = orders();
  play.start(order, 'i');
  await play.flow();
  const settle = { outcome: 'done', reason: 'r' } as const;
  assert.equal((await ground.until(sagas.cancel('order', 'i'))).answer, 'tooLate');
  assert.equal((await ground.until(sagas.retry('order', 'i'))).answer, 'ended');
  assert.equal((await ground.until(sagas.settle('order', 'i', 'ship', settle))).answer, 'ended');
  assert.equal((await ground.until(sagas.retry('order', 'other'))).answer, 'unknown');
  assert.deepEqual(play.waiting(), [], 'nothing was published for that');
});

test('a step is settled where its instance is parked, with the reply that the saga reads', async () => {
  const { play, sagas, during } = orders();
  play.refusing.add('ship');
  play.start(order, 'i');
  await play.deliver('start');
  const settle = { outcome: 'done', reason: 'shipped by hand', reply: { by: 'hand' } } as const;
  assert.equal((await during(sagas.settle('order', 'i', 'ship', settle))).answer, 'notParked');
  await play.flow();
  assert.equal((await during(sagas.settle('order', 'i', 'ship', settle))).answer, 'settled');
  const view = await sagas.inspect('order', 'i');
  assert.deepEqual([view?.state, view?.steps[1]?.reply], ['completed', { by: 'hand' }]);
});

test('instances are listed by what an operator asks for, page by page', async () => {
  const { play, sagas, ground } = orders();
  play.refusing.add('ship');
  for (const id of ['a', 'b', 'c']) play.start(order, id);
  await play.flow();
  play.refusing.delete('ship');
  play.start(order, 'd');
  await play.flow();
  const idsOf = async (options: Parameters<typeof sagas.list>[0]) =>
    (await sagas.list(options)).sagas.map(({ id }) => id);
  assert.deepEqual(await idsOf({ parked: true }), await idsOf({ state: 'running' }));
  assert.deepEqual(await idsOf({ state: 'completed' }), ['d']);
  assert.deepEqual(await idsOf({ olderThan: '1h' }), []);
  await ground.pass(3_600_001);
  assert.equal((await idsOf({ olderThan: '1h' })).length, 4);
  const { sagas: first, nextPageToken = '' } = await sagas.list({ parked: true, pageSize: 2 });
  assert.equal(first.length, 2);
  assert.equal((await idsOf({ parked: true, pageSize: 2, pageToken: nextPageToken })).length, 1);
});

test('what is asked wrongly names itself and what is accepted', async () => {
  const { sagas } = orders();
  const says = (message: RegExp) => ({ name: 'ConfigError', code: 'INVALID_OPTION', message });
  await assert.rejects(sagas.list({ pageSize: 0 }), says(/^pageSize is 0/));
  await assert.rejects(
    sagas.list({ state: 'open' as 'running' }),
    says(/^state is "open"; accepted: running/),
  );
  await assert.rejects(sagas.cancel('', 'i'), says(/^saga is ""/));
  const settle = { outcome: 'other' as 'done', reason: 'r' };
  await assert.rejects(sagas.settle('order', 'i', 'ship', settle), says(/^outcome is "other"/));
});
