import assert from 'node:assert/strict';
import test from 'node:test';
import { ack, deadLetter, type Outcome, retry } from '../outcome.ts';
import { settle } from './settle.ts';

test('acks what is done, and a dead letter only once it is published', () => {
  const error = new Error('no');
  assert.equal(settle(ack()), 'ack');
  assert.equal(settle(ack('duplicate')), 'ack');
  assert.equal(settle({ kind: 'deadLetter', error, published: true }), 'ack');
  assert.equal(settle(deadLetter(error)), 'nack');
  assert.equal(settle(retry(error)), 'nack');
  assert.equal(settle(retry(error, '5s')), 'nack');
});

test('never acks what holds messages that are not published', () => {
  const message = { topic: 't', data: Buffer.from('x'), attributes: {} };
  assert.equal(settle(ack('handled', [message])), 'nack');
  assert.equal(settle({ kind: 'ack', reason: 'handled', publish: [] }), 'ack');
  // A handler in JavaScript.
  for (const publish of [null, 'text', {}, 1]) {
    assert.equal(settle({ kind: 'ack', reason: 'handled', publish } as unknown as Outcome), 'nack');
  }
});
