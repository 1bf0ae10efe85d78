import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jsonLog, silent } from '../log.ts';
import { memoryPayloads } from '../payload/memory.ts';
import { virtualClock } from '../testing/index.ts';
import { bytesFor, bytesInFlight, payloadsThatFit } from './bytes-in-flight.ts';

const room = (limit: number, lines?: string[]) =>
  bytesInFlight({
    limit,
    clock: virtualClock(),
    log: lines === undefined ? silent : jsonLog((line) => lines.push(line)),
    capability: 'delivery',
  });

/** A request that holds what it could take until the test releases it. */
function request(of: ReturnType<typeof room>, ...bytes: number[]) {
  let end = (): void => undefined;
  const held = new Promise<void>((resolve) => (end = resolve));
  const took: boolean[] = [];
  const done = of.during(async () => {
    for (const each of bytes) took.push(of.take(each));
    await held;
  });
  return {
    took,
    async end() {
      end();
      await done;
    },
  };
}

test('what fits is taken, what does not is refused, and what is done makes room', async () => {
  const of = room(100);
  const [first, second] = [request(of, 60), request(of, 40)];
  assert.deepEqual([first.took, second.took, request(of, 1).took], [[true], [true], [false]]);
  await first.end();
  assert.deepEqual([request(of, 60).took, request(of, 1).took], [[true], [false]]);
});

test('one alone is taken whatever its size, in parts as well, and keeps the others out', async () => {
  const of = room(100);
  const large = request(of, 90, 90);
  assert.deepEqual([large.took, request(of, 1).took], [[true, true], [false]]);
  await large.end();
  assert.deepEqual(request(of, 1).took, [true]);
});

test('one that is refused a second part keeps its first, and gives it back', async () => {
  const of = room(100);
  const other = request(of, 50);
  const parts = request(of, 40, 40);
  assert.deepEqual(parts.took, [true, false]);
  await parts.end();
  assert.deepEqual(request(of, 50).took, [true]);
  await other.end();
});

test('work that fails gives back what it took', async () => {
  const of = room(100);
  const failing = of.during(async () => {
    of.take(100);
    throw new Error('no');
  });
  await assert.rejects(failing, /no/);
  const [whole, more] = [request(of, 100), request(of, 1)];
  assert.deepEqual([whole.took, more.took], [[true], [false]]);
});

test('a burst of refusals is one line of the log, with the event that an alert waits for', () => {
  const lines: string[] = [];
  const of = room(10, lines);
  request(of, 10);
  for (let left = 5; left > 0; left -= 1) request(of, 10);
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? '', /"event":"memory_full","bytes":10,"inFlightBytes":10,"acceptedBytes":10/);
});

test('a payload that does not fit is not loaded, and is asked for again later', async () => {
  const payloads = memoryPayloads({ clock: virtualClock() });
  const ref = await payloads.put('owner', Buffer.alloc(50), 0);
  const of = room(100);
  const fits = payloadsThatFit(payloads, of);
  const other = request(of, 60);
  await assert.rejects(
    of.during(() => fits.get(ref)),
    { code: 'MEMORY_FULL' },
  );
  await other.end();
  assert.equal((await of.during(() => fits.get(ref))).length, 50);
});

test('the memory of a default instance has room for five of the largest messages, and the smallest for one', () => {
  const mebibyte = 1_048_576;
  assert.equal(Math.floor(bytesFor(512 * mebibyte) / mebibyte), 70);
  assert.equal(bytesFor(128 * mebibyte), 14 * mebibyte);
});
