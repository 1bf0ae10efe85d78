/** Faults that are not the message's are logged and counted under their own name, and never count as an attempt. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deadLettering } from '../../../shared/src/dead-letter/dead-lettering.ts';
import { encodeDelayed } from '../../../shared/src/tasks/task-body.ts';
import { memoryTasks } from '../../../shared/src/tasks/memory.ts';
import { republish } from '../../../shared/src/delay/republish.ts';
import { storeUnavailable, TransientError } from '../../../shared/src/errors.ts';
import type { LogFields } from '../../../shared/src/log.ts';
import { retry } from '../../../shared/src/outcome.ts';
import { publishError } from '../../../shared/src/publish/pubsub-errors.ts';
import { registerSdk } from '../telemetry/sdk.ts';
import { memoryPublisher, virtualClock } from '../../../shared/src/testing/index.ts';
import { deliver, logOutcome } from '../../../shared/src/receive/deliver.ts';

type Line = Readonly<{ level: string; text: string; fields: LogFields }>;

function logOf(): Readonly<{ lines: Line[]; log: Parameters<typeof logOutcome>[2] }> {
  const lines: Line[] = [];
  const at =
    (level: string) =>
    (text: string, fields: LogFields = {}): void =>
      void lines.push({ level, text, fields });
  return { lines, log: { info: at('info'), warn: at('warn'), error: at('error') } };
}
const message = { id: '7', data: Buffer.from('x'), attributes: {}, publishTime: new Date(0) };
const answered = (code: number): Error => Object.assign(new Error('answered'), { code });

for (const [error, level, event, fault] of [
  [publishError(answered(5), 't'), 'error', 'deployment_fault', 'deployment'],
  [publishError(answered(7), 't'), 'error', 'deployment_fault', 'deployment'],
  [publishError(answered(14), 't'), 'warn', undefined, 'target'],
  [storeUnavailable('down'), 'warn', undefined, 'store'],
  [new TransientError('MINE', 'of the message'), 'warn', undefined, undefined],
] as const) {
  test(`a delivery that fails with ${error.code} is logged as ${level}, and counted as ${fault ?? 'nothing'}`, async (t) => {
    const sdk = registerSdk();
    t.after(() => sdk.close());
    const clock = virtualClock();
    const { lines, log } = logOf();
    await deliver(async () => retry(error), message, {
      consumer: 'c',
      source: 's',
      clock,
      log,
      handlerTimeout: '10s',
      report: (outcome, traced) => logOutcome(message, outcome, traced),
    });
    assert.deepEqual(
      lines.map((line) => [line.level, line.fields['event'], line.fields['code']]),
      [[level, event, error.code]],
    );
    const points = await sdk.points('pubsub_guarantees.faults');
    assert.deepEqual(
      points.map(({ attributes, value }) => [
        attributes['pubsub_guarantees.fault'],
        attributes['pubsub_guarantees.reason'],
        value,
      ]),
      fault === undefined ? [] : [[fault, error.code, 1]],
    );
  });
}

test('a task whose topic is missing is answered 503 and logged as the deployment’s fault', async () => {
  const clock = virtualClock(Date.UTC(2030, 0, 1));
  const { lines, log } = logOf();
  const topic = 'projects/p/topics/out';
  const run = republish(
    {
      publisher: { publish: () => Promise.reject(publishError(answered(5), topic)) },
      queue: memoryTasks({ clock }),
      deadLetters: deadLettering(memoryPublisher(), 'dead'),
    },
    { allowedTopics: [topic], clock, log },
  );
  const at = clock.now();
  const task = { key: 'k', topic, dueTimeMs: at, scheduleTimeMs: at, attempt: 0, hop: 0, message };
  assert.deepEqual(await clock.until(run({ body: encodeDelayed(task) })), { status: 503 });
  assert.deepEqual(
    lines.map((line) => [line.level, line.fields['event'], line.fields['code']]),
    [['error', 'deployment_fault', 'TOPIC_NOT_FOUND']],
  );
});
