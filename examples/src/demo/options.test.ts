import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseOptions } from './options.ts';

test('reads every option', () => {
  assert.deepEqual(parseOptions([]), { json: false, store: 'firestore', official: false, help: false });
  const args = ['--file', 'x', '--json', '--store', 'redis', '--redis-url', 'redis://127.0.0.1:1'];
  assert.deepEqual(parseOptions(args), {
    file: 'x',
    json: true,
    store: 'redis',
    redisUrl: 'redis://127.0.0.1:1',
    official: false,
    help: false,
  });
});

const bad: readonly (readonly [string[], RegExp])[] = [
  [['--fle', 'x'], /Unknown option '--fle'/],
  [['x.ndjson'], /Unexpected argument 'x\.ndjson'/],
  [['--file'], /'--file <value>' argument missing/],
  [['--file', ''], /--file is empty; accepted/],
  [['--store', 'mongo'], /--store is "mongo"; accepted: firestore, redis/],
  [['--store', 'redis'], /--redis-url is missing; accepted/],
  [['--redis-url', 'redis://x'], /--redis-url is given; accepted: only with --store redis/],
  [['--store', 'redis', '--redis-url', 'localhost'], /--redis-url is "localhost"; accepted: redis:/],
];

for (const [args, message] of bad) {
  test(`refuses ${JSON.stringify(args.join(' '))} in one line`, () => {
    assert.throws(
      () => parseOptions(args),
      (error: Error) => {
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /\n/);
        return true;
      },
    );
  });
}
