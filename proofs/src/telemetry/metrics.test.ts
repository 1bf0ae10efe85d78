import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { context, metrics, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { sleep } from '../../../shared/src/clock.ts';
import type { ClaimStore } from '../../../shared/src/dedup/claim-store.ts';
import { dedup } from '../../../shared/src/dedup/dedup.ts';
import { memoryClaims } from '../../../shared/src/dedup/memory.ts';
import type { DedupOptions } from '../../../shared/src/dedup/settings.ts';
import { aContext, aMessage } from '../../../shared/src/testing/deliveries.ts';
import { gate } from '../dedup/fixture.ts';
import { PermanentError, storeUnavailable } from '../../../shared/src/errors.ts';
import { compose, type Handler } from '../../../shared/src/handler.ts';
import { silent } from '../../../shared/src/log.ts';
import { orderedDelivery } from '../../../shared/src/order/in-order.ts';
import { memoryStreams } from '../../../shared/src/order/memory.ts';
import { ack, deadLetter, type Outcome } from '../../../shared/src/outcome.ts';
import { deliver } from '../../../shared/src/receive/deliver.ts';
import { virtualClock } from '../../../shared/src/testing/index.ts';
import { registerSdk } from './sdk.ts';

const consumer = { 'pubsub_guarantees.consumer': 'consumer' };
const once = { ...consumer, 'pubsub_guarantees.capability': 'once' };
const reason = (outcome: string, why: string) => ({
  'pubsub_guarantees.outcome': outcome,
  'pubsub_guarantees.reason': why,
});

function setUp(
  t: TestContext,
  options: Omit<DedupOptions, 'clock'> = {},
  wrap = (store: ClaimStore): ClaimStore => store,
) {
  const sdk = registerSdk();
  t.after(() => sdk.close());
  const clock = virtualClock();
  const middleware = dedup(wrap(memoryClaims({ clock })), { clock, ...options });
  const run = (handler: Handler, id: string, text = 'data'): Promise<Outcome> =>
    compose(handler, [middleware])(aMessage('7', { dedupId: id, text }), aContext(clock));
  const values = async (name: string) =>
    (await sdk.points(`pubsub_guarantees.${name}`)).map(({ attributes, value }) => ({
      ...attributes,
      value,
    }));
  return { sdk, clock, run, values };
}

test('outcomes are counted by stage, kind and reason; calls of the store and handlers are timed', async (t) => {
  const { sdk, clock, run, values } = setUp(t);
  const slow: Handler = async () => sleep(clock, 2_000).then(() => ack());
  await clock.until(run(slow, 'a'));
  await run(slow, 'a');
  await run(async () => Promise.reject(new TypeError('x')), 'b');
  await run(async () => deadLetter(new PermanentError('BAD', 'x')), 'c');
  await run(async () => Promise.reject(new Error('a text of its own')), 'd');
  const codes = new PermanentError('order 4711 is bad', 'x');
  await run(async () => deadLetter(codes), 'e');
  assert.deepEqual(await values('outcomes'), [
    { ...once, ...reason('ack', 'handled'), value: 1 },
    { ...once, ...reason('ack', 'duplicate'), value: 1 },
    { ...once, ...reason('retry', 'TypeError'), value: 1 },
    { ...once, ...reason('dead_letter', 'BAD'), value: 1 },
    { ...once, ...reason('retry', 'Error'), value: 1 },
    { ...once, ...reason('dead_letter', '_OTHER'), value: 1 },
  ]);
  const [handled] = await sdk.points('pubsub_guarantees.handler.duration');
  assert.deepEqual([handled?.value, handled?.sum, handled?.unit], [1, 2, 's']);
  const answers = await values('claim_store.duration');
  const of = (operation: string, answer: string): unknown =>
    answers.find(
      (point) =>
        point['pubsub_guarantees.operation' as never] === operation &&
        point['pubsub_guarantees.answer' as never] === answer,
    )?.value;
  assert.deepEqual(
    [
      of('claim', 'claimed'),
      of('claim', 'duplicate'),
      of('complete', 'completed'),
      of('release', 'released'),
    ],
    [5, 1, 1, 4],
  );
});

test('waiting for a claim in progress elsewhere is timed by how it ended', async (t) => {
  const { sdk, clock, run } = setUp(t);
  const first = gate();
  const running = run(() => first.opened.then(() => ack()), 'a');
  const waiting = run(async () => ack(), 'a');
  await clock.advance(5_000);
  first.open();
  assert.deepEqual(await clock.until(waiting), ack('duplicate'));
  await clock.until(running);
  const [wait] = await sdk.points('pubsub_guarantees.claim.wait.duration');
  assert.deepEqual(wait?.attributes, { ...consumer, 'pubsub_guarantees.answer': 'duplicate' });
  assert.ok(wait.sum >= 5 && wait.sum < 8, `${wait.sum} s`);
});

test('a lost lease, the recovery after it, and work that may be done twice are counted', async (t) => {
  let isDown = false;
  const { clock, run, values } = setUp(t, { lease: '1s' }, (store) => ({
    ...store,
    renew: (held, nonce) => (isDown ? Promise.reject(storeUnavailable('down')) : store.renew(held, nonce)),
  }));
  const first = gate();
  isDown = true;
  const lost = run(() => first.opened.then(() => ack()), 'a');
  await clock.advance(1_500);
  const second = gate();
  const recovered = run(() => second.opened.then(() => ack()), 'a');
  await clock.advance(100);
  first.open();
  await clock.until(lost);
  second.open();
  await clock.until(recovered);
  assert.deepEqual(await values('leases.lost'), [{ ...once, value: 1 }]);
  assert.deepEqual(await values('recoveries'), [{ ...once, value: 1 }]);
  assert.deepEqual(await values('possible_duplicates'), [
    { ...consumer, 'pubsub_guarantees.reason': 'dedup_stolen', value: 1 },
  ]);
  const [unavailable] = await values('store.unavailable');
  assert.deepEqual(
    [
      unavailable?.['pubsub_guarantees.operation' as never],
      unavailable?.['pubsub_guarantees.reason' as never],
    ],
    ['renew', 'STORE_UNAVAILABLE'],
  );
});

test('conflicts, unrecognised records and a store that is down are counted, and what runs without the guarantee', async (t) => {
  const unrecognised = { kind: 'unrecognised', what: 'another form' } as const;
  const options = { onConflict: 'process', onStoreUnavailable: 'process' } as const;
  const { run, values } = setUp(t, options, (store) => ({
    ...store,
    claim: async (request) => {
      if (request.messageId !== '7') throw new Error('unexpected');
      if (request.fingerprint === fingerprints[0]) return unrecognised;
      if (request.fingerprint === fingerprints[1]) throw storeUnavailable('down');
      return store.claim(request);
    },
  }));
  const { hashOf } = await import('../../../shared/src/hash.ts');
  const fingerprints = ['unrecognised', 'down'].map((text) => hashOf(Buffer.from(text)));
  await run(async () => ack(), 'a', 'one');
  await run(async () => ack(), 'a', 'two');
  await run(async () => ack(), 'b', 'unrecognised');
  await run(async () => ack(), 'c', 'down');
  assert.deepEqual(await values('conflicts'), [{ ...consumer, value: 1 }]);
  assert.deepEqual(await values('unrecognised_records'), [{ ...consumer, value: 1 }]);
  assert.deepEqual(
    await values('possible_duplicates'),
    ['dedup_conflict', 'dedup_unrecognised', 'dedup_store_unavailable'].map((why) => ({
      ...consumer,
      'pubsub_guarantees.reason': why,
      value: 1,
    })),
  );
});

test('in order: held messages, gaps and failures of the next message are counted', async (t) => {
  const sdk = registerSdk();
  t.after(() => sdk.close());
  const clock = virtualClock();
  const fail = { now: true };
  const handler: Handler = async () => (fail.now ? Promise.reject(new RangeError('x')) : ack());
  const chain = orderedDelivery(memoryStreams({ clock }), { clock }).middleware(handler);
  const message = (sequence: string) => ({
    ...aMessage(sequence),
    attributes: { sequence, sequenceKey: 'secret key' },
  });
  fail.now = false;
  for (const number of ['2', '4', '1']) await chain(message(number), aContext(clock));
  fail.now = true;
  await chain(message('3'), aContext(clock));
  const [gaps] = await sdk.points('pubsub_guarantees.gaps');
  // 1 was missing when 2 came, and 3 when 2 had run.
  assert.deepEqual([gaps?.attributes, gaps?.value], [consumer, 2]);
  const [failures] = await sdk.points('pubsub_guarantees.next_message.failures');
  assert.deepEqual(failures?.attributes, { ...consumer, 'pubsub_guarantees.reason': 'RangeError' });
  const outcomes = await sdk.points('pubsub_guarantees.outcomes');
  assert.deepEqual(
    outcomes.map(({ attributes, value }) => [attributes['pubsub_guarantees.reason'], value]),
    [
      ['held', 3],
      ['handled', 1],
    ],
  );
});

test('no key, message ID or dedupId stands in an attribute of any metric', async (t) => {
  const { sdk, clock, run } = setUp(t);
  for (let index = 0; index < 20; index += 1) await run(async () => ack(), `secret-${index}`);
  const options = {
    consumer: 'consumer',
    source: 'projects/p/subscriptions/s',
    clock,
    log: silent,
    handlerTimeout: '60s',
  } as const;
  for (let index = 0; index < 20; index += 1)
    await deliver(async () => ack(), aMessage(`secret-${index}`), options);
  const points = await sdk.points();
  assert.doesNotMatch(JSON.stringify(points), /secret/);
  assert.ok(points.length <= 6, `${points.length} series for 40 messages`);
  const process = points.find(({ name }) => name === 'messaging.process.duration');
  assert.deepEqual(process?.attributes, {
    'messaging.system': 'gcp_pubsub',
    'messaging.operation.name': 'process',
    'messaging.destination.subscription.name': 's',
  });
});

test('an SDK that fails in every call changes no outcome, and work runs once', async (t) => {
  const broken: unknown = new Proxy(() => {}, {
    get: () => broken,
    apply: () => {
      throw new Error('telemetry is broken');
    },
  });
  metrics.setGlobalMeterProvider(broken as never);
  trace.setGlobalTracerProvider(broken as never);
  context.setGlobalContextManager(broken as never);
  t.after(() => {
    metrics.disable();
    trace.disable();
    Reflect.deleteProperty(globalThis, Symbol.for('opentelemetry.js.api.1'));
  });
  const clock = virtualClock();
  const middleware = dedup(memoryClaims({ clock }), { clock });
  let runs = 0;
  const handler = compose(async () => {
    runs += 1;
    return ack();
  }, [middleware]);
  const options = { consumer: 'c', source: 's', clock, log: silent, handlerTimeout: '60s' } as const;
  assert.deepEqual(await deliver(handler, aMessage('1'), options), ack());
  assert.deepEqual(await deliver(handler, aMessage('1'), options), ack('duplicate'));
  assert.equal(runs, 1);
});

/** Its providers answer; everything that they make throws. `with` runs the work and then throws. */
function brokenInside(t: TestContext, runsWork: boolean): Readonly<{ thrown(): number }> {
  let thrown = 0;
  const fail = (): never => {
    thrown += 1;
    throw new Error('telemetry is broken');
  };
  const instrument = { add: fail, record: fail };
  const meter = { createCounter: () => instrument, createHistogram: () => instrument };
  const span = {
    spanContext: fail,
    isRecording: () => true,
    setAttribute: fail,
    setAttributes: fail,
    setStatus: fail,
    recordException: fail,
    end: fail,
  };
  metrics.setGlobalMeterProvider({ getMeter: () => meter } as never);
  trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan: () => span }) } as never);
  const manager = {
    active: () => ROOT_CONTEXT,
    with(_context: unknown, work: () => unknown) {
      if (runsWork) work();
      return fail();
    },
  };
  context.setGlobalContextManager(manager as never);
  t.after(() => Reflect.deleteProperty(globalThis, Symbol.for('opentelemetry.js.api.1')));
  return { thrown: () => thrown };
}

for (const runsWork of [true, false]) {
  const when = runsWork ? 'after' : 'before';
  test(`spans, instruments and a context manager that fail (${when} the work) change no outcome`, async (t) => {
    const { thrown } = brokenInside(t, runsWork);
    const clock = virtualClock();
    let runs = 0;
    const work: Handler = async ({ id }) => {
      runs += 1;
      return id === 'bad' ? Promise.reject(new TypeError('x')) : ack();
    };
    const handler = compose(work, [dedup(memoryClaims({ clock }), { clock })]);
    const options = { consumer: 'c', source: 's', clock, log: silent, handlerTimeout: '60s' } as const;
    assert.deepEqual(await deliver(handler, aMessage('1'), options), ack());
    assert.deepEqual(await deliver(handler, aMessage('1'), options), ack('duplicate'));
    assert.equal((await deliver(handler, aMessage('bad'), options)).kind, 'retry');
    assert.equal(runs, 2);
    assert.ok(thrown() > 20, `${thrown()} calls failed`);
  });
}

test('an SDK that is registered after the first message is used from then on', async (t) => {
  const clock = virtualClock();
  const handler = compose(async () => ack(), [dedup(memoryClaims({ clock }), { clock })]);
  await handler(aMessage('1'), aContext(clock));
  const sdk = registerSdk();
  t.after(() => sdk.close());
  await handler(aMessage('2'), aContext(clock));
  const [outcomes] = await sdk.points('pubsub_guarantees.outcomes');
  assert.equal(outcomes?.value, 1);
});
