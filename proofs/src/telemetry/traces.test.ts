import assert from 'node:assert/strict';
import { after, afterEach, beforeEach, test } from 'node:test';
import { context, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { deadLettering } from '../../../shared/src/dead-letter/dead-lettering.ts';
import { dedup } from '../../../shared/src/dedup/dedup.ts';
import { memoryClaims } from '../../../shared/src/dedup/memory.ts';
import { delay } from '../../../shared/src/delay/delay.ts';
import { memoryTasks } from '../../../shared/src/tasks/memory.ts';
import { republish } from '../../../shared/src/delay/republish.ts';
import { compose, type Handler } from '../../../shared/src/handler.ts';
import { jsonLog, silent } from '../../../shared/src/log.ts';
import { orderedDelivery } from '../../../shared/src/order/in-order.ts';
import { memoryStreams } from '../../../shared/src/order/memory.ts';
import { ack } from '../../../shared/src/outcome.ts';
import { forward } from '../../../shared/src/publish/forward.ts';
import { publishing } from '../../../shared/src/publish/publishing.ts';
import { httpEndpoint } from '../../../shared/src/receive/http-endpoint.ts';
import { memoryPublisher, virtualClock } from '../../../shared/src/testing/index.ts';
import { registerSdk, type Sdk } from './sdk.ts';

const TRACE = 'a'.repeat(32);
const SPAN = 'b'.repeat(16);
const PARENT = `00-${TRACE}-${SPAN}-01`;
const TOPIC = 'projects/p/topics/out';

let sdk: Sdk;
beforeEach(() => {
  sdk = registerSdk();
});
afterEach(() => sdk.close());
after(() => sdk.close());

const push = (attributes: Record<string, string>, id = '42') => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  rawBody: Buffer.from(
    JSON.stringify({
      message: { messageId: id, data: 'aGVsbG8=', attributes, publishTime: '2030-01-01T00:00:00Z' },
      subscription: 'projects/p/subscriptions/orders',
      deliveryAttempt: 3,
    }),
  ),
});

function setUp(make: (parts: ReturnType<typeof ports>) => Handler) {
  const parts = ports();
  const lines: Record<string, unknown>[] = [];
  const log = jsonLog((line) => lines.push(JSON.parse(line) as Record<string, unknown>), { projectId: 'p' });
  const endpoint = httpEndpoint(make(parts), {
    consumer: 'c',
    clock: parts.clock,
    log,
    handlerTimeout: '60s',
  });
  return { ...parts, endpoint, lines };
}
function ports() {
  const clock = virtualClock();
  return {
    clock,
    publisher: memoryPublisher(),
    claims: memoryClaims({ clock }),
    tasks: memoryTasks({ clock }),
  };
}
const named = (name: string): ReadableSpan => {
  const found = sdk.spans().filter((span) => span.name === name);
  assert.equal(
    found.length,
    1,
    `one span ${name} among ${sdk
      .spans()
      .map((span) => span.name)
      .join(', ')}`,
  );
  return found[0]!;
};
const parentOf = (span: ReadableSpan): string | undefined => span.parentSpanContext?.spanId;
const idOf = (span: ReadableSpan): string => span.spanContext().spanId;

test('a push through the endpoint is one trace: publisher, delivery, once, send, and the attribute of what is forwarded', async () => {
  const { endpoint, publisher } = setUp(({ publisher, claims, clock }) =>
    compose(forward(TOPIC), [
      deadLettering(publisher, 'dead'),
      dedup(claims, { clock }),
      publishing(publisher),
    ]),
  );
  const { status } = await endpoint(push({ traceparent: PARENT, tracestate: 'v=1', tenant: 'x' }));
  assert.equal(status, 204);
  const [delivery, once, send] = [named('process orders'), named('once'), named('send out')];
  assert.deepEqual([parentOf(delivery), parentOf(once), parentOf(send)], [SPAN, idOf(delivery), idOf(once)]);
  assert.deepEqual(
    [delivery.kind, once.kind, send.kind],
    [SpanKind.CONSUMER, SpanKind.INTERNAL, SpanKind.PRODUCER],
  );
  const { attributes } = publisher.published[0]!;
  assert.equal(attributes['traceparent'], `00-${TRACE}-${idOf(send)}-01`);
  assert.deepEqual([attributes['tracestate'], attributes['tenant']], ['v=1', 'x']);
  assert.deepEqual(delivery.attributes, {
    'messaging.system': 'gcp_pubsub',
    'messaging.operation.name': 'process',
    'messaging.operation.type': 'process',
    'messaging.destination.subscription.name': 'orders',
    'messaging.message.id': '42',
    'messaging.message.body.size': 5,
    'messaging.gcp_pubsub.message.delivery_attempt': 3,
    'pubsub_guarantees.consumer': 'c',
    'pubsub_guarantees.outcome': 'ack',
    'pubsub_guarantees.reason': 'handled',
  });
});

test('the attribute of Google’s client is the parent and is never forwarded', async () => {
  const { endpoint, publisher } = setUp(({ publisher }) => compose(forward(TOPIC), [publishing(publisher)]));
  await endpoint(push({ googclient_traceparent: PARENT }));
  const { attributes } = publisher.published[0]!;
  assert.deepEqual(
    Object.keys(attributes).filter((name) => name.startsWith('goog')),
    [],
  );
  assert.equal(attributes['traceparent'], `00-${TRACE}-${idOf(named('send out'))}-01`);
});

test('without trace context the delivery begins a trace; a span around the request becomes a link otherwise', async () => {
  const { endpoint } = setUp(() => async () => ack());
  await endpoint(push({}));
  assert.equal(parentOf(named('process orders')), undefined);
  const around = { traceId: '1'.repeat(32), spanId: '2'.repeat(16), traceFlags: 1 };
  await context.with(trace.setSpanContext(ROOT_CONTEXT, around), () =>
    endpoint(push({ traceparent: PARENT }, '43')),
  );
  const second = sdk.spans().at(-1)!;
  assert.deepEqual(
    [parentOf(second), second.links.map((link) => link.context.spanId)],
    [SPAN, [around.spanId]],
  );
});

test('a delay is one trace: through the task to the republisher and to what it publishes', async () => {
  const { endpoint, publisher, tasks, clock } = setUp(({ tasks, clock }) =>
    compose(async () => ack(), [delay(tasks, { clock, topic: TOPIC })]),
  );
  await endpoint(push({ delay: '60', traceparent: PARENT }));
  const later = named('later');
  const answer = republish(
    { publisher, queue: tasks, deadLetters: deadLettering(publisher, 'dead') },
    { allowedTopics: [TOPIC], clock, log: silent },
  );
  await clock.advance(60_000);
  assert.equal((await answer({ body: tasks.created[0]!.body })).status, 204);
  const [republished, send] = [named('republish'), named('send out')];
  assert.deepEqual([parentOf(republished), parentOf(send)], [idOf(later), idOf(republished)]);
  assert.equal(publisher.published[0]!.attributes['traceparent'], `00-${TRACE}-${idOf(send)}-01`);
});

test('the trace never makes a task too large', async () => {
  const { endpoint, tasks } = setUp(({ tasks, clock }) =>
    compose(async () => ack(), [delay(tasks, { clock, topic: TOPIC, maxTaskBytes: 1_000 })]),
  );
  const sizes: number[] = [];
  for (let padding = 500; padding < 700; padding += 5) {
    await endpoint(push({ delay: '60', padding: 'x'.repeat(padding) }, String(padding)));
    const task = tasks.created.at(-1)!;
    sizes.push(task.body.length);
    const carriesTrace = Buffer.from(task.body).includes('traceparent');
    if (!carriesTrace) return assert.ok(task.body.length > 800, 'left out only where there is no room');
  }
  assert.fail(`never left out: ${sizes.join(' ')}`);
});

test('a message that waited for its turn goes on in its own trace', async () => {
  const { endpoint, publisher } = setUp(({ publisher, clock }) =>
    compose(compose(forward(TOPIC), [publishing(publisher)]), [
      orderedDelivery(memoryStreams({ clock }), { clock }).middleware,
    ]),
  );
  const second = 'e'.repeat(32);
  const keyed = { sequenceKey: 'k' };
  await endpoint(push({ ...keyed, sequence: '2', traceparent: `00-${second}-${SPAN}-01` }, '2'));
  await endpoint(push({ ...keyed, sequence: '1', traceparent: PARENT }, '1'));
  const traces = publisher.published.map(({ attributes }) => [
    attributes['sequence'],
    attributes['traceparent']?.slice(3, 35),
  ]);
  assert.deepEqual(traces, [
    ['1', TRACE],
    ['2', second],
  ]);
  const held = named('process held');
  assert.equal(held.links.length, 1, 'the delivery that ran it');
});

test('a line in the log names its trace, and an unexpected failure its stack', async () => {
  const { endpoint, lines } = setUp(() => async (_message, { log }) => {
    log.info('at work', { step: 1 });
    throw new TypeError('oops');
  });
  await endpoint(push({ traceparent: PARENT }));
  const span = named('process orders');
  const correlation = {
    'logging.googleapis.com/trace': `projects/p/traces/${TRACE}`,
    'logging.googleapis.com/spanId': idOf(span),
    'logging.googleapis.com/trace_sampled': true,
  };
  assert.deepEqual(lines[0], { severity: 'INFO', message: 'at work', step: 1, ...correlation });
  const { stack_trace: stack, ...line } = lines[1]!;
  assert.match(String(stack), /^TypeError: oops\n {4}at /);
  assert.deepEqual(line, {
    severity: 'ERROR',
    message: 'not done: asked for another delivery',
    messageId: '42',
    outcome: 'retry',
    code: 'TypeError',
    error: 'oops',
    ...correlation,
  });
  assert.equal(span.status.code, SpanStatusCode.ERROR);
  assert.deepEqual([span.attributes['error.type'], span.events[0]?.name], ['TypeError', 'exception']);
});
