import assert from 'node:assert/strict';
import test from 'node:test';
import { sleep } from '../clock.ts';
import { PermanentError } from '../errors.ts';
import type { Context, Handler } from '../handler.ts';
import { type Log, silent } from '../log.ts';
import type { Message } from '../message.ts';
import { ack, type Outcome } from '../outcome.ts';
import { virtualClock } from '../testing/index.ts';
import { deliver, type DeliverOptions } from './deliver.ts';

const message: Message = {
  id: '42',
  data: Buffer.alloc(0),
  attributes: {},
  publishTime: new Date(0),
  subscription: 'projects/p/subscriptions/s',
};
const clock = virtualClock();
const options: DeliverOptions = { consumer: 'c', clock, log: silent, handlerTimeout: '10s' };
const codeOf = (outcome: Outcome): unknown =>
  outcome.kind !== 'ack' && (outcome.error as { code?: string }).code;

test('gives the handler its context, and its outcome back', async () => {
  let seen: Context | undefined;
  const handler: Handler = async (_, context) => {
    seen = context;
    return ack('duplicate');
  };
  assert.deepEqual(await deliver(handler, message, options), { kind: 'ack', reason: 'duplicate' });
  assert.equal(seen?.consumer, 'c');
  assert.equal(seen.source, 'projects/p/subscriptions/s');
  assert.equal(seen.now(), clock.now());
  assert.equal(seen.deadline, clock.monotonic() + 10_000);
  assert.equal(seen.signal.aborted, false);
  assert.equal(clock.pending(), 0, 'a timer was left');
});

test('a delivery for a receiver that has stopped already is not begun', async () => {
  const stop = new AbortController();
  stop.abort();
  let runs = 0;
  const handler: Handler = async () => {
    runs += 1;
    return ack();
  };
  const outcome = await deliver(handler, message, { ...options, stop: stop.signal });
  assert.deepEqual([codeOf(outcome), runs], ['DELIVERY_STOPPED', 0]);
  assert.equal(clock.pending(), 0, 'a timer was left');
});

test('a configured source wins over the one as delivered', async () => {
  const handler: Handler = async (_, { source }) => Promise.reject(new PermanentError('SEEN', source));
  const outcome = await deliver(handler, message, { ...options, source: 'mine' });
  assert.equal(outcome.kind === 'deadLetter' && (outcome.error as Error).message, 'mine');
});

test('B08: a source is never guessed: without one the message waits, and the log says what to set', async () => {
  const { subscription, ...rest } = message;
  assert.ok(subscription);
  const outcome = await deliver(async () => ack(), rest, options);
  assert.equal(outcome.kind, 'retry');
  assert.equal(codeOf(outcome), 'SOURCE_UNKNOWN');
});

test('whatever is thrown becomes an outcome', async () => {
  const permanent = await deliver(
    async () => Promise.reject(new PermanentError('NO', 'no')),
    message,
    options,
  );
  assert.equal(permanent.kind, 'deadLetter');
  const sync = await deliver(
    () => {
      throw new Error('sync');
    },
    message,
    options,
  );
  assert.equal(sync.kind, 'retry');
});

test('B53: a handler that ignores its signal is over at the deadline, and its late answer is ignored', async () => {
  const lines: string[] = [];
  const log: Log = { ...silent, warn: (text, fields) => lines.push(`${text} ${JSON.stringify(fields)}`) };
  let signal: AbortSignal | undefined;
  const slow: Handler = async (_, context) => {
    signal = context.signal;
    await sleep(clock, 15_000);
    return ack();
  };
  const start = clock.monotonic();
  const outcome = await clock.until(deliver(slow, message, { ...options, log }));
  assert.equal(clock.monotonic() - start, 10_000);
  assert.equal(codeOf(outcome), 'HANDLER_TIMEOUT');
  assert.equal(signal?.aborted, true);
  assert.deepEqual(lines, []);
  await clock.advance(5_000);
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? '', /after its deadline.*"messageId":"42".*"outcome":"ack"/);
});

test('a handler that heeds its signal ends with it', async () => {
  const heeds: Handler = async (_, { signal }) => {
    await sleep(clock, 3_600_000, signal);
    throw signal.reason;
  };
  const outcome = await clock.until(deliver(heeds, message, options));
  assert.equal(codeOf(outcome), 'HANDLER_TIMEOUT');
  await clock.advance(0);
  assert.equal(clock.pending(), 0);
});

test('a delivery that is stopped is over at once, and leaves nothing behind', async () => {
  const stop = new AbortController();
  let signal: AbortSignal | undefined;
  const handler: Handler = (_, context) => {
    signal = context.signal;
    return new Promise(() => {});
  };
  const delivery = deliver(handler, message, { ...options, stop: stop.signal });
  stop.abort();
  assert.equal(codeOf(await delivery), 'DELIVERY_STOPPED');
  assert.equal(signal?.aborted, true);
  assert.equal(clock.pending(), 0);
});

test('what is not published is not done: it is delivered again, and the error says what is missing', async () => {
  const left = { topic: 't', data: Buffer.from('x'), attributes: {} };
  const outcome = await deliver(async () => ack('handled', [left]), message, options);
  assert.equal(outcome.kind, 'retry');
  assert.equal(codeOf(outcome), 'NOT_PUBLISHED');
});

test('a handler that throws late what has no text ends nothing else', async () => {
  const warnings: string[] = [];
  const log: Log = { ...silent, warn: (text, fields) => warnings.push(`${text} ${fields?.['error']}`) };
  const own = virtualClock();
  let fail = (_error: unknown): void => {};
  const handler: Handler = async () => new Promise((_resolve, reject) => (fail = reject));
  const delivered = deliver(handler, message, { ...options, clock: own, log });
  await own.advance(10_000);
  assert.equal(codeOf(await delivered), 'HANDLER_TIMEOUT');
  fail(Object.create(null));
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(warnings, ['a handler answered after its deadline object without a text']);
});
