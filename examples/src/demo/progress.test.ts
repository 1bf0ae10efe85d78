import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualClock } from 'pubsub-guarantees/testing';
import { progressOn } from './progress.ts';

test('on a terminal it rewrites one line that fits, and takes it away', () => {
  const written: string[] = [];
  const progress = progressOn({ isTTY: true, columns: 6, write: (text) => written.push(text) }, () => 0);
  progress.show('one');
  progress.show('one');
  progress.show('much too long');
  progress.close();
  progress.close();
  assert.deepEqual(written, ['\r\u001B[Kone', '\r\u001B[Kmuch ', '\r\u001B[K']);
});

test('elsewhere it writes a line every few seconds', async () => {
  const clock = virtualClock();
  const written: string[] = [];
  const progress = progressOn({ write: (text) => written.push(text) }, clock.monotonic);
  for (let second = 0; second < 7; second += 1) {
    progress.show(`second ${second}`);
    await clock.advance(1_000);
  }
  progress.close();
  assert.deepEqual(written, ['second 0\n', 'second 3\n', 'second 6\n']);
});
