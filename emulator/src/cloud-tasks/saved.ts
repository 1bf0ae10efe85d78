/**
 * The state of the Cloud Tasks server as plain JSON data, and how it is put in place. Queues and tasks have Google's JSON
 * form; what is empty, zero or false may be left out, and `{}` is a server without queues.
 *
 *     queues[]               Queue (without what the service derives), and
 *       tasks[]                in the order of creation, see saved-task.ts
 *       rememberedTaskNames[]  { name, until }: names that cannot be used again before that time
 *       iamPolicy              a google.iam.v1.Policy, where one was set
 *     rememberedQueueNames[] the same of deleted queues
 *
 * A task that was in flight is due at once: its request may have been carried out or not, and a task comes at least once.
 * That attempt counts as dispatched and not as answered; when it was the last one, there is one more. Not kept: what
 * the rate limits had left (a queue begins with a full bucket), and the numbers of `stats()`.
 */
import type { Clock } from '../clock.ts';
import type { State } from '../faults/restart.ts';
import type { Policies } from '../iam/policies.ts';
import { POLICY, readPolicy, savePolicy } from '../iam/saved-policy.ts';
import {
  accepted,
  assertUnique,
  duration,
  list,
  meaningful,
  number,
  oneOf,
  optional,
  record,
  refused,
  text,
  timeMs,
  whole,
  writeDuration,
  writeMs,
} from '../saved-json.ts';
import { durationOfMs } from './messages.ts';
import { checkQueueName, parseTaskName } from './names.ts';
import { parseQueueConfig, type QueueConfig } from './queue-config.ts';
import type { Queue, QueuePast } from './queue.ts';
import type { RememberedNames } from './remembered-names.ts';
import { ROUTING, saveRouting, saveTask, TASK, taskOf } from './saved-task.ts';
import type { TargetRules } from './target.ts';

export type SavedTasksPorts = Readonly<{
  clock: Clock;
  queues: Map<string, Queue>;
  /** Of queues that were deleted. */
  deletedNames: RememberedNames;
  policies: Policies;
  open(config: QueueConfig, past: QueuePast): Queue;
  nextSequence(): number;
  rules: Omit<TargetRules, 'routingOverride'>;
  /** Nothing is heard of any request in flight after this. */
  dropRequests(): void;
}>;

const NAMES = optional(list(record({ name: text, until: timeMs })), []);
const count = optional(whole(-1, 2 ** 31 - 1), 0);
const length = optional(duration, null);

const QUEUE = record({
  name: text,
  appEngineRoutingOverride: optional(ROUTING, null),
  rateLimits: optional(
    record({ maxDispatchesPerSecond: optional(number, 0), maxConcurrentDispatches: count }),
    null,
  ),
  retryConfig: optional(
    record({
      maxAttempts: count,
      maxRetryDuration: length,
      minBackoff: length,
      maxBackoff: length,
      maxDoublings: count,
    }),
    null,
  ),
  state: optional(oneOf('RUNNING', 'PAUSED'), 'RUNNING'),
  purgeTime: optional(timeMs, undefined),
  tasks: optional(list(TASK), []),
  rememberedTaskNames: NAMES,
  iamPolicy: POLICY,
});

const STATE = record({ queues: optional(list(QUEUE), []), rememberedQueueNames: NAMES });

export function savedTasks(ports: SavedTasksPorts): State {
  const { queues, deletedNames, policies } = ports;
  return {
    save: () => ({
      queues: [...queues.values()].map((queue) => ({
        ...saveQueue(queue),
        ...meaningful({ iamPolicy: savePolicy(policies.find(queue)) }),
      })),
      rememberedQueueNames: saveNames(deletedNames),
    }),
    prepare(saved) {
      const { opened, rememberedQueueNames } = parse(saved, ports);
      return () => {
        for (const queue of queues.values()) queue.close();
        ports.dropRequests();
        queues.clear();
        deletedNames.clear();
        restoreNames(deletedNames, rememberedQueueNames);
        for (const { config, past, names, tasks, policy } of opened) {
          const queue = ports.open(config, past);
          queues.set(config.name, queue);
          if (policy !== undefined) policies.restore(queue, policy);
          restoreNames(queue.remembered, names);
          for (const task of tasks) queue.add(task);
        }
        for (const queue of queues.values()) queue.pump();
      };
    },
  };
}

type Names = readonly Readonly<{ name: string; until: number }>[];

const saveNames = (remembered: RememberedNames): readonly object[] =>
  remembered.entries().map(([name, untilMs]) => ({ name, until: writeMs(untilMs) }));

function restoreNames(remembered: RememberedNames, names: Names): void {
  for (const { name, until } of names.toSorted((a, b) => a.until - b.until)) remembered.restore(name, until);
}

function saveQueue(queue: Queue): object {
  const { name, routingOverride, rateLimits, retry } = queue.config;
  const { paused, purgedMs } = queue.past();
  const ms = (value: number): string | undefined =>
    value === 0 ? undefined : writeDuration(durationOfMs(value));
  return meaningful({
    name,
    appEngineRoutingOverride: routingOverride && saveRouting(routingOverride),
    rateLimits: {
      maxDispatchesPerSecond: rateLimits.maxDispatchesPerSecond,
      maxConcurrentDispatches: rateLimits.maxConcurrentDispatches,
    },
    retryConfig: meaningful({
      maxAttempts: retry.maxAttempts,
      maxRetryDuration: ms(retry.maxRetryDurationMs),
      minBackoff: ms(retry.minBackoffMs),
      maxBackoff: ms(retry.maxBackoffMs),
      maxDoublings: retry.maxDoublings,
    }),
    state: paused ? 'PAUSED' : 'RUNNING',
    purgeTime: purgedMs === undefined ? undefined : writeMs(purgedMs),
    tasks: [...queue.tasks.values()].map(saveTask),
    rememberedTaskNames: saveNames(queue.remembered),
  });
}

function parse(saved: unknown, ports: SavedTasksPorts) {
  const { queues, rememberedQueueNames } = STATE(saved, 'tasks');
  assertUnique(queues, 'tasks.queues', '.name', ({ name }) => name);
  checkNames(rememberedQueueNames, 'tasks.rememberedQueueNames', queues, checkQueueName);
  const opened = queues.map(
    ({ tasks, rememberedTaskNames: names, state, purgeTime, iamPolicy, ...given }, index) => {
      const place = `tasks.queues[${index}]`;
      accepted(`${place}.name`, () => checkQueueName(given.name));
      const config = accepted(place, () => parseQueueConfig({ ...given, stackdriverLoggingConfig: null }));
      const inQueue = (name: string, where: string): void => {
        const { queue } = accepted(where, () => parseTaskName(name));
        if (queue !== config.name) throw refused(where, name, `the name of a task of ${config.name}`);
      };
      assertUnique(tasks, `${place}.tasks`, '.name', ({ name }) => name);
      checkNames(names, `${place}.rememberedTaskNames`, tasks, inQueue);
      const rules = { ...ports.rules, routingOverride: config.routingOverride };
      return {
        config,
        policy: readPolicy(iamPolicy, place),
        past: { paused: state === 'PAUSED', purgedMs: purgeTime },
        names,
        tasks: tasks.map((task, i) => {
          inQueue(task.name, `${place}.tasks[${i}].name`);
          return taskOf(task, `${place}.tasks[${i}]`, ports.nextSequence(), ports.clock.now(), rules);
        }),
      };
    },
  );
  return { opened, rememberedQueueNames };
}

/** A name is either in use or remembered. */
function checkNames(
  names: Names,
  place: string,
  owners: readonly Readonly<{ name: string }>[],
  check: (name: string, place: string) => void,
): void {
  const used = new Set(owners.map(({ name }) => name));
  assertUnique(names, place, '.name', ({ name }) => name);
  names.forEach(({ name }, index) => {
    const where = `${place}[${index}].name`;
    accepted(where, () => check(name, where));
    if (used.has(name)) throw refused(where, name, 'a name that nothing has now');
  });
}
