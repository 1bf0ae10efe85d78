import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type } from 'arktype';
import * as v from 'valibot';
import { z } from 'zod';
import type { BodySchema, TypedHandler } from './body-schema.ts';
import { dedup } from './dedup/dedup.ts';
import { memoryClaims } from './dedup/memory.ts';
import { contextFor } from './context.ts';
import { ConfigError, PermanentError } from './errors.ts';
import { guarded, type GuardedOptions } from './guarded.ts';
import type { Context, Handler, Middleware } from './handler.ts';
import type { Message } from './message.ts';
import { ack } from './outcome.ts';
import { memoryPublisher, virtualClock } from './testing/index.ts';

const message = (data: string | Buffer, parts: Partial<Message> = {}): Message => ({
  id: '1',
  data: Buffer.from(data),
  attributes: {},
  publishTime: new Date('2026-01-02T03:04:05Z'),
  ...parts,
});
const clock = virtualClock();
const context: Context = contextFor(clock, { consumer: 'billing', source: 'projects/p/subscriptions/s' });
const once = (): Middleware => dedup(memoryClaims({ clock }), { clock });
const options = (
  parts: Partial<GuardedOptions> = {},
): GuardedOptions & { publisher: ReturnType<typeof memoryPublisher> } => ({
  deadLetterTopic: 'dead',
  ...parts,
  publisher: memoryPublisher(),
});

test('a duplicate does not run, and a dead letter that is sent again does', async () => {
  let runs = 0;
  const given = options({ once: once() });
  const handler = guarded(async ({ data }) => {
    runs += 1;
    if (data.toString() === 'bad') throw new PermanentError('BAD', 'never');
    return ack();
  }, given);
  assert.deepEqual(await handler(message('x', { attributes: { dedupId: 'a' } }), context), {
    kind: 'ack',
    reason: 'handled',
  });
  assert.deepEqual(await handler(message('x', { id: '2', attributes: { dedupId: 'a' } }), context), {
    kind: 'ack',
    reason: 'duplicate',
  });
  for (const id of ['3', '4']) {
    const outcome = await handler(message('bad', { id, attributes: { dedupId: 'b' } }), context);
    assert.ok(outcome.kind === 'deadLetter' && outcome.published, JSON.stringify(outcome));
  }
  assert.equal(runs, 3);
  assert.deepEqual(
    given.publisher.published.map(({ topic, attributes }) => [topic, attributes['deadLetterReason']]),
    [
      ['dead', 'BAD'],
      ['dead', 'BAD'],
    ],
  );
});

test('what the handler returns is published before the claim is complete', async () => {
  const given = options({ once: once() });
  const outgoing = { topic: 'out', data: Buffer.from('y'), attributes: {} };
  const handler = guarded(async () => ack('handled', [outgoing]), given);
  assert.deepEqual(await handler(message('x'), context), { kind: 'ack', reason: 'handled' });
  assert.deepEqual(
    given.publisher.published.map(({ topic }) => topic),
    ['out'],
  );
});

test('the stages are in the one order in which they hold, however they are given', async () => {
  const steps: string[] = [];
  const stage =
    (name: string): Middleware =>
    (next) =>
    async (...args) => {
      steps.push(name);
      return next(...args);
    };
  const run: Handler = async () => {
    steps.push('handler');
    return ack();
  };
  const given = options({
    once: stage('once'),
    inOrder: stage('inOrder'),
    later: stage('later'),
    retryLater: stage('retryLater'),
  });
  const handler = guarded(run, given);
  await handler(message('x'), context);
  assert.deepEqual(steps.splice(0), ['retryLater', 'later', 'inOrder', 'once', 'handler']);
  await handler.inner(message('x'), context);
  assert.deepEqual(steps, ['once', 'handler'], 'a sweep of inOrder runs the stages inside it');
});

test('inside inOrder a dead letter is left to the policy for poison messages', async () => {
  const given = options({ once: once(), inOrder: (next) => next });
  const handler = guarded(async () => Promise.reject(new PermanentError('BAD', 'never')), given);
  assert.deepEqual((await handler.inner(message('x'), context)).kind, 'deadLetter');
  assert.equal(given.publisher.published.length, 0);
});

/** The same body as three libraries describe it. */
const SCHEMAS: Readonly<Record<string, BodySchema<{ id: string; items: { cents: number }[] }>>> = {
  zod: z.object({ id: z.string(), items: z.array(z.object({ cents: z.number() })) }),
  valibot: v.object({ id: v.string(), items: v.array(v.object({ cents: v.number() })) }),
  arktype: type({ id: 'string', items: type({ cents: 'number' }).array() }),
};

for (const [library, schema] of Object.entries(SCHEMAS)) {
  test(`a body that fits a schema of ${library} reaches the handler parsed, any other is a dead letter`, async () => {
    const given = options();
    const bodies: unknown[] = [];
    const handle: TypedHandler<{ id: string }> = async ({ body, data }) => {
      bodies.push(body);
      assert.ok(Buffer.isBuffer(data), 'the data is still there as bytes');
      return ack();
    };
    const handler = guarded({ schema, handle }, given);
    const body = { id: 'order-1', items: [{ cents: 1990 }] };
    assert.equal((await handler(message(JSON.stringify(body)), context)).kind, 'ack');
    assert.deepEqual(bodies, [body]);

    const invalid = [
      JSON.stringify({ id: 'order-1', items: [{ cents: 'many' }] }),
      '{"id":',
      Buffer.from([0xff]),
    ];
    for (const data of invalid) {
      assert.equal((await handler(message(data), context)).kind, 'deadLetter', String(data));
    }
    const deadLetters = given.publisher.published.map(({ attributes }) => attributes);
    assert.deepEqual(
      deadLetters.map(({ deadLetterReason }) => deadLetterReason),
      ['INVALID_DATA', 'INVALID_DATA', 'INVALID_DATA'],
    );
    assert.match(deadLetters[0]?.['deadLetterError'] ?? '', /the data does not fit: items\.0\.cents: /);
    assert.match(deadLetters[1]?.['deadLetterError'] ?? '', /accepted: JSON in UTF-8/);
    assert.equal(bodies.length, 1);
  });
}

test('a schema may transform, and the handler is typed by what it gives', async () => {
  const amount = z.object({ amount: z.string().transform(Number) });
  let total = 0;
  const handler = guarded(
    {
      schema: amount,
      handle: async ({ body }) => {
        total += body.amount;
        // @ts-expect-error -- the schema gives a number
        const text: string = body.amount;
        assert.equal(typeof text, 'number');
        return ack();
      },
    },
    options(),
  );
  assert.equal((await handler(message('{"amount":"7"}'), context)).kind, 'ack');
  assert.equal(total, 7);
});

test('what can never work is refused when the handler is made', () => {
  const refusals: readonly [string, unknown, unknown][] = [
    ['handler is undefined', undefined, options()],
    ['handler.schema is "zod"', { schema: 'zod', handle: async () => ack() }, options()],
    ['handler.handle is undefined', { schema: z.string() }, options()],
    ['options is undefined', async () => ack(), undefined],
    ['publisher is ', async () => ack(), { ...options(), publisher: {} }],
    ['deadLetterTopic is ""', async () => ack(), { ...options(), deadLetterTopic: '' }],
    ['once is ', async () => ack(), { ...options(), once: memoryClaims({ clock }) }],
    ['onse is no option; accepted: once', async () => ack(), { ...options(), onse: once() }],
  ];
  for (const [text, handler, given] of refusals) {
    assert.throws(
      () => Reflect.apply(guarded, undefined, [handler, given]),
      (error) =>
        error instanceof ConfigError && error.code === 'INVALID_OPTION' && error.message.includes(text),
      text,
    );
  }
});
