/**
 * Random traffic, saved and loaded at random moments with requests in flight, against a model of what each task still
 * has before it. The sender is a list of requests that the test answers when it likes.
 */
import assert from 'node:assert/strict';
import { createPolicies } from '../iam/policies.ts';
import { test } from 'node:test';
import fc from 'fast-check';
import { type ManualClock, manualClock } from '../manual-clock.ts';
import type { HttpSender } from './http-sender.ts';
import type { Outcome } from './outcome.ts';
import { queueMethods } from './queue-methods.ts';
import type { QueueConfig } from './queue-config.ts';
import { createQueue, type Queue, type QueuePast } from './queue.ts';
import { createRememberedNames } from './remembered-names.ts';
import { savedTasks } from './saved.ts';
import { taskMethods } from './task-methods.ts';
import type { CreateTaskRequest } from './messages.ts';

const START_MS = Date.UTC(2030, 0, 1);
const PARENT = 'projects/p/locations/l';
const [HOUR_MS, DAY_MS] = [3_600_000, 86_400_000];
const LIFE_MS = 31 * DAY_MS;
const MAX_ATTEMPTS = 4;
const SETTINGS: Readonly<Record<string, object>> = {
  fast: { retryConfig: { maxAttempts: MAX_ATTEMPTS } },
  slow: { rateLimits: { maxDispatchesPerSecond: 0.5, maxConcurrentDispatches: 2 } },
  single: { rateLimits: { maxConcurrentDispatches: 1 }, retryConfig: { maxAttempts: -1 } },
};
const MOST_AT_ONCE: Readonly<Record<string, number>> = { slow: 2, single: 1 };

type Sent = Readonly<{ task: string; done: (outcome: Outcome) => void }>;
type Model = {
  readonly queue: string;
  readonly createdMs: number;
  /** Not before this time, unless it is run by hand. */
  dueMs: number;
  dispatches: number;
  inFlight: number;
  state: 'waiting' | 'over';
  overMs: number;
  succeeded: boolean;
};

/** A server in one process, without sockets. */
function serverOf(clock: ManualClock, send: (task: string, retry: number, done: Sent['done']) => void) {
  const queues = new Map<string, Queue>();
  const sender: HttpSender = {
    send: ({ headers }, done) =>
      send(String(headers['X-CloudTasks-TaskName']), Number(headers['X-CloudTasks-TaskRetryCount']), done),
    close() {},
  };
  const none = { appEngine: undefined, identity: undefined, onWire: new Set<never>() };
  const ports = { clock, log: () => {}, sender, ...none };
  const deletedNames = createRememberedNames(clock, 7 * DAY_MS);
  const open = (config: QueueConfig, past?: QueuePast): Queue =>
    createQueue(ports, config, createRememberedNames(clock, HOUR_MS), past);
  let sequence = 0;
  const nextSequence = (): number => ++sequence;
  const rules = { appEngine: false, oidcTokens: false };
  const sizes = { maxTaskBytes: 1e6, sizeOf: () => 1 };
  return {
    queues,
    ...queueMethods({ clock, queues, deletedNames, open }),
    ...taskMethods({ clock, queues, ...rules, ...sizes, nextSequence }),
    ...savedTasks({
      clock,
      queues,
      deletedNames,
      policies: createPolicies(clock.now),
      open,
      nextSequence,
      rules,
      dropRequests() {},
    }),
  };
}

function world() {
  let clock = manualClock(START_MS);
  const models = new Map<string, Model>();
  let wire: Sent[] = [];
  const paused = new Set<string>();
  let byHand = false;

  const of = (task: string): Model => models.get(task) ?? assert.fail(task);
  const queueName = (queue: string): string => `${PARENT}/queues/${queue}`;
  const taskName = (task: string): string => `${queueName(of(task).queue)}/tasks/${task}`;

  function send(task: string, retry: number, done: Sent['done']): void {
    const model = of(task);
    const { queue } = model;
    assert.equal(model.state, 'waiting', `${task} was dispatched although it was over`);
    assert.ok(clock.now() < model.createdMs + LIFE_MS, `${task} was dispatched after 31 days`);
    assert.equal(retry, model.dispatches, `the retry count of ${task}`);
    if (!byHand) {
      assert.ok(clock.now() >= model.dueMs, `${task} was dispatched ${model.dueMs - clock.now()} ms early`);
      assert.ok(!paused.has(queue), `${task} was dispatched while ${queue} was paused`);
      const beside = wire.filter((each) => of(each.task).queue === queue).length;
      assert.ok(beside < (MOST_AT_ONCE[queue] ?? 1_000), `${beside} were in flight in ${queue}`);
    }
    model.dispatches += 1;
    model.inFlight += 1;
    wire.push({ task, done });
  }
  let server = serverOf(clock, send);
  for (const [queue, settings] of Object.entries(SETTINGS)) {
    const message = { name: queueName(queue), ...settings } as never;
    server.createQueue({ parent: PARENT, queue: message });
  }

  const over = (task: string): Model => Object.assign(of(task), { state: 'over', overMs: clock.now() });
  /** Those that are too old are over. When the server notices is its own business: so is how long it remembers them. */
  const age = (): void => {
    for (const [task, { createdMs, state }] of models) {
      if (state === 'waiting' && clock.now() >= createdMs + LIFE_MS)
        Object.assign(over(task), { overMs: NaN });
    }
  };

  function answer(which: number, status: number): void {
    const sent = wire[which % Math.max(wire.length, 1)];
    if (sent === undefined) return;
    wire = wire.filter((each) => each !== sent);
    const model = of(sent.task);
    model.inFlight -= 1;
    age();
    if (model.state === 'waiting') {
      if (status === 200) {
        over(sent.task);
        model.succeeded = true;
      } else if (model.inFlight === 0) {
        const gaveUp = model.queue === 'fast' && model.dispatches >= MAX_ATTEMPTS;
        if (gaveUp) over(sent.task);
        else model.dueMs = clock.now();
      }
    }
    sent.done({ kind: 'response', status });
  }

  return {
    create(queue: string, aheadMs: number) {
      const task = `t${models.size}`;
      const dueMs = clock.now() + aheadMs;
      const life = { createdMs: clock.now(), dueMs, dispatches: 0, inFlight: 0, overMs: 0, succeeded: false };
      models.set(task, { queue, ...life, state: 'waiting' });
      const scheduleTime = { seconds: String(Math.floor(dueMs / 1000)), nanos: (dueMs % 1000) * 1e6 };
      const httpRequest = {
        url: 'http://127.0.0.1:9/',
        httpMethod: 'POST',
        headers: {},
        body: Buffer.alloc(0),
      };
      const request = { parent: queueName(queue), responseView: 'BASIC' };
      const message = { name: taskName(task), scheduleTime, httpRequest };
      server.createTask({ ...request, task: message } as unknown as CreateTaskRequest);
    },
    answer,
    /** A name is in use, remembered for an hour, or free. */
    again(which: number) {
      const task = `t${which % Math.max(models.size, 1)}`;
      if (!models.has(task)) return;
      age();
      const { state, overMs } = of(task);
      const request = { name: taskName(task), responseView: 'BASIC' };
      if (state === 'waiting') server.getTask(request);
      else assert.throws(() => server.getTask(request), { code: 5 }, `${task} is still there`);
      if (Number.isNaN(overMs)) return;
      const queue = server.queues.get(queueName(of(task).queue));
      const isRemembered = queue?.remembered.has(taskName(task));
      assert.equal(isRemembered, state === 'over' && clock.now() < overMs + HOUR_MS, `the name ${task}`);
    },
    run(which: number) {
      const task = `t${which % Math.max(models.size, 1)}`;
      if (!models.has(task)) return;
      age();
      if (of(task).state === 'over') return;
      byHand = true;
      server.runTask({ name: taskName(task), responseView: 'BASIC' });
      byHand = false;
    },
    remove(which: number) {
      const task = `t${which % Math.max(models.size, 1)}`;
      if (!models.has(task)) return;
      age();
      if (of(task).state === 'over') return;
      over(task);
      server.deleteTask({ name: taskName(task) });
    },
    purge(queue: string) {
      age();
      for (const [task, model] of models) {
        if (model.queue === queue && model.state === 'waiting') over(task);
      }
      server.purgeQueue({ name: queueName(queue) });
    },
    pause(queue: string) {
      paused.add(queue);
      server.pauseQueue({ name: queueName(queue) });
    },
    resume(queue: string) {
      paused.delete(queue);
      server.resumeQueue({ name: queueName(queue) });
    },
    pass(milliseconds: number) {
      clock.advance(milliseconds);
      age();
    },
    reload(laterMs: number, into: 'fresh' | 'same') {
      const saved = JSON.parse(JSON.stringify(server.save())) as object;
      const beside = wire;
      wire = [];
      for (const { task } of beside) {
        const model = of(task);
        model.inFlight = 0;
        if (model.state !== 'waiting') continue;
        model.dueMs = clock.now();
      }
      if (into === 'fresh') {
        server.prepare({})();
        clock = manualClock(clock.now() + laterMs);
        server = serverOf(clock, send);
      }
      age();
      server.prepare(saved)();
      // What is heard of a request of before settles nothing.
      for (const { done } of beside) done({ kind: 'response', status: 200 });
    },
    /** Every task that is not over is dispatched until it succeeds. */
    drain() {
      for (const queue of Object.keys(SETTINGS)) this.resume(queue);
      // Time enough to be tried before they are too old, even if the rate holds them up.
      const wanted = [...models].filter(
        ([, { state, createdMs, dueMs }]) =>
          state === 'waiting' && createdMs + LIFE_MS > Math.max(clock.now(), dueMs) + HOUR_MS,
      );
      for (let round = 0; round < 3_000; round += 1) {
        if (wire.length === 0 && [...models.values()].every(({ state }) => state === 'over')) break;
        while (wire.length > 0) answer(0, 200);
        this.pass(HOUR_MS / 4);
      }
      for (const [task, { state }] of models) {
        assert.equal(state, 'over', `${task} was never done`);
        assert.throws(() => server.getTask({ name: taskName(task), responseView: 'BASIC' }), { code: 5 });
      }
      for (const [task, { succeeded }] of wanted) assert.ok(succeeded, `${task} never arrived`);
      server.prepare({})();
      assert.equal(clock.timers(), 0);
    },
  };
}

type World = ReturnType<typeof world>;
const queue = fc.constantFrom(...Object.keys(SETTINGS));
const of = <T>(weight: number, arbitrary: fc.Arbitrary<T>, act: (w: World, value: T) => void) => ({
  weight,
  arbitrary: arbitrary.map((value) => (w: World) => act(w, value)),
});
const step = fc.oneof(
  of(6, fc.tuple(queue, fc.constantFrom(0, 0, 999, 5_000, DAY_MS, 30 * DAY_MS)), (w, [q, ms]) =>
    w.create(q, ms),
  ),
  of(8, fc.tuple(fc.nat(9), fc.constantFrom(200, 200, 500, 404)), (w, [n, status]) => w.answer(n, status)),
  of(3, fc.nat(20), (w, n) => w.again(n)),
  of(2, fc.nat(20), (w, n) => w.run(n)),
  of(1, fc.nat(20), (w, n) => w.remove(n)),
  of(1, queue, (w, q) => w.purge(q)),
  of(1, queue, (w, q) => w.pause(q)),
  of(1, queue, (w, q) => w.resume(q)),
  of(5, fc.constantFrom(1, 100, 2_000, HOUR_MS, DAY_MS, 29 * DAY_MS), (w, ms) => w.pass(ms)),
  of(
    4,
    fc.tuple(fc.constantFrom(0, 60_000), fc.constantFrom('fresh' as const, 'same' as const)),
    (w, [ms, into]) => w.reload(ms, into),
  ),
);

test('property: whenever it is saved and loaded, each task comes at its time, until it is over, and no more', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
      const running = world();
      for (const each of steps) {
        each(running);
        await Promise.resolve();
      }
      running.drain();
    }),
    { numRuns: 300 },
  );
});
