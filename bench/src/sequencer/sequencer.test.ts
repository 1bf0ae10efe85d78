/** The benchmark on a small scale, and what it must notice. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startFirestore, systemClock } from 'pubsub-guarantees-emulator';
import { limits } from '../limits.ts';
import { check } from './publishing.ts';
import { numbersAt } from './sequencer.ts';

// There is no metadata server to look for.
process.env['METADATA_SERVER_DETECTION'] = 'none';

test('a number that was given twice, a missing one and what is no number end the run', () => {
  check('x', [3, 1, 2], true);
  check('x', [4, 1, 2], false);
  assert.throws(() => check('x', [1, 2, 2], false), /2 was given twice/);
  assert.throws(() => check('x', [1, 3], true), /2 was not given/);
  assert.throws(() => check('x', [2, 3], true), /1 was not given/);
  assert.throws(() => check('x', [1, Number.NaN], false), /no number/);
});

test('the benchmark runs on a small scale, with every way in processes of their own', async () => {
  const server = await startFirestore({ clock: systemClock() });
  const lines: string[] = [];
  try {
    const judged = limits((line) => lines.push(line));
    const sizes = { rounds: 1, windowMs: 1_000, processes: 2, publishers: 5, callers: [2] };
    const found = await numbersAt('test', server.port, sizes, judged, (line) => lines.push(line));
    assert.partialDeepStrictEqual(found, { ours: [{ failed: 0, unanswered: 0 }] });
    const text = lines.join('\n');
    assert.match(text, /sequencer, 2 × 5 publishers +[1-9]/);
    assert.match(text, /outbox without a transaction, 2 × 5 publishers +[1-9]/);
    assert.match(text, /outbox in a caller's transaction, 2 at once +[1-9]/);
    assert.match(text, /met +test: publishes that failed/);
  } finally {
    await server.close();
  }
});
