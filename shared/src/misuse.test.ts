/**
 * Every public function, called wrongly from JavaScript: what comes of it is a ConfigError that names what is wrong. The
 * functions are taken from the package's own exports, so a new one is here by itself, and has to say what its options are.
 */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { readFile } from 'node:fs/promises';
import { after, test } from 'node:test';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { CloudTasksClient } from '@google-cloud/tasks';
import { systemClock } from './clock.ts';
import { memoryInbox } from './dedup/inbox-memory.ts';
import { memoryClaims } from './dedup/memory.ts';
import { memoryTasks } from './tasks/memory.ts';
import { memoryJobs } from './jobs/memory.ts';
import { silent } from './log.ts';
import { memoryStreams } from './order/memory.ts';
import { memoryOutbox } from './outbox/memory.ts';
import { ack } from './outcome.ts';
import { memoryTraces } from './sagas/memory-traces.ts';
import { memorySagas, memoryStepRecords } from './sagas/memory.ts';
import { memoryLedger } from './schedules/memory.ts';
import { memoryCounters } from './sequence/memory.ts';
import { memoryPublisher } from './testing/index.ts';

// Otherwise the clients look for a machine of Google's to run on.
process.env['METADATA_SERVER_DETECTION'] = 'none';

type Callable = (...values: unknown[]) => unknown;

const manifest: unknown = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'));
const entries = Object.entries((manifest as { exports: Record<string, { source: string }> }).exports);
const functions = new Map<string, Callable>();
for (const [entry, { source }] of entries) {
  const module = (await import(new URL(`../${source}`, import.meta.url).href)) as Record<string, unknown>;
  for (const [name, value] of Object.entries(module)) {
    if (typeof value === 'function') functions.set(`${entry} ${name}`, value as Callable);
  }
}

/** Errors are classes. */
const ELSEWHERE = ['ConfigError', 'PermanentError', 'TransientError'];
const nameOf = (path: string): string => path.split(' ')[1] ?? '';
const tested = [...functions].filter(([path]) => !ELSEWHERE.includes(nameOf(path)));

const WRONG: readonly unknown[] = [undefined, null, 'text', 5, {}, [], true, () => 1, 5n];
/** ConfigError, or what a message is refused with: a function that reads one says what is wrong with the message. */
const ACCEPTED = new Set(['ConfigError', 'PermanentError']);

const nameOfError = (error: unknown): string => (error instanceof Error ? error.name : typeof error);
const soon = (): Promise<undefined> => new Promise((resolve) => setTimeout(() => resolve(undefined), 50));

/** What was thrown or rejected with, if that is no answer for a caller. */
async function failure(call: Callable, values: readonly unknown[]): Promise<string | undefined> {
  try {
    const answer = call(...values);
    if (answer instanceof Promise) await Promise.race([answer, soon()]);
    return undefined;
  } catch (error) {
    return ACCEPTED.has(nameOfError(error)) ? undefined : `${nameOfError(error)}: ${String(error)}`;
  }
}

for (const [path, call] of tested) {
  test(`${path} called with anything answers, or says what is wrong`, async () => {
    const calls = WRONG.flatMap((first) =>
      WRONG.flatMap((second) => [undefined, null, {}, 5].map((third) => [first, second, third])),
    );
    for (const values of calls) {
      const found = await failure(call, values);
      assert.equal(found, undefined, `${nameOf(path)}(${values.map((value) => String(value)).join(', ')})`);
    }
  });
}

const clock = systemClock();
const projectId = 'test-project';
const firestore = new Firestore({ projectId });
const pubsub = new PubSub({ projectId, apiEndpoint: '127.0.0.1:9' });
const tasks = new CloudTasksClient({ projectId });
after(() => Promise.all([firestore.terminate(), pubsub.close(), tasks.close()]));
const publisher = memoryPublisher();
const queue = memoryTasks({ clock });
const ledger = memoryLedger({ clock });
const outboxStore = memoryOutbox({ clock });
const traces = memoryTraces(memoryInbox({ clock }), { clock });
const sagaStore = memorySagas(memoryInbox({ clock }), { clock });
const stepRecords = memoryStepRecords(memoryInbox({ clock }));
const topic = 'projects/p/topics/t';
const handler = async () => ack();
const subscription = () =>
  Object.assign(new EventEmitter(), {
    name: 'projects/p/subscriptions/s',
    pubsub: { projectId },
    setOptions() {},
    close: async () => {},
  });
const redis = { evalsha() {}, eval() {}, once() {} };
const rows = async () => ({ rows: [] });
const postgres = { query: rows, connect: async () => ({ query: rows, release() {} }) };
const closed = (receiver: unknown): unknown => (receiver as { close(): Promise<void> }).close();

type Case = Readonly<{
  /** The arguments before the options. */
  before: readonly unknown[];
  /** Options that are accepted. */
  valid: object;
  /** A misspelt name and what it is near to. */
  near: readonly [string, string];
  /** What is opened is closed again. */
  end?: (answer: unknown) => unknown;
}>;

const OPTIONS: Readonly<Record<string, Case>> = {
  bytesInFlight: {
    before: [],
    valid: { limit: 1, clock, log: silent, capability: 'delivery' },
    near: ['limits', 'limit'],
  },
  checkAttributes: { before: [], valid: { applied: [] }, near: ['applies', 'applied'] },
  checkWindows: { before: [], valid: {}, near: ['handlerTimout', 'handlerTimeout'] },
  deadLettering: { before: [publisher, 'dead'], valid: {}, near: ['maxbytes', 'maxBytes'] },
  dedup: { before: [memoryClaims({ clock })], valid: {}, near: ['leese', 'lease'] },
  delay: { before: [queue], valid: { clock, topic }, near: ['ledgerFr', 'ledgerFor'] },
  deliver: {
    before: [handler, { id: '1', attributes: {}, data: Buffer.alloc(0), publishTime: new Date(0) }],
    valid: { consumer: 'c', source: 's', clock, log: silent, handlerTimeout: '1s' },
    near: ['sourse', 'source'],
  },
  forward: { before: ['out'], valid: {}, near: ['maxByte', 'maxBytes'] },
  guarded: {
    before: [handler],
    valid: { publisher, deadLetterTopic: 'dead' },
    near: ['onse', 'once'],
  },
  httpEndpoint: {
    before: [handler],
    valid: { consumer: 'c', clock, log: silent, handlerTimeout: '1s' },
    near: ['deadLetterTopics', 'deadLetterTopic'],
  },
  inbox: { before: [memoryInbox({ clock })], valid: {}, near: ['publisherr', 'publisher'] },
  jsonLog: { before: [() => {}], valid: {}, near: ['lables', 'labels'] },
  complete: { before: [], valid: { publish: [] }, near: ['publich', 'publish'] },
  jobs: { before: [memoryJobs({ clock })], valid: { clock }, near: ['clok', 'clock'] },
  memoryClaims: { before: [], valid: { clock }, near: ['clok', 'clock'] },
  memoryInbox: { before: [], valid: { clock }, near: ['maxAttemps', 'maxAttempts'] },
  memoryJobs: { before: [], valid: { clock }, near: ['clocks', 'clock'] },
  memoryLedger: { before: [], valid: { clock }, near: ['time', 'times'] },
  memoryOutbox: { before: [], valid: { clock }, near: ['stamps', 'stamp'] },
  memoryPayloads: { before: [], valid: { clock }, near: ['clocks', 'clock'] },
  memoryStreams: { before: [], valid: { clock }, near: ['maxHeldByte', 'maxHeldBytes'] },
  memoryTasks: { before: [], valid: { clock }, near: ['Clock', 'clock'] },
  orderedDelivery: { before: [memoryStreams({ clock })], valid: {}, near: ['leese', 'lease'] },
  outbox: { before: [outboxStore], valid: {}, near: ['relays', 'relay'] },
  outboxTrigger: { before: [{ tailRow: () => {} }], valid: {}, near: ['row', 'rows'] },
  outboxSender: { before: [outboxStore, () => {}], valid: {}, near: ['newID', 'newId'] },
  outgoing: { before: ['out', { data: 'x' }], valid: {}, near: ['maxBytess', 'maxBytes'] },
  publishing: { before: [publisher], valid: {}, near: ['maxBites', 'maxBytes'] },
  relay: { before: [outboxStore, publisher], valid: {}, near: ['intervall', 'interval'] },
  republish: {
    before: [{ publisher, queue, deadLetters: (next: unknown) => next }],
    valid: { allowedTopics: [topic], clock, log: silent },
    near: ['allowedTopic', 'allowedTopics'],
  },
  retryLater: { before: [queue], valid: { clock, topic }, near: ['inprogress', 'inProgress'] },
  schedules: {
    before: [ledger, queue],
    valid: { clock, topic, consumer: 'c', source: 's' },
    near: ['payload', 'payloads'],
  },
  sequencer: { before: [memoryCounters()], valid: {}, near: ['maxAttempt', 'maxAttempts'] },
  sweepSchedules: { before: [ledger, queue], valid: { clock }, near: ['clocc', 'clock'] },
  correlated: { before: [], valid: { traces }, near: ['trace', 'traces'] },
  defineSaga: { before: ['place-order'], valid: { version: 1 }, near: ['versions', 'version'] },
  memoryTraces: { before: [memoryInbox({ clock })], valid: { clock }, near: ['clocc', 'clock'] },
  memorySagas: { before: [memoryInbox({ clock })], valid: { clock }, near: ['clocks', 'clock'] },
  orchestrator: { before: [sagaStore, []], valid: { topic: 'saga' }, near: ['topics', 'topic'] },
  outsideParticipant: {
    before: [stepRecords],
    valid: { replyTo: ['saga'], steps: {} },
    near: ['replyto', 'replyTo'],
  },
  participant: {
    before: [stepRecords],
    valid: { replyTo: ['saga'], steps: {} },
    near: ['step', 'steps'],
  },
  sagas: {
    before: [sagaStore],
    valid: { consumer: 'c', topic: 'saga', publisher },
    near: ['consumers', 'consumer'],
  },
  sweepSagas: { before: [sagaStore, publisher], valid: { topic: 'saga' }, near: ['topik', 'topic'] },
  firestoreLocks: { before: [firestore.collection('c')], valid: {}, near: ['fields', 'field'] },
  firestoreSagas: { before: [firestore], valid: {}, near: ['shard', 'shards'] },
  firestoreTraces: { before: [firestore], valid: {}, near: ['callTimeot', 'callTimeout'] },
  firestoreStepRecords: { before: [firestore], valid: {}, near: ['collections', 'collection'] },
  migrate: { before: [postgres], valid: { schema: 's' }, near: ['shema', 'schema'] },
  migrateOutbox: { before: [postgres], valid: { schema: 's' }, near: ['shema', 'schema'] },
  postgresOutbox: { before: [postgres], valid: { projectId: 'p' }, near: ['projectid', 'projectId'] },
  postgresJobs: { before: [postgres], valid: { clock }, near: ['outbx', 'outbox'] },
  worker: {
    before: [memoryJobs({ clock }), { r: { runTimeout: '1m', handle: {} } }],
    valid: { drainOnSigterm: false },
    near: ['concurency', 'concurrency'],
    end: (answer) => (answer as { stop(): Promise<void> }).stop(),
  },
  firestoreClaims: { before: [firestore], valid: {}, near: ['colection', 'collection'] },
  firestoreInbox: { before: [firestore], valid: {}, near: ['attempttimeout', 'attemptTimeout'] },
  firestoreStreams: { before: [firestore], valid: {}, near: ['shard', 'shards'] },
  firestoreCounterStart: { before: [firestore], valid: {}, near: ['scopes', 'scope'] },
  wakeTasks: {
    before: [queue],
    valid: { consumer: 'c', clock, log: silent },
    near: ['consumers', 'consumer'],
  },
  firestoreCounters: { before: [firestore], valid: {}, near: ['scopes', 'scope'] },
  firestoreOutbox: { before: [firestore], valid: {}, near: ['retenton', 'retention'] },
  firestorePayloads: { before: [firestore], valid: {}, near: ['callTimout', 'callTimeout'] },
  firestoreLedger: { before: [firestore], valid: {}, near: ['lostafter', 'lostAfter'] },
  evictionPolicy: {
    before: [redis],
    valid: { callTimeout: '1ms', clock },
    near: ['callTimout', 'callTimeout'],
  },
  evictionWarning: {
    before: [redis],
    valid: { callTimeout: '1ms', clock },
    near: ['callTimout', 'callTimeout'],
  },
  lazyLedger: { before: [async () => ledger], valid: { shards: 4 }, near: ['shard', 'shards'] },
  redisClaims: { before: [redis], valid: {}, near: ['prefixx', 'prefix'] },
  cloudTasksClient: {
    before: [],
    valid: { emulatorHost: '127.0.0.1:9' },
    near: ['emulatorhost', 'emulatorHost'],
    end: closed,
  },
  cloudTasksQueue: {
    before: [tasks],
    valid: { queue: 'projects/p/locations/l/queues/q', target: { appEngine: {} } },
    near: ['retryTimout', 'retryTimeout'],
  },
  pubsubClient: { before: [], valid: { projectId }, near: ['projectID', 'projectId'], end: closed },
  pubsubPublisher: { before: [pubsub], valid: {}, near: ['batchdelay', 'batchDelay'], end: closed },
  receive: {
    before: [subscription(), handler],
    valid: { consumer: 'c' },
    near: ['concurency', 'concurrency'],
    end: closed,
  },
  subscriptionWindows: {
    before: [pubsub, 'sub-1'],
    valid: { callTimeout: '1ms' },
    near: ['callTimout', 'callTimeout'],
  },
};

/** Those that have no options: values, checks of a message, clocks. */
const WITHOUT = new Set(
  `ack decide done memoryStepRecords refused reread sagaTraces undone versionOf voided bytesFor contextFor checkOutgoing compose consoleLog deadLetter decodeMessage identifierHash lazyPayloads
  memoryCounters parseDeliveryOptions readWake retry schemaOf settle severalQueues sleep systemClock taskHeaders toMilliseconds
  inTransaction jobOutbox enqueueing timestampOf memoryPublisher untilStopped virtualClock bad badSecret calledUrl choice delayQueues drainingQueues duration email emulators
  firestoreNames fullName isHttpUrl maxBytesInFlight optional payloadsThatFit project republisherService required taskQueue topic`.split(
    /\s+/,
  ),
);

test('every public function says here what its options are', () => {
  const names = tested.map(([path]) => nameOf(path));
  assert.deepEqual(
    names.filter((name) => !WITHOUT.has(name) && !Object.hasOwn(OPTIONS, name)),
    [],
  );
  const known = new Set(names);
  assert.deepEqual(
    [...WITHOUT, ...Object.keys(OPTIONS)].filter((name) => !known.has(name)),
    [],
  );
});

for (const [path, call] of tested) {
  const options = OPTIONS[nameOf(path)];
  if (options === undefined) continue;
  const { before, valid, near, end } = options;
  test(`${path} refuses an option that it does not have, with the nearest name`, async () => {
    const made = await call(...before, valid);
    await end?.(made);
    for (const [name, says] of [
      [near[0], new RegExp(`^(windows\\.)?${near[0]} is no option; accepted: ${near[1]} \\(the nearest\\)`)],
      ['thisIsNothingLikeIt', /^(windows\.)?thisIsNothingLikeIt is no option; accepted: \w+/],
    ] as const) {
      await assert.rejects(
        async () => call(...before, { ...valid, [name]: 1 }),
        { name: 'ConfigError', code: 'INVALID_OPTION', message: says },
        name,
      );
    }
    for (const wrong of [null, 5, 'text', [], true]) {
      await assert.rejects(async () => call(...before, wrong), {
        name: 'ConfigError',
        code: 'INVALID_OPTION',
        message: /^options is .+; accepted: an object with |^windows is .+; accepted: an object with /,
      });
    }
    // The machine's clock and the console are the default everywhere.
    const { clock: _clock, log: _log, ...rest } = valid as Readonly<Record<string, unknown>>;
    await end?.(await call(...before, rest));
    for (const name of Object.keys(valid)) {
      await assert.rejects(async () => call(...before, { ...valid, [name]: Symbol('wrong') }), {
        name: 'ConfigError',
      });
    }
  });
}

test('what was seen in use: a wrong argument names itself, its value and what is accepted', async () => {
  const cases: readonly (readonly [string, readonly unknown[], RegExp])[] = [
    [
      './receive/pubsub receive',
      ['sub', handler, { consumer: 'c' }],
      /^subscription is "sub"; accepted: a subscription of Google/,
    ],
    ['./testing memoryClaims', [null], /^options is null; accepted: an object with clock$/],
    ['./testing memoryClaims', [{ clock: {} }], /^clock is an object; accepted: a clock/],
    [
      './dedup/redis redisClaims',
      ['redis://host'],
      /^redis is "redis:\/\/host"; accepted: a client of ioredis/,
    ],
    [
      './dedup dedup',
      [redis],
      /^store is an object; accepted: what an adapter makes.*; it has no method claim/,
    ],
    [
      './dedup dedup',
      [memoryClaims({ clock }), { lease: 30 }],
      /^lease is 30; accepted: a whole number and a unit/,
    ],
    ['. compose', [handler, [undefined]], /^middleware\[0\] is undefined; accepted: a function/],
    [
      '. compose',
      [handler, [() => undefined]],
      /^what a middleware makes is undefined; accepted: a function/,
    ],
    [
      './dead-letters deadLettering',
      [pubsub, 'dead'],
      /^publisher is an object of PubSub; accepted: a publisher.*no method publish/,
    ],
    [
      './tasks/cloud-tasks cloudTasksQueue',
      [tasks, { queue: 'projects/p/locations/l/queues/q', target: {} }],
      /^target.url is undefined; accepted: a text/,
    ],
  ];
  for (const [path, values, message] of cases) {
    assert.ok(functions.has(path), path);
    await assert.rejects(
      async () => functions.get(path)?.(...values),
      { name: 'ConfigError', message },
      path,
    );
  }
  const own = functions.get('./outbox relay')?.(outboxStore, publisher) as {
    run(signal: unknown): Promise<void>;
    sweep(context: unknown): Promise<unknown>;
  };
  const { signal } = new AbortController();
  const says = { name: 'ConfigError', message: /^signal is an object; accepted: an AbortSignal/ };
  await assert.rejects(own.run({ signal }), says);
  await assert.rejects(own.sweep(signal), { name: 'ConfigError', message: /^context.signal is undefined/ });
});
