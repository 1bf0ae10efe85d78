/**
 * The whole toolkit with a store that answers ten times as slowly as Firestore usually does: the stack's own limits
 * must leave room for that, or nothing runs and nothing says so.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { laterFixture } from './later-fixture.ts';
import { until } from '../until.ts';
import { startToolkit } from './toolkit.ts';

const STORE_MS = 400;
const KEYS = 4;
const NUMBERS = 3;

test('pipeline runs whole streams, in order, while each call of the store takes 400 ms', async (t) => {
  const lines: string[] = [];
  const stack = await startToolkit({ log: (line) => lines.push(line) });
  t.after(() => stack.close());
  const { post, pulled } = laterFixture(() => stack);
  stack.faults.set({
    rules: [{ service: 'firestore', method: '*', action: { type: 'delay', ms: STORE_MS } }],
  });
  const messages = Array.from({ length: KEYS * NUMBERS }, (_, index) => ({
    data: Buffer.from('x').toString('base64'),
    attributes: { sequenceKey: `key-${index % KEYS}`, sequence: String(1 + Math.floor(index / KEYS)) },
  }));
  await post('v1/projects/PROJECT/topics/pipeline-in:publish', { messages });
  const arrivedByKey = new Map<string, number[]>();
  /** In the order in which they came first: on a busy machine a run may be repeated. */
  const firstsOf = (key: string): readonly number[] => [...new Set(arrivedByKey.get(key))];
  const keys = Array.from({ length: KEYS }, (_, index) => `key-${index}`);
  // The lease of 6 s that the stack once had ran one of them in half a minute.
  await until(
    async () => {
      for (const { attributes } of await pulled('pipeline-out-sub')) {
        const { sequenceKey = '', sequence } = attributes;
        arrivedByKey.set(sequenceKey, [...(arrivedByKey.get(sequenceKey) ?? []), Number(sequence)]);
      }
      return keys.every((key) => firstsOf(key).length === NUMBERS);
    },
    () => `all arrive: ${JSON.stringify([...arrivedByKey])}\n${lines.slice(-10).join('\n')}`,
  );
  for (const key of keys) assert.deepEqual(firstsOf(key), [1, 2, 3], key);
});
