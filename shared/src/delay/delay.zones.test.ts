import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { compose, type Context } from '../handler.ts';
import { silent } from '../log.ts';
import { ack, type Outcome } from '../outcome.ts';
import type { Duration } from '../duration.ts';
import { PermanentError } from '../errors.ts';
import type { OutgoingMessage } from '../message.ts';
import { type MessageParts, outgoing } from '../publish/compose-message.ts';
import { virtualClock } from '../testing/virtual-clock.ts';
import { delay } from './delay.ts';
import { memoryTasks } from '../tasks/memory.ts';
import { LONGEST_HOP_MS } from '../tasks/timing.ts';

/** Minutes west of Greenwich in January, to see that the zone really is in force. */
const ZONES = { UTC: 0, 'America/New_York': 300, 'Asia/Kolkata': -330 };
const PUBLISHED = Date.UTC(2026, 0, 1, 12);
const original = process.env['TZ'];

afterEach(() => {
  if (original === undefined) delete process.env['TZ'];
  else process.env['TZ'] = original;
});

/** The outcome, and the schedule time if a task was made. */
async function deliver(attributes: Record<string, string>, skewMs = 0): Promise<readonly [Outcome, number?]> {
  const clock = virtualClock(PUBLISHED);
  const queue = memoryTasks({ clock });
  const ahead = { ...clock, now: () => clock.now() + skewMs };
  const handler = compose(
    async () => ack(),
    [delay(queue, { clock: ahead, topic: 'projects/p/topics/out' })],
  );
  const message = { id: '7', data: Buffer.from('x'), attributes, publishTime: new Date(PUBLISHED) };
  const context = { consumer: 'c', source: 's', log: silent } as unknown as Context;
  const outcome = await handler(message, context);
  const [task] = queue.created;
  return task === undefined ? [outcome] : [outcome, task.scheduleTimeMs];
}

/** What the publisher's helper makes of it. */
const publish = (parts: MessageParts): OutgoingMessage =>
  outgoing('out', { data: 'x', ...parts }, { clock: { now: () => PUBLISHED } });

for (const [zone, offset] of Object.entries(ZONES)) {
  const inZone = (): void => {
    process.env['TZ'] = zone;
    assert.equal(new Date(Date.UTC(2026, 0, 1)).getTimezoneOffset(), offset);
  };

  test(`B41: nonsense in delay and deliverAt goes to the dead letters, under TZ=${zone}`, async () => {
    inZone();
    const delays = [
      '-1',
      '-1767225600001',
      '1.5',
      '1e3',
      '0x10',
      ' 60 ',
      '',
      'NaN',
      'Infinity',
      '60s',
      'PT1H',
    ];
    delays.push('1774661400000', '+60', '060', '６０', '315360001', '999999999', 'null');
    for (const value of delays) {
      const [outcome, scheduled] = await deliver({ delay: value });
      assert.equal(outcome.kind, 'deadLetter', value);
      assert.throws(() => publish({ attributes: { delay: value } }), PermanentError, value);
      assert.match(String((outcome as { error: Error }).error.message), /^attribute delay is .*; accepted: /);
      assert.equal(scheduled, undefined);
    }
    const times = ['2026-03-29T02:30:00', '2026-03-29', '2026-03-29 02:30:00Z', 'tomorrow', '1774661400', ''];
    times.push(
      '2026-02-30T00:00:00Z',
      '2026-13-01T00:00:00Z',
      '9999-12-31T23:59:59Z',
      '2036-01-01T12:00:00Z',
    );
    for (const value of times) {
      const [outcome, scheduled] = await deliver({ deliverAt: value });
      assert.equal(outcome.kind, 'deadLetter', value);
      assert.throws(() => publish({ deliverAt: value }), PermanentError, value);
      assert.equal(scheduled, undefined);
    }
    assert.equal((await deliver({ delay: '60', deliverAt: '2026-03-29T02:30:00Z' }))[0].kind, 'deadLetter');
  });

  test(`B41: the helper refuses numbers that are no delay, and a Date means its due time, under TZ=${zone}`, () => {
    inZone();
    for (const delay of [-1, -1_767_225_600_001, NaN, Infinity, 1_774_661_400_000, 315_360_001]) {
      assert.throws(() => publish({ delay }), PermanentError, String(delay));
    }
    for (const delay of ['PT1H', '-1s', '1.5s', ' 60s', '60'] as unknown as Duration[]) {
      assert.throws(() => publish({ delay }), PermanentError, delay);
    }
    assert.throws(() => publish({ deliverAt: new Date(NaN) }), PermanentError);
    assert.equal(publish({ delay: '60s' }).attributes['delay'], '60');
    const deliverAt = new Date('2026-03-29T02:30:00+01:00');
    assert.equal(
      Date.parse(publish({ deliverAt }).attributes['deliverAt'] ?? ''),
      Date.UTC(2026, 2, 29, 1, 30),
    );
  });

  test(`B41: what is legal means the same time, under TZ=${zone}`, async () => {
    inZone();
    assert.deepEqual(await deliver({ delay: '0' }), [ack()]);
    assert.deepEqual(await deliver({}), [ack()]);
    assert.deepEqual(await deliver({ deliverAt: '1969-12-31T23:59:59Z' }), [ack()]);
    assert.deepEqual(await deliver({ deliverAt: '2025-12-31T23:00:00-05:00' }), [ack()]);
    assert.deepEqual(await deliver({ delay: '60000' }), [ack('scheduled'), PUBLISHED + 60_000_000]);
    for (const [text, instant] of [
      ['2026-01-02T02:30:00+01:00', Date.UTC(2026, 0, 2, 1, 30)],
      ['2026-01-25T02:30:00Z', Date.UTC(2026, 0, 25, 2, 30)],
      ['2026-01-25T02:30:00.0000001Z', Date.UTC(2026, 0, 25, 2, 30) + 1],
      ['2026-01-01T12:00:29.5Z', PUBLISHED + 29_500],
    ] as const) {
      assert.deepEqual(await deliver({ deliverAt: text }), [ack('scheduled'), instant], text);
    }
    // Hours that a zone skips or has twice are ordinary times once the offset is written.
    for (const text of ['2026-03-29T02:30:00+01:00', '2026-10-25T02:30:00Z']) {
      assert.deepEqual(
        await deliver({ deliverAt: text }),
        [ack('scheduled'), PUBLISHED + LONGEST_HOP_MS],
        text,
      );
    }
  });

  test(`B22: 30 days and more are neither refused nor cut short to an early delivery, under TZ=${zone}`, async () => {
    inZone();
    // Whatever the stage's clock says: the queue takes no more than 30 days from now by its own.
    for (const skewMs of [0, 5_000, 20 * 3_600_000]) {
      for (const seconds of [2_591_999, 2_592_000, 2_592_001, 7_776_000, 315_360_000]) {
        const [outcome, scheduled] = await deliver({ delay: String(seconds) }, skewMs);
        assert.deepEqual(outcome, ack('scheduled'));
        assert.equal(scheduled, PUBLISHED + LONGEST_HOP_MS);
      }
      const [, scheduled] = await deliver({ delay: String(29.5 * 86_400) }, skewMs);
      assert.equal(scheduled, PUBLISHED + 29.5 * 86_400_000);
    }
  });
}
