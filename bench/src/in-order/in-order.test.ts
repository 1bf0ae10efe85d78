/** The benchmark in small: that it runs, and that what it counts is right. Its limits of speed are for the whole one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startEmbedded } from '../servers/start.ts';
import { catchUp } from './catch-up.ts';
import { gaps } from './in-order.ts';
import { limits } from '../limits.ts';
import { inTurn, shuffled } from './stream.ts';
import { mostOfNative, throughput } from './throughput.ts';
import { connect } from './world.ts';

process.env['METADATA_SERVER_DETECTION'] = 'none';
const SMALL = {
  rounds: 1,
  shuffled: [20],
  articleMs: 1_000,
  inOrder: 30,
  inOrderWriting: 10,
  judgedBy: 'bound',
} as const;

test('measures three ways on servers of their own, and what waits for a missing number', async () => {
  const servers = await startEmbedded();
  const world = connect(servers);
  const lines: string[] = [];
  const print = (line: string): void => void lines.push(line);
  const judged = limits(print);
  try {
    const found = await throughput('small', world, SMALL, judged, print);
    const [mine] = (found as { shuffled: readonly { handled: number }[] }).shuffled;
    assert.equal(mine?.handled, 20);
    const inTurns = (found as Record<string, { native?: { handled: number } }>)['in order, push'];
    assert.equal(inTurns?.native?.handled, 30);
    assert.deepEqual(
      judged.missed().filter((line) => line.includes('deliveries each')),
      [],
    );
    const waited = [
      [5, 1],
      [10, 1],
    ] as const;
    assert.equal(((await gaps(world, waited, judged, print)) as readonly object[]).length, 2);
    assert.ok((await catchUp(servers, 30)).peakMb > 20);
  } finally {
    await world.close();
    await servers.close();
  }
});

test('shuffles every number once, none further than the window before its place', () => {
  const order = shuffled(500, 50);
  assert.deepEqual(
    order.toSorted((a, b) => a - b),
    inTurn(500),
  );
  assert.ok(order.every((number, index) => number <= index + 50));
  assert.notDeepEqual(order, inTurn(500));
});

test('says which limit is missed', () => {
  const lines: string[] = [];
  const judged = limits((line) => void lines.push(line));
  judged.atMost('a', 1, 2);
  judged.atLeast('b', 1, 2);
  assert.deepEqual(judged.missed(), ['b']);
  assert.match(lines[1] ?? '', /^MISSED b: 1.00/);
});

test('how near one can come to keys that are acknowledged without a write', () => {
  const native = { outstanding: 50, perSecond: 2_500 };
  // 20 ms each without a write, 40 with it.
  assert.equal(mostOfNative({ outstanding: 50 }, native, 20), 0.5);
  assert.equal(mostOfNative({ outstanding: 100 }, native, 20), 1);
});
