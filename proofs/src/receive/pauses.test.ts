import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import test, { type TestContext } from 'node:test';
import { type Message as ClientMessage, PubSub, type Subscription } from '@google-cloud/pubsub';
import { startPubsub, systemClock, until } from 'pubsub-guarantees-emulator';
import { deadLettering } from '../../../shared/src/dead-letter/dead-lettering.ts';
import { PermanentError, TransientError } from '../../../shared/src/errors.ts';
import { compose, type Handler } from '../../../shared/src/handler.ts';
import { jsonLog, silent } from '../../../shared/src/log.ts';
import { ack, deadLetter, retry } from '../../../shared/src/outcome.ts';
import { memoryPublisher, virtualClock } from '../../../shared/src/testing/index.ts';
import { growingPauses } from '../../../shared/src/receive/pauses.ts';
import { receive, type ReceiveOptions } from '../../../shared/src/receive/pubsub.ts';
import { refusal } from '../../../shared/src/testing/refusal.ts';

// Otherwise the client looks for a machine of Google's to run on, and warns that there is none.
process.env['METADATA_SERVER_DETECTION'] = 'none';

const nothing = (async () => undefined) as unknown as Handler;
const failing: Handler = async () => retry(new Error('no'));

/** A subscription on virtual time that delivers what is given back at once, as one without a retry policy does. */
function startReceiver(handler: Handler, options: Partial<ReceiveOptions> = {}) {
  const clock = virtualClock();
  const events = new EventEmitter();
  const flow: { maxMessages?: number } = {};
  const subscription = Object.assign(events, {
    name: 'projects/p/subscriptions/s',
    pubsub: { projectId: 'p' },
    setOptions: ({ flowControl }: { flowControl: object }) => void Object.assign(flow, flowControl),
    close: () => Promise.resolve(),
  });
  const answers: string[] = [];
  const runs: { id: string; at: number }[] = [];
  const lines: string[] = [];
  const send = (id: string): void => {
    const received = {
      id,
      data: Buffer.from(id),
      attributes: {},
      publishTime: Object.assign(new Date(0), { getMicroseconds: () => 0, getNanoseconds: () => 0 }),
      ackWithResponse: async () => void answers.push(`ack ${id}`),
      nackWithResponse: async () => {
        answers.push(`nack ${id}`);
        if (!closed) setImmediate(() => send(id));
      },
    };
    events.emit('message', received as unknown as ClientMessage);
  };
  let closed = false;
  const receiver = receive(
    subscription as unknown as Subscription,
    (message, context) => {
      runs.push({ id: message.id, at: clock.monotonic() - began });
      return handler(message, context);
    },
    { consumer: 'c', clock, log: jsonLog((line) => lines.push(line)), drainOnSigterm: false, ...options },
  );
  const began = clock.monotonic();
  /** Moves the time in small steps, so that a redelivery begins when it came. */
  const run = async (milliseconds: number): Promise<void> => {
    for (let at = 0; at < milliseconds; at += 10) {
      await clock.advance(10);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const close = async (): Promise<void> => {
    closed = true;
    await receiver.close();
  };
  return { clock, send, answers, runs, lines, run, close, flow };
}

const timesOf = (runs: readonly { id: string; at: number }[], id: string): readonly number[] =>
  runs.filter((one) => one.id === id).map(({ at }) => at);

test('a message that fails comes back after growing pauses, up to the longest', async () => {
  const { send, runs, run, close } = startReceiver(failing, { retry: { max: '1s' } });
  send('a');
  await run(6_000);
  const pauses = timesOf(runs, 'a').map((at, index, all) => at - (all[index - 1] ?? at));
  assert.ok(runs.length >= 8 && runs.length <= 9, `${runs.length} runs`);
  for (const [index, least] of [0, 100, 200, 400, 800, 1_000, 1_000, 1_000].entries()) {
    const pause = pauses[index] ?? 0;
    assert.ok(pause >= least && pause <= least + 50, `pause ${index} of ${pause} ms`);
  }
  await close();
});

test('ten messages that fail fast are not a hot loop, and do not keep others from running', async () => {
  const handler: Handler = async ({ id }) => (id.startsWith('bad') ? retry(new Error('no')) : ack());
  const { send, runs, run, close, answers } = startReceiver(handler, { concurrency: 1, maxWaiting: 10 });
  for (let n = 0; n < 10; n += 1) send(`bad-${n}`);
  await run(2_000);
  assert.ok(runs.length <= 60, `${runs.length} runs in 2 s`);
  send('good');
  await run(20);
  assert.ok(answers.includes('ack good'));
  await close();
});

test('the pause of a message is its own, and is forgotten when it succeeds', async () => {
  let isBad = true;
  const { send, runs, run, close } = startReceiver(async ({ id }) =>
    id === 'a' && isBad ? retry(new Error('no')) : ack(),
  );
  send('a');
  await run(1_000);
  send('b');
  await run(20);
  assert.equal(timesOf(runs, 'b').length, 1);
  isBad = false;
  await run(1_000);
  const before = timesOf(runs, 'a').length;
  isBad = true;
  send('a');
  await run(150);
  assert.equal(timesOf(runs, 'a').length, before + 2, 'it begins with the shortest pause');
  await close();
});

test('a pause is at least as long as the handler asked for, and ends before the client stops extending the lease', async () => {
  const asked: readonly [Handler, number][] = [
    [async () => retry(new Error('no'), '3s'), 3_000],
    [async () => Promise.reject(new TransientError('X', 'x', { retryAfterMs: 2_000 })), 2_000],
    [async () => retry(new Error('no'), 'soon' as '1s'), 100],
    [async () => retry(new Error('no'), '1h'), 10_000],
  ];
  for (const [handler, pauseMs] of asked) {
    const { send, runs, run, close } = startReceiver(handler, { handlerTimeout: '5s', maxExtension: '10s' });
    send('a');
    await run(pauseMs - 50);
    assert.equal(runs.length, 1, String(pauseMs));
    await run(100);
    assert.equal(runs.length, 2, String(pauseMs));
    await close();
  }
});

test('closing gives paused messages back at once, and waits for nothing else', async () => {
  const { send, answers, run, close, clock, runs } = startReceiver(failing, { retry: { min: '30s' } });
  for (const id of ['a', 'b', 'c']) send(id);
  await run(100);
  assert.deepEqual([answers, runs.length], [[], 3]);
  const before = clock.monotonic();
  await close();
  assert.deepEqual(answers.toSorted(), ['nack a', 'nack b', 'nack c']);
  assert.equal(clock.monotonic(), before);
  assert.equal(clock.pending(), 0, 'a timer was left');
});

test('no more messages pause than there are places: beyond them each occupies its handler', async () => {
  const { send, runs, run, close, flow } = startReceiver(failing, {
    concurrency: 2,
    maxWaiting: 1,
    retry: { min: '10s' },
  });
  for (const id of ['a', 'b', 'c', 'd', 'e']) send(id);
  await run(100);
  assert.deepEqual(
    runs.map(({ id }) => id),
    ['a', 'b', 'c'],
  );
  assert.equal(flow.maxMessages, 3);
  await close();
});

test('a handler that answers nothing stops its receiver after a few of one message, in one clear line', async () => {
  const { send, runs, run, close, lines, answers } = startReceiver(nothing);
  send('a');
  send('b');
  await run(5_000);
  assert.ok(runs.length <= 6, `${runs.length} runs`);
  const stopped = lines.filter((line) => line.includes('receiver_stopped'));
  assert.equal(stopped.length, 1);
  assert.match(
    stopped[0] ?? '',
    /"severity":"ERROR","message":"the handler answers nothing, the receiver stops: .*"code":"NO_OUTCOME","subscription":"projects\/p\/subscriptions\/s"/,
  );
  assert.ok(answers.every((answer) => answer.startsWith('nack')));
  await close();
});

test('where there are dead letters, the message is one, and the receiver goes on', async () => {
  const publisher = memoryPublisher();
  const handler = compose((async ({ id }) => (id === 'a' ? undefined : ack())) as Handler, [
    deadLettering(publisher, 'dead'),
  ]);
  const { send, runs, run, close, lines, answers } = startReceiver(handler);
  send('a');
  await run(3_000);
  assert.equal(timesOf(runs, 'a').length, 3);
  assert.equal(publisher.published.length, 1);
  assert.equal(publisher.published[0]?.attributes['deadLetterReason'], 'NO_OUTCOME');
  assert.equal(answers.at(-1), 'ack a');
  send('b');
  await run(20);
  assert.equal(answers.at(-1), 'ack b');
  assert.ok(!lines.join().includes('receiver_stopped'));
  await close();
});

test('an outcome in between shows that the handler can answer: the receiver is not stopped', async () => {
  let count = 0;
  const mixed = (async () => ((count += 1) % 2 === 0 ? retry(new Error('no')) : undefined)) as Handler;
  const { send, run, close, lines, runs } = startReceiver(mixed, { retry: { max: '200ms' } });
  send('a');
  await run(3_000);
  assert.ok(runs.length > 8);
  assert.ok(!lines.join().includes('receiver_stopped'));
  await close();
});

test('the memory of failures is bounded', () => {
  const pauses = growingPauses({ min: '1s', max: '8s' }, 3_600_000);
  const failed = (id: string): number =>
    pauses.failed(id, { kind: 'retry', error: new Error('no') }, 3_600_000);
  assert.deepEqual([failed('first'), failed('first'), failed('first')], [1_000, 2_000, 4_000]);
  for (let n = 0; n < 10_000; n += 1) failed(`other-${n}`);
  assert.equal(failed('first'), 1_000, 'it was forgotten');
  assert.equal(failed('other-9999'), 2_000);
  for (let n = 0; n < 2_000; n += 1) failed('long');
  assert.equal(failed('long'), 8_000);
  const lost = deadLetter(new PermanentError('NO', 'no'));
  assert.ok(lost.kind === 'deadLetter' && pauses.failed('dead', lost, 500) === 500);
});

test('options of the pauses are checked', () => {
  const wrong: readonly [Partial<ReceiveOptions>, RegExp][] = [
    [{ retry: { min: '0s' } }, /^retry.min is "0s"; accepted: at least 1ms/],
    [{ retry: { min: '10s', max: '9s' } }, /^retry.min is "10s"; accepted: at most retry.max \("9s"\)/],
    [{ retry: { min: '2m' } }, /^retry.min is "2m"; accepted: at most retry.max \("60s"\)/],
    [{ retry: { max: '50ms' } }, /^retry.max is "50ms"; accepted: at least retry.min \("100ms"\)/],
    [{ retry: { max: '1h' } }, /^retry.max is "1h"; accepted: at most what maxExtension leaves/],
    [{ maxWaiting: -1 }, /^maxWaiting is -1; accepted: a whole number from 0/],
    [{ maxWaiting: 0.5 }, /^maxWaiting is 0.5; accepted: /],
  ];
  for (const [options, message] of wrong) {
    assert.throws(
      () => startReceiver(failing, options),
      refusal(/^\^(\S+) is/.exec(message.source)?.[1] ?? '', message),
    );
  }
});

async function served(t: TestContext, options: object) {
  const server = await startPubsub({ clock: systemClock() });
  const client = new PubSub({ apiEndpoint: server.address, projectId: 'test-project' });
  const [topic] = await client.createTopic('topic-1');
  const [subscription] = await topic.createSubscription('sub-1', { ackDeadlineSeconds: 10, ...options });
  t.after(async () => {
    await client.close();
    await server.close();
  });
  return { server, client, topic, subscription };
}

for (const [kind, options] of Object.entries({
  'without a policy': {},
  'exactly-once': { enableExactlyOnceDelivery: true },
  ordered: { enableMessageOrdering: true },
})) {
  test(`over Google’s client, ${kind}: what fails pauses, succeeds later, and is acknowledged once`, async (t) => {
    const { server, client, subscription } = await served(t, options);
    const topic = client.topic('topic-1', { messageOrdering: true });
    const runs = new Map<string, number>();
    const receiver = receive(
      subscription,
      async ({ data }) => {
        const text = data.toString();
        runs.set(text, (runs.get(text) ?? 0) + 1);
        return (runs.get(text) ?? 0) < 4 ? retry(new Error('no')) : ack();
      },
      { consumer: 'c', log: silent, drainOnSigterm: false },
    );
    const keyed = kind === 'ordered' ? { orderingKey: 'k' } : {};
    const began = performance.now();
    for (let n = 0; n < 3; n += 1) await topic.publishMessage({ data: Buffer.from(String(n)), ...keyed });
    await until(() => runs.size === 3 && server.stats().outstanding + server.stats().backlog === 0);
    assert.ok(performance.now() - began >= 700, 'three pauses of 100, 200 and 400 ms');
    // An ordered message comes again when one before it is given back.
    if (kind !== 'ordered') assert.deepEqual([...runs.values()], [4, 4, 4]);
    await receiver.close();
  });
}

test('over Google’s client ten messages that always fail run some fifty times in two seconds', async (t) => {
  const { topic, subscription, server } = await served(t, {});
  let runs = 0;
  const receiver = receive(
    subscription,
    async () => {
      runs += 1;
      return retry(new Error('no'));
    },
    { consumer: 'c', log: silent, drainOnSigterm: false },
  );
  for (let n = 0; n < 10; n += 1) await topic.publishMessage({ data: Buffer.from(String(n)) });
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  assert.ok(runs > 0 && runs <= 80, `${runs} runs`);
  await receiver.close();
  await until(() => server.stats().outstanding === 0);
  assert.equal(server.stats().backlog, 10);
});
