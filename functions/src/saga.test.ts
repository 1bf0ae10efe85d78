import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { Firestore, type Transaction } from '@google-cloud/firestore';
import { ack, contextFor, type OutgoingMessage, silent, TransientError } from 'pubsub-guarantees';
import type { InboxStore } from 'pubsub-guarantees/dedup';
import { defineSaga, type SagaStore } from 'pubsub-guarantees/sagas';
import { memoryInbox, memorySagas, memoryTasks, virtualClock } from 'pubsub-guarantees/testing';
import type { Ports } from './clients.ts';
import { readConfig } from './config.ts';
import { pipeline } from './pipelines.ts';
import { sagaPorts } from './saga-clients.ts';

const ENVIRONMENT = {
  GOOGLE_CLOUD_PROJECT: 'p',
  DEAD_LETTER_TOPIC: 'dead',
  SAGA_TOPIC: 'saga',
  SAGA_MODULE: 'sagas.js',
  DELAY_QUEUE: 'later',
  TASKS_LOCATION: 'us-central1',
};

test('saga has a topic and a module of its own, its inbox’s rows in the outbox, and no target', () => {
  const config = readConfig(ENVIRONMENT, 'saga');
  assert.deepEqual(config.saga, { topic: 'projects/p/topics/saga', module: 'sagas.js' });
  assert.equal(config.targetTopic, undefined);
  assert.deepEqual(config.outbox, { isOn: true });
  assert.equal(config.delay?.topic, 'projects/p/topics/saga');
  assert.deepEqual(config.dedup, {
    lease: '30s',
    retention: '8d',
    onConflict: 'deadLetter',
    onStoreUnavailable: 'retry',
  });
  assert.equal(
    readConfig({ ...ENVIRONMENT, TARGET_TOPIC: 'out', SOURCE_TOPIC: 'source' }, 'pipeline').saga,
    undefined,
  );
});

test('saga refuses what is missing, and what it would not obey', () => {
  const wrong: readonly (readonly [Readonly<Record<string, string>>, RegExp])[] = [
    [{ SAGA_TOPIC: '' }, /^SAGA_TOPIC is not set; accepted: /],
    [{ SAGA_MODULE: '' }, /^SAGA_MODULE is not set; accepted: a file whose default export/],
    [{ DELAY_QUEUE: '' }, /^DELAY_QUEUE is not set; accepted: /],
    [{ TARGET_TOPIC: 'out' }, /^TARGET_TOPIC is "out"; accepted: not for saga/],
    [{ DEDUP_STORE: 'redis' }, /^DEDUP_STORE is "redis"; accepted: firestore$/],
    [{ DEDUP_ON_CONFLICT: 'process' }, /^DEDUP_ON_CONFLICT is "process"; accepted: deadLetter or ack$/],
    [{ DEDUP_ON_STORE_UNAVAILABLE: 'process' }, /^DEDUP_ON_STORE_UNAVAILABLE is "process"; accepted: retry$/],
    [{ OUTBOX: 'off' }, /^OUTBOX is "off"; accepted: on$/],
    [{ WAKE_QUEUE: 'wake' }, /^WAKE_QUEUE is "wake"; accepted: only for fifo and pipeline$/],
    [{ SAGA_TOPIC: 'dead' }, /^SAGA_TOPIC is .*; accepted: another topic than DEAD_LETTER_TOPIC$/],
  ];
  for (const [variables, message] of wrong)
    assert.throws(() => readConfig({ ...ENVIRONMENT, ...variables }, 'saga'), { message });
});

async function moduleOf(t: TestContext, text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'saga-module-'));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, 'sagas.mjs');
  await writeFile(file, text);
  return file;
}

test('a module that is not there, or exports no list, is named with what is accepted', async (t) => {
  const config = readConfig(ENVIRONMENT, 'saga');
  const load = (module: string) =>
    sagaPorts(
      config,
      { topic: 'saga', module },
      () => Promise.reject(new Error('not asked')),
      virtualClock(),
    );
  await assert.rejects(load('/nowhere/sagas.js'), {
    name: 'ConfigError',
    message: /^SAGA_MODULE is "\/nowhere\/sagas\.js", which cannot be loaded: .*; accepted: a file whose/,
  });
  for (const text of ['export const sagas = [];', 'export default {};', 'export default [];']) {
    const file = await moduleOf(t, text);
    await assert.rejects(load(file), {
      message: /^SAGA_MODULE is .*; accepted: a file whose default export is a list/,
    });
  }
});

test('its stores are made of the configuration, with options that they have', async (t) => {
  const file = await moduleOf(t, 'export default [{ name: "trip" }];');
  const config = readConfig({ ...ENVIRONMENT, COLLECTION_PREFIX: 'shop', OUTBOX_SHARDS: '4' }, 'saga');
  // Nothing is asked of it: it connects with the first call.
  const firestore = new Firestore({ projectId: 'p' });
  t.after(() => firestore.terminate());
  const ports = await sagaPorts(
    config,
    { topic: 'saga', module: file },
    async () => firestore,
    virtualClock(),
  );
  assert.equal(ports.definitions.length, 1);
  assert.equal(typeof ports.store.readIn, 'function');
  assert.equal(typeof ports.inbox.transact, 'function');
});

const trip = defineSaga<{ city: string }>('trip', { version: 1 })
  .compensable('hotel', {
    topic: 'hotels',
    do: ({ city }) => ({ city }),
    undo: () => ({}),
    replyTimeout: '10s',
  })
  .retriable('letter', { topic: 'letters', do: ({ city }) => ({ city }) });

type Inbox = ReturnType<typeof memoryInbox>;

/** `between`: what the function has in place of its inbox. */
function running(between: (inbox: Inbox) => Inbox = (inbox) => inbox) {
  const clock = virtualClock();
  const published: OutgoingMessage[] = [];
  const publisher = {
    publish: async (message: OutgoingMessage) => String(published.push(message)),
  };
  const tasks = memoryTasks({ clock });
  const inbox = memoryInbox({ clock });
  const store = memorySagas(inbox, { clock });
  const ports = {
    clock,
    log: silent,
    publisher,
    claims: undefined,
    tasks,
    streams: undefined,
    ledger: undefined,
    payloads: undefined,
    // The pipeline hands their transactions from the one to the other, and does not look into them.
    sagas: {
      definitions: [trip],
      store: store as unknown as SagaStore<Transaction>,
      inbox: between(inbox) as unknown as InboxStore<Transaction>,
    },
    subscriptionWindows: async () => undefined,
    evictionPolicy: Promise.resolve(undefined),
  } satisfies Ports;
  const { handler, sweeps } = pipeline(readConfig(ENVIRONMENT, 'saga'), ports);
  const context = () =>
    contextFor(clock, {
      consumer: 'saga',
      deadline: clock.monotonic() + 60_000,
      signal: new AbortController().signal,
      log: silent,
    });
  const deliver = ({ data, attributes }: OutgoingMessage, id: string) =>
    handler(
      { id, data: Buffer.from(data ?? ''), attributes: attributes ?? {}, publishTime: new Date(clock.now()) },
      { ...context(), source: 'projects/p/subscriptions/saga-sub' },
    );
  return { clock, published, tasks, sweeps, context, deliver };
}

test('a start becomes a command, its timer becomes a task, and a copy of it is a duplicate', async () => {
  const { published, tasks, deliver, clock } = running();
  const start = trip.start('t1', { city: 'Łódź' }, { topic: 'saga' });
  const outcome = await deliver(start, 'm1');
  assert.equal(outcome.kind, 'ack');
  assert.equal((await deliver(start, 'm2')).kind, 'ack');
  const commands = published.filter(({ topic }) => topic.endsWith('/hotels'));
  assert.deepEqual(
    commands.map(({ attributes }) => [attributes?.['sagaAction'], attributes?.['replyTo']]),
    [['do', 'projects/p/topics/saga']],
  );
  const ticks = published.filter(({ attributes }) => attributes?.['sagaAction'] === 'tick');
  assert.equal(ticks.length, 1, 'the timer is a message to the own topic');
  const [tick] = ticks;
  assert.ok(tick !== undefined);
  assert.equal(tick.topic, 'projects/p/topics/saga');
  assert.equal((await deliver(tick, 'm3')).kind, 'ack');
  assert.equal(tasks.created.length, 1, `it waits in the queue from ${clock.now()} on`);
});

test('the sweep wakes what no timer has woken, and what it cannot read is a dead letter', async () => {
  const { published, sweeps, context, deliver, clock } = running();
  await deliver(trip.start('t1', { city: 'Ulm' }, { topic: 'saga' }), 'm1');
  await clock.advance(200_000);
  const swept = await sweeps.sagas?.(context());
  assert.deepEqual(swept, { due: 1, done: 1, failed: 0, isWhole: true });
  assert.equal(published.at(-1)?.attributes?.['sagaArm'], 'sweep');

  const strange = { topic: 'saga', data: Buffer.from('{}'), attributes: { saga: 'trip' } };
  assert.equal((await deliver(strange, 'm9')).kind, 'deadLetter');
  assert.equal(published.at(-1)?.topic, 'projects/p/topics/dead');
});

test('an instance at which others are at work each time is rescheduled, and uses up no delivery attempt', async () => {
  let refusals = 1;
  const { tasks, published, deliver, clock } = running((inbox) => ({
    ...inbox,
    async transact(attempt) {
      refusals -= 1;
      if (refusals < 0) return inbox.transact(attempt);
      throw new TransientError('TRANSACTION_CONTENTION', 'others were in the way each time');
    },
  }));
  const start = trip.start('t1', { city: 'Ulm' }, { topic: 'saga' });
  const began = clock.now();
  assert.deepEqual(await deliver(start, 'm1'), ack('scheduled'));
  assert.deepEqual(
    tasks.created.map(({ scheduleTimeMs }) => scheduleTimeMs - began),
    [5_000],
  );
  assert.equal(published.length, 0);
  // It comes back under an identity that no claim holds.
  assert.deepEqual(await deliver(start, 'm2'), ack('handled'));
});

test('an instance that another deployment knows is rescheduled, and uses up no delivery attempt', async () => {
  const { tasks, deliver } = running();
  const start = trip.start('t1', { city: 'Ulm' }, { topic: 'saga' });
  const outcome = await deliver({ ...start, attributes: { ...start.attributes, sagaVersion: '2' } }, 'm1');
  assert.equal(outcome.kind, 'ack');
  assert.equal(tasks.created.length, 1);
});
