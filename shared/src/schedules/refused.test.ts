import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deadLettering } from '../dead-letter/dead-lettering.ts';
import { PermanentError } from '../errors.ts';
import { compose, type Context } from '../handler.ts';
import { silent } from '../log.ts';
import { memoryPayloads } from '../payload/memory.ts';
import type { PayloadRef, PayloadRoom } from '../payload/payload-room.ts';
import { memoryPublisher } from '../testing/memory-publisher.ts';
import { virtualClock } from '../testing/virtual-clock.ts';
import { play, reasonOf, SOURCE, START } from './testing/play.ts';

/** The stage as a function has it, before a queue that takes no task until `mended()`. */
function refusing(onDone: (payload: PayloadRef) => void = () => {}) {
  let isMended = false;
  const room = memoryPayloads({ clock: virtualClock(START) });
  const payloads: PayloadRoom = {
    ...room,
    async done(payload) {
      onDone(payload);
      return room.done(payload);
    },
  };
  const stage = play({
    payloads,
    wrapQueue: (tasks) => ({
      ...tasks,
      async create(task) {
        if (isMended) return tasks.create(task);
        throw new PermanentError('TASK_REFUSED', 'does not take this task');
      },
    }),
  });
  const dead = memoryPublisher();
  const handler = compose((message) => stage.handle(message), [deadLettering(dead, 'dead-letters')]);
  const context = { consumer: 'delay', source: SOURCE, log: silent } as unknown as Context;
  const deliver = (message: ReturnType<typeof stage.message>) => handler(message, context);
  return { ...stage, dead, deliver, mended: () => (isMended = true) };
}

test('a message that no queue takes, and whose dead letter is not published, is not lost: it comes again and is given up then', async () => {
  const { dead, deliver, message, entry } = refusing();
  const refused = message({ scheduleKey: 'k', delay: '60' });
  dead.failOn(1, 'refused');
  assert.match(reasonOf(await deliver(refused)), /^retry /);
  assert.equal(entry('k')?.state, 'refused');
  assert.match(reasonOf(await deliver(refused)), /^deadLetter /);
  assert.equal(dead.published.length, 1);
});

test('a message that no queue took is scheduled when it comes again to one that does', async () => {
  const { clock, dead, deliver, message, mended, published } = refusing();
  const refused = message({ scheduleKey: 'k', delay: '60' });
  dead.failOn(1, 'refused');
  await deliver(refused);
  mended();
  assert.equal(reasonOf(await deliver(refused)), 'scheduled');
  await clock.advance(60_000);
  assert.deepEqual([published(), dead.published], [['hello'], []]);
});

test('what is newer than a message that no queue took stands before it', async () => {
  const { clock, deliver, message, mended, published, entry } = refusing();
  const refused = message({ scheduleKey: 'k', delay: '60' });
  await deliver(refused);
  await clock.advance(1_000);
  mended();
  const cancel = message({ scheduleKey: 'k', cancel: 'true' });
  assert.equal(reasonOf(await deliver(cancel)), 'cancelled');
  assert.equal(reasonOf(await deliver(refused)), 'stale');
  await clock.advance(120_000);
  assert.deepEqual([published(), entry('k')?.state], [[], 'cancelled']);
});

test('the payload of a message that no queue took is done: nothing will ask for it', async () => {
  const ended: string[] = [];
  const { deliver, message } = refusing(({ id }) => ended.push(id));
  await deliver(message({ scheduleKey: 'k', delay: '60' }, 'x'.repeat(200_000)));
  assert.equal(ended.length, 1);
});
