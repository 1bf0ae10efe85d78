import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Effect } from '../effects.ts';
import { type Ended, holds, judge } from './judge.ts';

const end = (id: string, state: Ended['state'], more: Partial<Ended> = {}): Ended => ({
  id,
  kind: 'ordinary',
  state,
  isParked: false,
  wasInDoubt: false,
  ...more,
});
const did = (order: string, ...what: string[]): readonly Effect[] =>
  what.map((text) => {
    const [step = '', action] = text.split(' ');
    return { order, step, what: action === 'undo' ? 'undo' : 'do' };
  });
const ALL = ['payment', 'courier', 'kitchen', 'collect', 'notify'];

const judged = (ends: readonly Ended[], ...effects: (readonly Effect[])[]) =>
  judge(ends, { effects: effects.flat() });

test('all effects of a completed saga and none of a compensated one hold', () => {
  const report = judged(
    [end('a', 'completed'), end('b', 'compensated'), end('c', 'compensated')],
    did('a', ...ALL),
    did('b', 'payment', 'payment undo'),
  );
  assert.deepEqual(report, {
    sagas: 3,
    completed: 1,
    compensated: 2,
    parked: 0,
    effectsTwice: 0,
    halfDone: 0,
  });
  assert.ok(holds(report));
});

test('a second effect is counted, of a step and of its compensation', () => {
  const completed = judged([end('a', 'completed')], did('a', ...ALL, 'collect'));
  assert.deepEqual([completed.effectsTwice, holds(completed)], [1, false]);
  const undone = ['payment', 'payment undo', 'payment undo'];
  assert.equal(judged([end('b', 'compensated')], did('b', ...undone)).effectsTwice, 1);
});

test('an effect that is missing, or that was not taken back, is half done', () => {
  const wrong: readonly (readonly [Ended['state'], readonly string[]])[] = [
    ['completed', ALL.slice(1)],
    ['completed', ALL.slice(0, 4)],
    ['completed', []],
    ['completed', [...ALL, 'payment undo']],
    ['compensated', ['payment']],
    ['compensated', ['payment undo']],
    ['compensated', ['kitchen']],
    ['compensated', ['payment', 'payment undo', 'notify']],
  ];
  for (const [state, effects] of wrong) {
    const report = judged([end('a', state)], did('a', ...effects));
    assert.deepEqual([report.halfDone, holds(report)], [1, false], `${state}: ${effects.join()}`);
  }
});

test('an open saga, a parked one and a run without sagas do not hold', () => {
  assert.equal(holds(judged([end('a', 'running')])), false);
  assert.equal(holds(judged([end('a', 'compensating', { isParked: true })])), false);
  assert.equal(holds(judged([])), false);
  assert.throws(() => judged([end('a', 'completed')], did('b', 'payment')), /never placed: b/);
});
