import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError, PermanentError } from '../errors.ts';
import { defineSaga } from './definition.ts';

type Order = Readonly<{ id: string; total: number }>;

const begun = { topic: 'orders', undo: ({ id }: Order) => ({ reject: id }) };
const placeOrder = defineSaga<Order>('place-order', { version: 3, deadline: '30m' })
  .compensable('order', begun)
  .compensable('credit', {
    topic: 'credit',
    do: ({ id, total }) => ({ id, reserve: total }),
    undo: ({ id }) => ({ id }),
    replied: (order, { limit }: { limit: number }) => ({ ...order, limit }),
    replyTimeout: '10s',
    maxAttempts: 2,
  })
  .compensableGroup({
    courier: { topic: 'couriers', do: ({ id, limit }) => ({ id, limit }), undo: ({ id }) => ({ id }) },
    kitchen: { topic: 'kitchens', do: ({ id }) => ({ id }), undo: ({ id }) => ({ id }) },
  })
  .pivot('charge', { topic: 'payments', do: ({ id, total, limit }) => ({ id, total, limit }) })
  .retriable('ship', { topic: 'shipping', do: ({ id }) => ({ ship: id }), when: ({ total }) => total > 0 });

test('a definition is a plan of its steps, in their order and groups', () => {
  assert.deepEqual(
    placeOrder.plan.map(({ name, kind, group }) => [name, kind, group]),
    [
      ['order', 'begun', 0],
      ['credit', 'compensable', 1],
      ['courier', 'compensable', 2],
      ['kitchen', 'compensable', 2],
      ['charge', 'pivot', 3],
      ['ship', 'retriable', 4],
    ],
  );
  const [, credit, courier] = placeOrder.plan;
  assert.deepEqual([credit?.timeoutMs, credit?.attempts], [10_000, 2]);
  assert.deepEqual([courier?.timeoutMs, courier?.attempts], [60_000, 3]);
  assert.deepEqual(
    [placeOrder.name, placeOrder.version, placeOrder.deadlineMs],
    ['place-order', 3, 1_800_000],
  );
});

test('each call makes another definition, so one beginning serves several', () => {
  const start = defineSaga<Order>('s', { version: 1 }).compensable('order', begun);
  const one = start.retriable('ship', { topic: 't', do: ({ id }) => id });
  assert.equal(start.plan.length, 1);
  assert.equal(one.plan.length, 2);
});

test('a start is the same message each time, and names what its publisher means', () => {
  const order = { id: 'order-17', total: 5 };
  const message = placeOrder.start('order-17', order, { topic: 'saga' });
  assert.deepEqual(message, placeOrder.start('order-17', order, { topic: 'saga' }));
  const { dedupId, ...attributes } = message.attributes;
  assert.match(dedupId ?? '', /^[\w-]{43}$/);
  assert.deepEqual(attributes, {
    saga: 'place-order',
    sagaId: 'order-17',
    sagaAction: 'start',
    sagaVersion: '3',
    correlationId: 'place-order/order-17',
  });
  assert.equal(Buffer.from(message.data).toString(), '{"id":"order-17","total":5}');
});

test('an ID or data that cannot be stored is refused before anything is published', () => {
  const start = (id: string, data: Order) => () => placeOrder.start(id, data, { topic: 'saga' });
  assert.throws(start('', { id: 'a', total: 1 }), { name: 'PermanentError', code: 'INVALID_ATTRIBUTE' });
  assert.throws(start('x'.repeat(513), { id: 'a', total: 1 }), PermanentError);
  assert.throws(start('a', { id: 'x'.repeat(500_000), total: 1 }), { code: 'LIMIT_EXCEEDED' });
  assert.throws(start('a', { id: 'a', total: 1n as unknown as number }), { code: 'INVALID_DATA' });
});

test('what breaks the order of steps does not compile, and is a ConfigError at run time', () => {
  const pivot = { topic: 't', do: ({ id }: Order) => id };
  const saga = () => defineSaga<Order>('s', { version: 1 });
  const says = { name: 'ConfigError', code: 'INVALID_OPTION' };
  // @ts-expect-error a compensable step after the pivot
  assert.throws(() => saga().pivot('p', pivot).compensable('c', begun), says);
  // @ts-expect-error a compensable step after a retriable one
  assert.throws(() => saga().retriable('r', pivot).compensable('c', begun), says);
  // @ts-expect-error a second pivot
  assert.throws(() => saga().pivot('p', pivot).pivot('q', pivot), says);
  // @ts-expect-error a pivot after a retriable step
  assert.throws(() => saga().retriable('r', pivot).pivot('p', pivot), says);
  // @ts-expect-error a group of compensable steps after the pivot
  assert.throws(() => saga().pivot('p', pivot).compensableGroup({ a: begun, b: begun }), says);
});

test('a step without what its kind needs does not compile, and is a ConfigError at run time', () => {
  const saga = () => defineSaga<Order>('s', { version: 1 });
  const run = ({ id }: Order) => id;
  // @ts-expect-error no compensation
  assert.throws(() => saga().compensable('c', { topic: 't', do: run }), ConfigError);
  // @ts-expect-error a pivot is not compensated
  assert.throws(() => saga().pivot('p', { topic: 't', do: run, undo: run }), ConfigError);
  // @ts-expect-error a pivot is always reached
  assert.throws(() => saga().pivot('p', { topic: 't', do: run, when: () => true }), ConfigError);
  // @ts-expect-error a retriable step has no limit of attempts
  assert.throws(() => saga().retriable('r', { topic: 't', do: run, maxAttempts: 3 }), ConfigError);
  // @ts-expect-error nothing to do
  assert.throws(() => saga().retriable('r', { topic: 't' }), ConfigError);
});

test('do, replied and undo see the data of their step', () => {
  const saga = () => defineSaga<Order>('s', { version: 1 });
  const undo = () => ({});
  // @ts-expect-error nothing has replied with a limit yet
  saga().compensable('c', { topic: 't', do: ({ limit }) => ({ limit }), undo });
  saga().compensable('c', {
    topic: 't',
    undo,
    do: () => 1,
    // @ts-expect-error a reply is unknown until its type is named
    replied: (order, reply) => ({ ...order, limit: reply.limit }),
  });
  saga()
    .compensable('c', {
      topic: 't',
      do: ({ total }) => total.toFixed(),
      undo: ({ id }, reply) => ({ id, was: reply }),
      replied: (order, reply: { limit: number }) => ({ ...order, limit: reply.limit }),
    })
    .pivot('p', { topic: 't', do: ({ limit }) => limit.toFixed() })
    // @ts-expect-error the data has no such field
    .retriable('r', { topic: 't', do: ({ nothing }) => ({ nothing }) });
  // @ts-expect-error it is started with an order
  saga().compensable('c', { topic: 't', undo }).start('id', { total: 5 }, { topic: 'saga' });
});

test('what a definition says wrongly names itself and what is accepted', () => {
  const saga = () => defineSaga<Order>('s', { version: 1 });
  const step = { topic: 't', do: ({ id }: Order) => id };
  const many = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`s${index}`, step]));
  const cases: readonly (readonly [() => unknown, RegExp])[] = [
    [() => defineSaga('a b', { version: 1 }), /^name is "a b"; accepted: 1 to 100 characters/],
    [() => defineSaga('s', { version: 0 }), /^version is 0; accepted: a whole number from 1/],
    [() => defineSaga('s', { version: 1, deadline: '29d' }), /^deadline is "29d"; accepted: at most 28d/],
    [() => saga().retriable('r', step).retriable('r', step), /^name is "r"; accepted: a name that no other/],
    [() => saga().retriable('r', { ...step, replyTimeout: '0s' }), /^r.replyTimeout is "0s"/],
    [() => saga().retriable('r', { ...step, topic: '' }), /^r.topic is ""; accepted: a text/],
    [() => saga().retriableGroup(many(11)), /^steps is 11; accepted: 2 to 10 steps in a group/],
    [() => saga().retriableGroup(many(1)), /^steps is 1; accepted: 2 to 10/],
    [
      () => saga().compensable('c', { ...begun, when: () => true }),
      /^c.do is undefined; accepted: a function/,
    ],
    [() => saga().compensable('__proto__', begun), /^name is "__proto__"/],
    [
      () =>
        Array.from({ length: 65 }).reduce<unknown>(
          (made, _, index) => (made as ReturnType<typeof saga>).retriable(`s${index}`, step),
          saga(),
        ),
      /^steps is 65; accepted: at most 64/,
    ],
  ];
  for (const [make, message] of cases) assert.throws(make, { name: 'ConfigError', message });
});
