/**
 * What is seen of sagas: one trace from the message that starts one to its end, over orchestrator, participants, a repeat
 * and a timer; metrics that count each instance once; and the lines of an end.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { contextFor } from '../../../shared/src/context.ts';
import { deadLettering } from '../../../shared/src/dead-letter/dead-lettering.ts';
import { inbox } from '../../../shared/src/dedup/inbox.ts';
import type { InboxHandler } from '../../../shared/src/dedup/inbox-run.ts';
import type { MemoryTransaction } from '../../../shared/src/dedup/inbox-memory.ts';
import { delay } from '../../../shared/src/delay/delay.ts';
import { republish } from '../../../shared/src/delay/republish.ts';
import { compose, type Handler } from '../../../shared/src/handler.ts';
import { jsonLog, silent } from '../../../shared/src/log.ts';
import type { OutgoingMessage } from '../../../shared/src/message.ts';
import { deliver } from '../../../shared/src/receive/deliver.ts';
import { defineSaga } from '../../../shared/src/sagas/definition.ts';
import { orchestrator } from '../../../shared/src/sagas/orchestrator.ts';
import { done, participant, refused, undone } from '../../../shared/src/sagas/participant.ts';
import { sweepSagas } from '../../../shared/src/sagas/sweep.ts';
import { memoryTasks } from '../../../shared/src/tasks/memory.ts';
import { memoryGround } from '../../../shared/src/testing/saga-ground.ts';
import { registerSdk } from './sdk.ts';

const TRACE = 'a'.repeat(32);
const SPAN = 'b'.repeat(16);
const SAGA = 'projects/p/topics/saga';

const asked = { do: ({ id }: { id: string }) => ({ id }), replyTimeout: '10s' } as const;
const trip = defineSaga<{ id: string }>('trip', { version: 1 })
  .compensable('hotel', { ...asked, topic: 'hotels', undo: () => ({}) })
  .retriable('letter', { ...asked, topic: 'letters' });

/** An orchestrator behind its delay stage, two participants, and a topic each; what is published waits to be delivered. */
function world(t: TestContext) {
  const sdk = registerSdk();
  t.after(() => sdk.close());
  const ground = memoryGround();
  const { clock } = ground;
  const tasks = memoryTasks({ clock });
  const refusing = new Set<string>();
  const posted: OutgoingMessage[] = [];
  const lines: Record<string, unknown>[] = [];
  const log = jsonLog((line) => lines.push(JSON.parse(line) as Record<string, unknown>), {
    projectId: 'p',
    debug: true,
  });
  const publisher = { publish: async (message: OutgoingMessage) => String(posted.push(message)) };
  const inInbox = (
    handler: InboxHandler<MemoryTransaction>,
    ...stages: Parameters<typeof compose>[1]
  ): Handler => compose(inbox(ground.inbox, { publisher, clock, projectId: 'p' })(handler), stages);
  const taking = (step: string): Handler =>
    inInbox(
      participant(ground.records, {
        replyTo: [SAGA],
        steps: {
          [step]: {
            do: async () => (refusing.has(step) ? refused('FULL') : done()),
            undo: async () => undone(),
          },
        },
      }),
    );
  const handlers: Readonly<Record<string, Handler>> = {
    saga: inInbox(orchestrator(ground.store, [trip], { topic: SAGA }), delay(tasks, { clock, topic: SAGA })),
    hotels: taking('hotel'),
    letters: taking('letter'),
  };
  const topicOf = ({ topic }: OutgoingMessage): string => topic.slice(topic.lastIndexOf('/') + 1);
  const run = new Set<object>();
  let ids = 0;
  const next = async (): Promise<void> => {
    const message = posted.shift();
    assert.ok(message !== undefined, 'nothing waits');
    const [topic, id] = [topicOf(message), String((ids += 1))];
    const handler = handlers[topic];
    assert.ok(handler !== undefined, topic);
    const { data, attributes } = message;
    const received = { id, data: Buffer.from(data), attributes, publishTime: new Date(clock.now()) };
    const options = { consumer: topic, source: `${topic}-sub`, clock, log, handlerTimeout: '60s' } as const;
    const outcome = await ground.until(deliver(handler, received, options));
    assert.equal(outcome.kind, 'ack');
  };
  const answer = republish(
    { publisher, queue: tasks, deadLetters: deadLettering(publisher, 'dead') },
    { allowedTopics: [SAGA], clock, log: silent },
  );
  const start = (id: string): void => {
    const { data, attributes, topic } = trip.start(id, { id }, { topic: SAGA });
    posted.push({ topic, data, attributes: { ...attributes, traceparent: `00-${TRACE}-${SPAN}-01` } });
  };
  const flow = async (): Promise<void> => {
    while (posted.length > 0) await next();
  };
  /** Every timer that is due comes back through the republisher. */
  const later = async (milliseconds: number): Promise<void> => {
    await ground.pass(milliseconds);
    const due = tasks.created.filter((task) => !run.has(task) && task.scheduleTimeMs <= clock.now());
    for (const task of due) {
      run.add(task);
      assert.ok((await answer({ body: task.body })).status < 300);
    }
  };
  return {
    sdk,
    clock,
    refusing,
    lines,
    start,
    flow,
    later,
    /** Runs a saga to its end. The reply to its first command is lost, so that its timer has the command sent again. */
    completedAgain: async (id: string): Promise<void> => {
      start(id);
      for (const _ of ['the start', 'the command', 'the timer']) await next();
      posted.shift();
      await later(10_000);
      await flow();
    },
    sweep: async (): Promise<void> => {
      const sweep = sweepSagas(ground.store, publisher, { topic: SAGA, clock });
      await ground.until(sweep(contextFor(clock, { consumer: 'saga', log })));
    },
    values: async (name: string) => {
      const points = await sdk.points(`pubsub_guarantees.sagas.${name}`);
      return points
        .map(({ attributes, value }) => {
          const own = Object.entries(attributes).filter(([key]) => !/\.(consumer|saga)$/.test(key));
          assert.equal(attributes['pubsub_guarantees.consumer'], 'saga');
          return [...own.map(([, of]) => String(of)), value].join(' ');
        })
        .toSorted();
    },
  };
}

test('a saga is one trace from its start to its end, over orchestrator, participants, a timer and a repeat', async (t) => {
  const { sdk, completedAgain, lines } = world(t);
  await completedAgain('t1');

  const spans = sdk.spans();
  assert.deepEqual([...new Set(spans.map((span) => span.spanContext().traceId))], [TRACE]);
  const known = new Set([SPAN, ...spans.map((span) => span.spanContext().spanId)]);
  const loose = spans.filter((span) => !known.has(span.parentSpanContext?.spanId ?? ''));
  assert.deepEqual(
    loose.map(({ name }) => name),
    [],
    'each has its parent in the trace',
  );
  assert.deepEqual(
    spans.map(({ name }) => name).filter((name) => /^(saga|step|republish)/.test(name)),
    [
      'saga trip start',
      'step hotel do',
      'republish',
      'saga trip tick',
      'step hotel do',
      'saga trip reply',
      'step letter do',
      'saga trip reply',
    ],
  );
  const reply = spans.find(({ name }) => name === 'saga trip reply');
  const { 'pubsub_guarantees.instance': instance, ...rest } = reply?.attributes ?? {};
  assert.deepEqual(rest, {
    'pubsub_guarantees.consumer': 'saga',
    'pubsub_guarantees.saga': 'trip',
    'pubsub_guarantees.step': 'hotel',
    'pubsub_guarantees.outcome': 'ack',
    'pubsub_guarantees.reason': 'handled',
  });
  const moved = lines.filter(({ event }) => event === 'saga_moved');
  assert.equal(moved.length, 4);
  for (const line of moved) {
    assert.equal(line['logging.googleapis.com/trace'], `projects/p/traces/${TRACE}`);
    assert.equal(line['instance'], instance);
  }
});

test('instances that start, end and are parked are counted once each, and commands as the first or again', async (t) => {
  const { start, completedAgain, later, flow, refusing, values, sweep, clock, lines } = world(t);
  await completedAgain('completed');

  refusing.add('hotel');
  start('compensated');
  await flow();
  const [ended] = lines.filter(({ event }) => event === 'saga_compensated');
  assert.deepEqual([ended?.['severity'], ended?.['reason']], ['INFO', 'hotel: refused FULL']);
  refusing.delete('hotel');

  refusing.add('letter');
  start('parked');
  await flow();
  await later(10_000);
  await flow();
  assert.equal(
    lines.filter(({ event }) => event === 'saga_parked').length >= 2,
    true,
    'each time that it is tried',
  );

  assert.deepEqual(await values('started'), ['3']);
  assert.deepEqual(await values('ended'), ['compensated 1', 'completed 1']);
  assert.deepEqual(await values('parked'), ['1']);
  assert.deepEqual(await values('commands'), [
    'hotel do again 1',
    'hotel do first 3',
    'letter do again 1',
    'letter do first 2',
  ]);

  assert.deepEqual(await values('open.age'), []);
  const openMs = 10_000;
  await sweep();
  assert.deepEqual(await values('open.age'), ['compensating 0', `parked ${openMs / 1_000}`, 'running 0']);
  assert.ok(clock.now() > 0);
});
