/**
 * The methods of what the public functions return, called wrongly from JavaScript: each argument in turn is none that is
 * accepted, and the call ends with an error that names it, before anything is written or published.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contextFor } from './context.ts';
import { memoryInbox } from './dedup/inbox-memory.ts';
import { jobs } from './jobs/jobs.ts';
import { memoryJobs } from './jobs/memory.ts';
import { ack } from './outcome.ts';
import { orderedDelivery } from './order/in-order.ts';
import { memoryStreams } from './order/memory.ts';
import { memoryOutbox } from './outbox/memory.ts';
import { outbox } from './outbox/outbox.ts';
import { relay } from './outbox/relay.ts';
import { outboxSender } from './outbox/sender.ts';
import { sagas } from './sagas/sagas.ts';
import { memorySagas } from './sagas/memory.ts';
import { memoryTraces } from './sagas/memory-traces.ts';
import { sweepSagas } from './sagas/sweep.ts';
import { sagaTraces } from './sagas/traces.ts';
import { memoryLedger } from './schedules/memory.ts';
import { schedules } from './schedules/schedules.ts';
import { sweepSchedules } from './schedules/sweep.ts';
import { memoryCounters } from './sequence/memory.ts';
import { sequencer } from './sequence/sequencer.ts';
import { memoryTasks } from './tasks/memory.ts';
import { memoryPublisher } from './testing/memory-publisher.ts';
import { virtualClock } from './testing/virtual-clock.ts';

type Method = (...values: unknown[]) => unknown;

/** An argument that is accepted, and what of WRONG is accepted in its place: a default, a text for a name. */
type Argument = readonly [valid: unknown, ...taken: readonly string[]];

type Made = Readonly<{
  object: object;
  methods: Readonly<Record<string, readonly Argument[]>>;
  /** Those that take no argument, or whose arguments may be anything. */
  without?: readonly string[];
}>;

const WRONG: Readonly<Record<string, unknown>> = {
  undefined,
  null: null,
  '5': 5,
  text: 'text',
  '{}': {},
  nonsense: { nonsense: 1 },
};
const TYPED = ['ConfigError', 'PermanentError', 'TransientError'];

const clock = virtualClock();
const topic = 'projects/p/topics/t';
const message = { topic, data: Buffer.from('x'), attributes: {} };
const publisher = memoryPublisher();
const queue = memoryTasks({ clock });
const store = memoryOutbox({ clock });
const ledger = memoryLedger({ clock });
const jobStore = memoryJobs({ clock });
const numbersTaken: string[] = [];
const counted = memoryCounters();
const counters: typeof counted = {
  take(key, request) {
    numbersTaken.push(key);
    return counted.take(key, request);
  },
};

/** All that a call could have left behind. */
const left = async (): Promise<unknown> => [
  publisher.published.length,
  store.rows().length,
  ledger.entries().size,
  numbersTaken.length,
  jobStore.rows().length,
  (await jobStore.look()).ready,
];

/** Inside a transaction of its own, which is committed. */
const inOutbox: Method = async (first, ...rest) =>
  store.transact(async (own) => {
    const slot = await outbox(store).reserve((first === OWN ? own : first) as never, ...(rest as []));
    return slot.isRepeat;
  });
const OWN = Symbol('the transaction of the call');
const inLedger =
  (name: 'reserve' | 'put' | 'cancel'): Method =>
  async (first, ...rest) =>
    ledger.transact(async (own) => (plans[name] as Method)(first === OWN ? own : first, ...rest));
const inJobs: Method = async (first, list) =>
  jobStore.transact(async (own) => work.enqueue((first === OWN ? own : first) as never, list as never));

const plans = schedules(ledger, queue, { clock, topic, consumer: 'c', source: 's' });
const work = jobs(jobStore, { clock });
const streams = orderedDelivery(memoryStreams({ clock }), { clock });
const sagaStore = memorySagas(memoryInbox({ clock }), { clock });
const context: Argument = [contextFor(clock, { consumer: 'c' })];
const sender = relay(store, publisher, { clock });
const stream: Argument = [{ consumer: 'c', source: 's', key: 'k' }];
const ref: Argument = [{ key: 'k', epoch: 'e' }];
const text: Argument = ['k', 'text'];
const options: Argument = [{}, 'undefined', '{}'];

const MADE: Readonly<Record<string, Made>> = {
  outbox: {
    object: { ...outbox(store), reserve: inOutbox },
    methods: { reserve: [[OWN], options] },
    // Of no effect without a payload store.
    without: ['prepare'],
  },
  relay: {
    object: sender,
    methods: {
      flush: [ref, [1, '5']],
      publishRows: [[[]]],
      flushRows: [[[]]],
      tailRow: [text],
      run: [[AbortSignal.abort()]],
      sweep: [[{ signal: new AbortController().signal }]],
      listFailures: [[100, 'undefined', '5']],
      resume: [['k', 'text']],
      skip: [
        ['k', 'text'],
        [1, 'undefined', '5'],
      ],
      reopen: [text],
    },
    without: ['repair'],
  },
  'relay.repair': {
    object: sender.repair,
    methods: { republish: [text, [{ from: 1, to: 2 }]] },
  },
  orderedDelivery: {
    object: streams,
    methods: {
      inspect: [stream],
      list: [text, options],
      resume: [stream],
      skip: [stream, [1]],
      sweep: [[async () => ack()]],
      wake: [[async () => ack()]],
    },
    without: ['middleware', 'stop'],
  },
  sequencer: {
    object: sequencer(counters),
    methods: {
      next: [text],
      number: [text, [message]],
      numberBatch: [text, [[message]]],
      publish: [[publisher], text, [message]],
      publishBatch: [[publisher], text, [[message]]],
    },
  },
  schedules: {
    object: {
      ...plans,
      reserve: inLedger('reserve'),
      put: inLedger('put'),
      cancel: inLedger('cancel'),
    },
    methods: {
      reserve: [[OWN], text],
      put: [[OWN], text, [{ data: 'x' }]],
      cancel: [[OWN], text],
      get: [text],
      reopen: [text],
      list: [options],
    },
  },
  sagas: {
    object: sagas(sagaStore, { consumer: 'c', topic, publisher, clock }),
    methods: {
      inspect: [text, text],
      list: [options],
      cancel: [text, text, options],
      retry: [text, text, options],
      settle: [text, text, text, [{ outcome: 'done', reason: 'r' }]],
    },
  },
  jobs: {
    object: { ...work, enqueue: inJobs },
    methods: {
      enqueue: [[OWN], [[{ role: 'r', kind: 'k', payload: 1 }]]],
      submit: [[[{ role: 'r', kind: 'k', payload: 1 }]]],
      wake: [text],
      cancel: [['1']],
      dead: [options],
      relaunch: [[['1']]],
      discard: [[['1']]],
      look: [['r', 'undefined', 'text']],
      health: [options],
    },
    without: ['tidy'],
  },
  'what answers a sweep': {
    object: {
      sagas: sweepSagas(sagaStore, publisher, { topic, clock }),
      schedules: sweepSchedules(ledger, queue, { clock }),
      streams: streams.sweep(async () => ack()),
      wake: streams.wake(async () => ack()),
    },
    methods: {
      sagas: [context],
      schedules: [context],
      streams: [context],
      wake: [[{ source: 's', key: 'k' }], context],
    },
  },
  sagaTraces: {
    object: sagaTraces(memoryTraces(memoryInbox({ clock }), { clock })),
    methods: { of: [text], open: [[{ olderThan: '1h' }]] },
  },
  outboxSender: {
    object: outboxSender(store, (own) => store.transact(own)),
    methods: { send: [text, [message]] },
  },
};

for (const [name, { object, methods, without = [] }] of Object.entries(MADE)) {
  test(`every method of ${name} says here what its arguments are`, () => {
    assert.deepEqual([...Object.keys(methods), ...without].toSorted(), Object.keys(object).toSorted());
  });

  for (const [method, args] of Object.entries(methods)) {
    test(`${name}.${method} refuses each argument that is not of its type, and does nothing`, async () => {
      const call = Reflect.get(object, method) as Method;
      for (const [position, [, ...taken]] of args.entries()) {
        for (const [shown, wrong] of Object.entries(WRONG)) {
          if (taken.includes(shown)) continue;
          const values = args.map(([valid], index) => (index === position ? wrong : valid));
          const before = await left();
          const refused = await (async () => call(...values))().then(
            () => 'taken',
            (error: unknown) => (error instanceof Error ? `${error.name}: ${error.message}` : typeof error),
          );
          const at = `${name}.${method}, argument ${position + 1} is ${shown}: ${refused}`;
          assert.ok(
            TYPED.some((typed) => refused.startsWith(`${typed}: `)),
            at,
          );
          assert.deepEqual(await left(), before, at);
        }
      }
    });
  }
}
