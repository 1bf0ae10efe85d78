import assert from 'node:assert/strict';
import test from 'node:test';
import { PermanentError } from './errors.ts';
import { compose, type Context, type Handler, type Middleware } from './handler.ts';
import { silent } from './log.ts';
import type { Message } from './message.ts';
import { ack, type Outcome } from './outcome.ts';

const message: Message = { id: '1', data: Buffer.alloc(0), attributes: {}, publishTime: new Date(0) };
const context: Context = {
  consumer: 'c',
  source: 's',
  now: () => 0,
  deadline: Infinity,
  signal: new AbortController().signal,
  log: silent,
};

test('runs middleware from the outermost to the innermost, and back', async () => {
  const steps: string[] = [];
  const layer =
    (name: string): Middleware =>
    (next) =>
    async (...args) => {
      steps.push(`${name} in`);
      const outcome = await next(...args);
      steps.push(`${name} out`);
      return outcome;
    };
  const handler = compose(async () => ack(), [layer('outer'), layer('inner')]);
  assert.deepEqual(await handler(message, context), { kind: 'ack', reason: 'handled' });
  assert.deepEqual(steps, ['outer in', 'inner in', 'inner out', 'outer out']);
});

test('a middleware sees an outcome, never an exception', async () => {
  const seen: Outcome[] = [];
  const watch: Middleware =
    (next) =>
    async (...args) => {
      const outcome = await next(...args);
      seen.push(outcome);
      return outcome;
    };
  const permanent = new PermanentError('NO', 'no');
  const failures: readonly Handler[] = [
    async () => Promise.reject(permanent),
    async () => Promise.reject(new Error('later')),
    () => {
      throw new TypeError('not even a promise');
    },
  ];
  for (const failure of failures) await compose(failure, [watch])(message, context);
  assert.deepEqual(
    seen.map(({ kind }) => kind),
    ['deadLetter', 'retry', 'retry'],
  );
  assert.equal(seen[0]?.kind === 'deadLetter' && seen[0].error, permanent);
});

test('a middleware that throws is an outcome too', async () => {
  const broken: Middleware = () => async () => Promise.reject(new Error('broken'));
  const outcome = await compose(async () => ack(), [broken])(message, context);
  assert.equal(outcome.kind, 'retry');
});

test('a handler without a return is not done: the message is retried, with the reason', async () => {
  for (const answer of [undefined, null, true, 'ack', {}, { kind: 'done' }]) {
    const handler = compose((async () => answer) as unknown as Handler, []);
    const outcome = await handler(message, context);
    assert.equal(outcome.kind, 'retry');
    assert.equal(outcome.kind === 'retry' && (outcome.error as { code?: string }).code, 'NO_OUTCOME');
  }
});
