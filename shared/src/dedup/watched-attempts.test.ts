import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unlessAborted } from './watched-attempts.ts';

test('work under a signal that is aborted already is not begun', async () => {
  const over = new AbortController();
  over.abort(new Error('lease lost'));
  let runs = 0;
  const work = async (): Promise<string> => {
    runs += 1;
    return 'done';
  };
  await assert.rejects(unlessAborted(over.signal, work), /lease lost/);
  assert.equal(runs, 0);
});

test('work ends with the signal, and otherwise as it ends', async () => {
  const over = new AbortController();
  assert.equal(await unlessAborted(over.signal, async () => 'done'), 'done');
  const never = unlessAborted(over.signal, () => new Promise(() => {}));
  over.abort(new Error('lease lost'));
  await assert.rejects(never, /lease lost/);
});
