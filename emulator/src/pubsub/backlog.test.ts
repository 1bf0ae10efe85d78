import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createBacklog, type Entry } from './backlog.ts';
import { alarm, createDeadlines } from './deadlines.ts';
import { linkedQueue } from './linked-queue.ts';
import { manualClock } from '../manual-clock.ts';

const room = { messages: 3, bytes: Infinity, oversize: true, oneOfAKey: false, turn: 100 };

test('alarms go off at their times and in order, moved and removed ones as they stand', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.record({
          alarm: fc.nat(39),
          act: fc.constantFrom(
            'set' as const,
            'set' as const,
            'set' as const,
            'remove' as const,
            'wait' as const,
          ),
          by: fc.nat(500),
        }),
        { maxLength: 250, size: 'max' },
      ),
      (steps) => {
        const clock = manualClock(0);
        const fired: string[] = [];
        const expected: string[] = [];
        const model = new Map<number, { at: number; order: number }>();
        const deadlines = createDeadlines(clock, () => {});
        const alarms = Array.from({ length: 40 }, (_, id) => alarm(() => fired.push(`${id}@${clock.now()}`)));
        steps.forEach(({ alarm: id, act, by }, order) => {
          if (act === 'set') {
            deadlines.set(alarms[id]!, clock.now() + by + 1);
            model.set(id, { at: clock.now() + by + 1, order });
          } else if (act === 'remove') {
            deadlines.remove(alarms[id]!);
            model.delete(id);
          } else {
            const end = clock.now() + by;
            const due = [...model].filter(([, { at }]) => at <= end);
            due.sort(([, a], [, b]) => a.at - b.at || a.order - b.order);
            for (const [gone, { at }] of due) {
              expected.push(`${gone}@${at}`);
              model.delete(gone);
            }
            clock.advance(by);
          }
        });
        assert.deepEqual(fired, expected);
        deadlines.close();
        assert.equal(clock.timers(), 0);
      },
    ),
  );
});

test('an alarm that another one of the same time removed does not go off', () => {
  const clock = manualClock(0);
  const fired: string[] = [];
  const deadlines = createDeadlines(clock, () => fired.push('after'));
  const second = alarm(() => fired.push('second'));
  const first = alarm(() => {
    fired.push('first');
    deadlines.remove(second);
  });
  deadlines.set(first, 10);
  deadlines.set(second, 10);
  clock.advance(10);
  assert.deepEqual(fired, ['first', 'after']);
});

test('a queue gives back what was put in, from either end', () => {
  const queue = linkedQueue<number>();
  queue.push(2);
  queue.pushFront(1);
  queue.push(3);
  assert.deepEqual([queue.size(), queue.peek()], [3, 1]);
  assert.deepEqual([queue.shift(), queue.shift(), queue.shift(), queue.shift()], [1, 2, 3, undefined]);
  queue.pushFront(4);
  queue.push(5);
  assert.deepEqual([queue.shift(), queue.shift(), queue.size()], [4, 5, 0]);
});

test('whatever is taken, done, or put back: no message is lost, and no key is ever out of order', () => {
  const step = fc.record({
    act: fc.constantFrom('add' as const, 'take' as const, 'done' as const, 'back' as const, 'wait' as const),
    key: fc.constantFrom('', 'a', 'b'),
    pick: fc.nat(1000),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120, size: 'max' }), (steps) => {
      const clock = manualClock(0);
      const [deadlines, others] = [createDeadlines(clock, () => {}), createDeadlines(clock, () => {})];
      const backlog = createBacklog(true);
      const out: Entry[] = [];
      const done = new Set<Entry>();
      let added = 0;
      const take = (): void => {
        const before = new Set(out.map(({ line }) => line));
        const taken = backlog.take(room, () => false);
        for (const entry of taken) {
          const { line, serial } = entry;
          if (line === undefined) continue;
          assert.ok(!before.has(line), 'delivered while an earlier run is outstanding');
          assert.ok(
            [...done].every((other) => other.line !== line || other.serial !== serial),
            'delivered after it was done',
          );
        }
        for (const key of ['a', 'b']) {
          const serials = taken
            .filter((entry) => entry.message.orderingKey === key)
            .map(({ serial }) => serial);
          assert.deepEqual(
            serials,
            serials.toSorted((x, y) => x - y),
          );
          const finished = [...done].filter((entry) => entry.message.orderingKey === key).length;
          // Nothing of the key that is not done yet comes before the first of a run.
          const [first] = serials;
          if (first !== undefined) {
            assert.equal(order.get(key)?.indexOf(first), finished - skipped(key, first));
          }
        }
        out.push(...taken);
      };
      const order = new Map<string, number[]>([
        ['a', []],
        ['b', []],
      ]);
      /** Later ones of a key may be done before an earlier one that was put back. */
      const skipped = (key: string, serial: number): number =>
        [...done].filter((entry) => entry.message.orderingKey === key && entry.serial > serial).length;
      for (const { act, key, pick } of steps) {
        if (act === 'add') {
          order.get(key)?.push(added);
          added += 1;
          const message = {
            data: Buffer.of(1),
            attributes: {},
            messageId: '',
            publishTime: null,
            orderingKey: key,
          };
          backlog.add({ message, publishTimeMs: 0, bytes: 1 });
        } else if (act === 'take') take();
        else if (act === 'wait') clock.advance(pick);
        else {
          const [entry] = out.splice(pick % Math.max(out.length, 1), 1);
          if (entry === undefined) continue;
          if (act === 'done') {
            backlog.done(entry);
            done.add(entry);
          } else {
            for (const later of backlog.putBack(
              entry,
              pick % 2 === 0
                ? undefined
                : { at: clock.now() + pick, among: pick % 3 === 0 ? others : deadlines },
            ))
              out.splice(out.indexOf(later), 1);
          }
        }
        assert.equal(backlog.size() + out.length + done.size, added);
      }
      for (let round = 0; round < 200 && done.size < added; round += 1) {
        clock.advance(1000);
        for (const entry of out.splice(0)) {
          backlog.done(entry);
          done.add(entry);
        }
        take();
      }
      assert.equal(done.size, added);
    }),
    { numRuns: 300 },
  );
});
