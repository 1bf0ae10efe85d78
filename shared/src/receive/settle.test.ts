import assert from 'node:assert/strict';
import test from 'node:test';
import { ack, deadLetter, retry } from '../outcome.ts';
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
