import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Attributes, LIMITS, messageBytes } from '../message.ts';
import { annotate } from './annotate.ts';

const message = (attributes: Attributes) => ({ topic: 't', data: new Uint8Array(), attributes });
const many = (count: number): Attributes =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, 'v']));
const OURS = [{ first: '1' }, { pair: '2', ofTwo: '2' }, { third: '3' }];

test('writes all annotations where there is room, and drops none', () => {
  const { message: annotated, dropped } = annotate(message({ own: 'x' }), OURS);
  assert.deepEqual(annotated.attributes, { own: 'x', first: '1', pair: '2', ofTwo: '2', third: '3' });
  assert.deepEqual(dropped, []);
});

test('drops from the least needed on, a pair as a whole, and never what the publisher wrote', () => {
  const kept = (count: number) => {
    const { message: annotated, dropped } = annotate(message(many(count)), OURS);
    assert.equal(Object.keys(annotated.attributes).filter((key) => key.startsWith('k')).length, count);
    return [Object.keys(annotated.attributes).length - count, dropped];
  };
  assert.deepEqual(kept(LIMITS.attributes - 4), [4, []]);
  assert.deepEqual(kept(LIMITS.attributes - 3), [3, ['third']]);
  assert.deepEqual(kept(LIMITS.attributes - 2), [1, ['pair', 'ofTwo', 'third']]);
  assert.deepEqual(kept(LIMITS.attributes), [0, ['first', 'pair', 'ofTwo', 'third']]);
});

test('counts bytes too, and leaves a message that is too large by itself to the check before the publish', () => {
  const own = message({ own: 'x' });
  const room = messageBytes(own);
  assert.deepEqual(annotate(own, OURS, room + 'first1'.length).dropped, ['pair', 'ofTwo', 'third']);
  assert.deepEqual(annotate(own, OURS, room - 1), {
    message: own,
    dropped: ['first', 'pair', 'ofTwo', 'third'],
  });
});

test('an annotation replaces what the message carries under its name, and an empty one is nothing', () => {
  const { message: annotated, dropped } = annotate(message({ first: 'old' }), [{}, { first: 'new' }]);
  assert.deepEqual(annotated.attributes, { first: 'new' });
  assert.deepEqual(dropped, []);
  assert.equal(annotate(message({ ...many(99), first: 'old' }), [{ first: 'new' }]).dropped.length, 0);
});
