/**
 * What a message keeps on each way through the queue: in its task, in the ledger, in the payload store, over hops.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualClock } from '../../../shared/src/testing/virtual-clock.ts';
import { memoryPayloads } from '../../../shared/src/payload/memory.ts';
import { play, reasonOf, START } from '../schedules/play.ts';
import { encodeDelayed } from '../../../shared/src/tasks/task-body.ts';

const TRACEPARENT = '00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01';
const [SECOND, DAYS_40] = ['1', String(40 * 86_400)];

type Way = Readonly<{ scheduleKey?: string; ledgerFor?: 'keys' | 'all'; bytes: number; delay: string }>;
const WAYS: Readonly<Record<string, Way>> = {
  'in its task': { bytes: 5, delay: SECOND },
  'in its task, over a hop': { bytes: 5, delay: DAYS_40 },
  'in the payload store': { bytes: 200_000, delay: SECOND },
  'in the payload store, over a hop': { bytes: 200_000, delay: DAYS_40 },
  'in the ledger by its key': { scheduleKey: 'k', bytes: 5, delay: SECOND },
  'in the ledger and the payload store': { scheduleKey: 'k', bytes: 200_000, delay: DAYS_40 },
  'in the ledger as every message': { ledgerFor: 'all', bytes: 5, delay: SECOND },
  'in the ledger as every message, and the payload store': {
    ledgerFor: 'all',
    bytes: 200_000,
    delay: SECOND,
  },
};

function through({ ledgerFor = 'keys' }: Way) {
  const payloads = memoryPayloads({ clock: virtualClock(START) });
  return play({ payloads, ledgerFor });
}

for (const [name, way] of Object.entries(WAYS)) {
  const { scheduleKey, bytes, delay } = way;
  test(`B25, B29, B56: bytes, ordering key and trace come through ${name}, without the attributes that the service reserves`, async () => {
    const { clock, deliver, message, target } = through(way);
    const given = Object.freeze({
      delay,
      ...(scheduleKey !== undefined && { scheduleKey }),
      tenant: 'Łódź 日本 🚀',
      googclient_traceparent: TRACEPARENT,
      GoogFoo: 'x',
    });
    const data = Buffer.alloc(bytes, Buffer.from('00fffe80c328', 'hex'));
    const received = { ...message(given), data, orderingKey: 'k1' };
    assert.equal(reasonOf(await deliver(received)), 'scheduled');
    await clock.advance(Number(delay) * 1_000 - 1);
    assert.equal(target.published.length, 0);
    await clock.advance(1);
    assert.equal(target.published.length, 1);
    const { attributes, orderingKey, data: arrived } = target.published[0]!;
    assert.ok(Buffer.from(arrived).equals(data));
    const { dedupId, deliveredAfter, originPublishTime, ...rest } = attributes;
    assert.deepEqual(rest, { tenant: 'Łódź 日本 🚀', traceparent: TRACEPARENT });
    assert.equal(orderingKey, 'k1');
    assert.ok(dedupId && deliveredAfter && originPublishTime);
  });

  test(`B29: an empty ordering key is none, and a message without data stays without, ${name}`, async () => {
    const { clock, deliver, message, target } = through(way);
    const options = { delay, ...(scheduleKey !== undefined && { scheduleKey }) };
    // In place of data, attributes that no task has room for.
    const many = bytes < 100_000 ? { a: 'x' } : fill();
    const received = { ...message({ ...options, ...many }), data: Buffer.alloc(0), orderingKey: '' };
    assert.equal(reasonOf(await deliver(received)), 'scheduled');
    await clock.advance(Number(delay) * 1_000);
    const { data, attributes, ...rest } = target.published[0]!;
    assert.deepEqual([data.length, 'orderingKey' in rest], [0, false]);
    for (const [key, value] of Object.entries(many)) assert.equal(attributes[key], value);
  });
}

/** Most of what may be: 95 attributes of 1,024 bytes and long names. */
const fill = (): Record<string, string> =>
  Object.fromEntries(Array.from({ length: 95 }, (_, n) => [`${n}`.padStart(256, 'k'), 'v'.repeat(1_024)]));

test('B27: what is over a limit of Pub/Sub is not published when it is due: limits are checked again', async () => {
  const { clock, dispatch, message, target, dead } = play();
  const cases: readonly (readonly [Record<string, string>, string?])[] = [
    [{ a: 'é'.repeat(513) }],
    [{ a: '日'.repeat(342) }],
    [{ ['k'.repeat(257)]: 'x' }],
    [{ a: 'x' }, 'k'.repeat(1_025)],
    [Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`a${n}`, 'x']))],
  ];
  for (const [attributes, orderingKey] of cases) {
    const whole = { ...message(attributes), ...(orderingKey !== undefined && { orderingKey }) };
    const start = { key: 'k', topic: 'projects/p/topics/out', attempt: 0, hop: 0 };
    const body = encodeDelayed({ ...start, dueTimeMs: START, scheduleTimeMs: START, message: whole });
    const run = dispatch({ name: 'n', scheduleTimeMs: START, body });
    assert.deepEqual(await clock.until(run), { status: 200 });
  }
  assert.deepEqual(target.published, []);
  assert.deepEqual(
    dead.published.map(({ attributes }) => attributes['deadLetterReason']),
    cases.map(() => 'LIMIT_EXCEEDED'),
  );
});
