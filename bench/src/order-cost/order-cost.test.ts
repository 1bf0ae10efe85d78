/** The benchmark on a small scale, and what it counts by. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startFirestore, systemClock } from 'pubsub-guarantees-emulator';
import { limits } from '../limits.ts';
import { billed } from './billed.ts';
import { costsAt } from './order-cost.ts';
import { shuffled } from './streams.ts';

// There is no metadata server to look for.
process.env['METADATA_SERVER_DETECTION'] = 'none';

const field = (number: number, bytes: Buffer = Buffer.from('x')): Buffer =>
  Buffer.concat([Buffer.from([number * 8 + 2, bytes.length]), bytes]);
const framed = (...messages: readonly Buffer[]): Buffer =>
  Buffer.concat(
    messages.flatMap((message) => [
      Buffer.from([0]),
      Buffer.from(Uint32Array.of(message.length).buffer).reverse(),
      message,
    ]),
  );
const service = '/google.firestore.v1.Firestore';

test('a commit is billed for each write and each delete, in whatever pieces it arrives', () => {
  const write = (kind: number): Buffer => field(2, field(kind));
  const bytes = framed(Buffer.concat([field(1), write(1), write(2), write(6), write(2), field(3)]));
  const call = billed(`${service}/Commit`);
  for (const byte of bytes) call.sent(Buffer.from([byte]));
  call.answered(framed(field(1), field(2)));
  assert.deepEqual(call.operations(), { reads: 0, writes: 2, deletes: 2 });
});

test('a read is billed for each document, also a missing one, and a query that finds nothing for one', () => {
  const get = billed(`${service}/BatchGetDocuments`);
  get.sent(framed(Buffer.concat([field(1), field(2), field(2)])));
  get.answered(framed(field(3), field(1), field(2)));
  assert.deepEqual(get.operations(), { reads: 2, writes: 0, deletes: 0 });
  const query = billed(`${service}/RunQuery`);
  query.answered(framed(field(2), field(3)));
  assert.equal(query.operations().reads, 1);
  query.answered(framed(field(1), field(1)));
  assert.equal(query.operations().reads, 2);
});

test('what cannot be counted is an error', () => {
  assert.throws(() => billed(`${service}/Listen`), /Listen is not known/);
  assert.throws(() => billed(`${service}/Commit`).sent(framed(field(2, field(9)))), /unknown kind/);
  assert.throws(() => billed(`${service}/Commit`).sent(framed(Buffer.from([0x12, 9]))), /too early/);
  assert.throws(() => billed(`${service}/Commit`).sent(Buffer.from([1, 0, 0, 0, 0])), /compressed/);
});

test('shuffled numbers are all there, the same in every run, and none is overtaken from beyond the window', () => {
  const order = shuffled(500, 50);
  assert.deepEqual(order, shuffled(500, 50));
  assert.deepEqual(
    order.toSorted((a, b) => a - b),
    shuffled(500, 0),
  );
  assert.notDeepEqual(order, shuffled(500, 0));
  for (const [place, number] of order.entries()) {
    for (const later of order.slice(place)) assert.ok(number - later < 50, `${number} before ${later}`);
  }
});

test('the benchmark runs on a small scale, and a message in turn is counted as two writes, and one read of its stream', async () => {
  const server = await startFirestore({ clock: systemClock() });
  const lines: string[] = [];
  try {
    const judged = limits((line) => lines.push(line));
    const sizes = {
      warmUp: { name: '', messages: 5, window: 0, outstanding: 1 },
      cases: [{ name: 'in turn', messages: 20, window: 0, outstanding: 1, most: 1.9 }],
      lengths: [{ messages: [20, 40], window: 0, outstanding: 20 }],
      keys: { keys: 3, messages: 10, window: 5, outstanding: 2 },
    };
    const found = await costsAt('test', server.port, sizes, judged, (line) => lines.push(line));
    assert.partialDeepStrictEqual(found, {
      // 20 messages: the stream is read once.
      'in turn': { operations: 2.05, reads: 0.05, writes: 2, deletes: 0, deliveries: 1 },
    });
    assert.equal(judged.missed()[0], 'test: in turn');
    assert.equal(lines.filter((line) => /^(met|MISSED) /.test(line)).length, 5, lines.join('\n'));
  } finally {
    await server.close();
  }
});
