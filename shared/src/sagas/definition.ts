/**
 * A saga as data and pure functions: its steps in the order in which they run, first what can be compensated, then at
 * most one pivot, then what is repeated until it succeeds.
 *
 * A step in the wrong place does not compile, because the stage after a pivot has no `compensable`; from
 * JavaScript it is a ConfigError. Nothing here does I/O, and a definition is never changed: each call makes another one.
 */
import { type Duration, toMilliseconds } from '../duration.ts';
import { PermanentError, refused, refusedAs } from '../errors.ts';
import { byteLength, type OutgoingMessage } from '../message.ts';
import { callable, checkOptions, durationFrom, isObject, required, text, whole } from '../options.ts';
import type { StepKind, StepPlan } from './instance.ts';
import { MAX_DATA_BYTES } from './instance.ts';
import { jsonOf } from './json.ts';
import { startMessage } from './messages.ts';

/** `Data` is the saga's data when the step is reached. Every function is pure, and may be called again. */
export type CompensableStep<Data, Next = Data> = Readonly<{
  /** The participant's topic: an ID, or `projects/…/topics/…`. */
  topic: string;
  /** The body of the command, sent as JSON. Absent: done by the transaction that starts the saga. */
  do?(data: Data): unknown;
  /** The body of the compensation. `reply` is what the step answered; undefined while it is in doubt. */
  undo(data: Data, reply: unknown): unknown;
  /** The saga's data from here on. `reply` is JSON that another process made: name its type where you read it. */
  replied?(data: Data, reply: unknown): Next;
  /**
   * How long a reply is waited for until the command is sent again (default `1m`, `1ms` to `28d`); doubled with each
   * attempt, up to the larger of 10 minutes and this.
   */
  replyTimeout?: Duration;
  /** How often `do` is sent at most, the first time included, before the saga is aborted (default 3, at least 1). */
  maxAttempts?: number;
  /** Decided when the step is reached; false: it is skipped, and never undone. Not for a step without `do`. */
  when?(data: Data): boolean;
}>;

/** The step that decides: done, the saga goes on to its end; refused or withdrawn, it is compensated. */
export type PivotStep<Data, Next = Data> = Readonly<{
  topic: string;
  do(data: Data): unknown;
  replied?(data: Data, reply: unknown): Next;
  /** As of a compensable step. */
  replyTimeout?: Duration;
  /** As of a compensable step. */
  maxAttempts?: number;
}>;

/** Repeated without limit: it must succeed in the end. */
export type RetriableStep<Data, Next = Data> = Readonly<{
  topic: string;
  do(data: Data): unknown;
  replied?(data: Data, reply: unknown): Next;
  /** As of a compensable step. */
  replyTimeout?: Duration;
  when?(data: Data): boolean;
}>;

export type SagaOptions = Readonly<{
  /** A whole number from 1. Instances go on under the version that they started with. */
  version: number;
  /** From the start on, until the decision: then the saga is aborted (default: none; at least `1ms`, at most `28d`). */
  deadline?: Duration;
}>;

export type StartOptions = Readonly<{
  /** The orchestrator's topic. */
  topic: string;
}>;

/** The functions of a step, without the types of their data. */
export type StepFunctions = Readonly<{
  do?(data: unknown): unknown;
  undo?(data: unknown, reply: unknown): unknown;
  replied?(data: unknown, reply: unknown): unknown;
  when?(data: unknown): boolean;
}>;

/** What an orchestrator needs of a definition. */
export type SagaDefinition = Readonly<{
  name: string;
  version: number;
  deadlineMs: number | undefined;
  plan: readonly StepPlan[];
  functions: Readonly<Record<string, StepFunctions>>;
}>;

/** `Start` is the data that an instance is started with. */
export type Saga<Start> = SagaDefinition &
  Readonly<{
    /**
     * The message that starts the instance `id`, for an outbox or a publisher. The same call makes the same message, so a
     * repeat starts nothing. Throws PermanentError for an ID or data that cannot be stored.
     */
    start(id: string, data: Start, options: StartOptions): OutgoingMessage;
  }>;

/** Up to the decision. */
export type OpenStage<Start, Data> = Readonly<{
  compensable<Next = Data>(name: string, step: CompensableStep<Data, Next>): CompensableStage<Start, Next>;
  /** Side by side, 2 to 10 steps by their names. */
  compensableGroup(steps: Readonly<Record<string, CompensableStep<Data>>>): CompensableStage<Start, Data>;
  pivot<Next = Data>(name: string, step: PivotStep<Data, Next>): RetriableStage<Start, Next>;
}> &
  RetriableSteps<Start, Data>;

type RetriableSteps<Start, Data> = Readonly<{
  retriable<Next = Data>(name: string, step: RetriableStep<Data, Next>): RetriableStage<Start, Next>;
  retriableGroup(steps: Readonly<Record<string, RetriableStep<Data>>>): RetriableStage<Start, Data>;
}>;

export type CompensableStage<Start, Data> = Saga<Start> & OpenStage<Start, Data>;
/** From the decision on. */
export type RetriableStage<Start, Data> = Saga<Start> & RetriableSteps<Start, Data>;

/** Firestore keeps names of fields that begin and end with two underscores for itself. */
export const NAME = /^(?!__)[A-Za-z0-9._-]{1,100}$/;
const MAX_STEPS = 64;
const MAX_GROUP = 10;
/** Of a deadline or a reply: what one task reaches. https://cloud.google.com/tasks/docs/quotas */
const upTo28Days = durationFrom('1ms', '28d');
const DEFAULT_TIMEOUT = '1m';
const DEFAULT_ATTEMPTS = 3;

/**
 * The steps follow by method calls, in their order. Throws ConfigError `INVALID_OPTION` for a name that is not
 * `[A-Za-z0-9._-]{1,100}` or that is used twice, for a step in the wrong place, and for more than 64 steps or 10 in a group.
 *
 * @example
 * const placeOrder = defineSaga<Order>('place-order', { version: 1, deadline: '30m' })
 *   .compensable('order', { topic: 'orders', undo: ({ id }) => ({ reject: id }) })
 *   .compensable('credit', { topic: 'credit', do: ({ id, total }) => ({ id, reserve: total }), undo: ({ id }) => ({ id }) })
 *   .pivot('charge', { topic: 'payments', do: ({ id, total }) => ({ id, charge: total }) })
 *   .retriable('ship', { topic: 'shipping', do: ({ id }) => ({ ship: id }) });
 */
export function defineSaga<Data>(name: string, options: SagaOptions): OpenStage<Data, Data> {
  checkName('name', name);
  checkOptions<SagaOptions>(options, { version: required(whole(1)), deadline: upTo28Days });
  const deadlineMs =
    options.deadline === undefined ? undefined : toMilliseconds(options.deadline, 'deadline');
  return stage({ name, version: options.version, deadlineMs, plan: [], functions: {} });
}

type AnyStep = StepFunctions & Readonly<{ topic: string; replyTimeout?: Duration; maxAttempts?: number }>;
type Kind = Exclude<StepKind, 'begun'>;

/**
 * Every method is there at run time, so that a program in JavaScript gets a clear error; the types have those that may
 * follow.
 */
function stage<Start, Data>(definition: SagaDefinition): CompensableStage<Start, Data> {
  const then = <Next>(kind: Kind, steps: Readonly<Record<string, unknown>>) =>
    stage<Start, Next>(withGroup(definition, kind, steps));
  return {
    ...definition,
    compensable: (name, step) => then('compensable', { [named(name)]: step }),
    compensableGroup: (steps) => then('compensable', grouped(steps)),
    pivot: (name, step) => then('pivot', { [named(name)]: step }),
    retriable: (name, step) => then('retriable', { [named(name)]: step }),
    retriableGroup: (steps) => then('retriable', grouped(steps)),
    start: (id, data, options) => {
      checkOptions<StartOptions>(options, { topic: required(text) });
      const body = jsonOf('data', data);
      if (byteLength(body) > MAX_DATA_BYTES) {
        const text = `the saga's data takes ${byteLength(body)} bytes; accepted: at most ${MAX_DATA_BYTES}`;
        throw new PermanentError('LIMIT_EXCEEDED', text);
      }
      return startMessage(options.topic, { saga: definition.name, id, version: definition.version, body });
    },
  };
}

function withGroup(
  definition: SagaDefinition,
  kind: Kind,
  steps: Readonly<Record<string, unknown>>,
): SagaDefinition {
  const { plan, functions } = definition;
  const group = (plan.at(-1)?.group ?? -1) + 1;
  checkPlace(definition, kind, Object.keys(steps)[0] ?? '');
  const added = Object.entries(steps).map(([name, step]) => {
    if (Object.hasOwn(functions, name)) throw refused('name', name, 'a name that no other step has');
    checkStep(name, kind, step);
    return planOf(name, kind, step as AnyStep, group);
  });
  if (plan.length + added.length > MAX_STEPS)
    throw refused('steps', plan.length + added.length, `at most ${MAX_STEPS}`);
  return { ...definition, plan: [...plan, ...added], functions: { ...functions, ...functionsOf(steps) } };
}

function checkPlace({ plan }: SagaDefinition, kind: Kind, name: string): void {
  const last = plan.at(-1);
  const isLate = last?.kind === 'retriable' || last?.kind === 'pivot';
  if (last === undefined || !isLate || kind === 'retriable') return;
  throw refusedAs(
    name,
    `a ${kind} step after ${last.kind} step "${last.name}"`,
    'compensable steps, at most one pivot, retriable steps, in this order',
  );
}

const COMMON = { topic: required(text), replied: callable, replyTimeout: upTo28Days };

function checkStep(name: string, kind: Kind, step: unknown): void {
  const action = required(callable);
  isObject(name, step);
  if (kind === 'pivot') {
    checkOptions<PivotStep<unknown>>(step, { ...COMMON, do: action, maxAttempts: whole(1) }, name);
  } else if (kind === 'retriable') {
    checkOptions<RetriableStep<unknown>>(step, { ...COMMON, do: action, when: callable }, name);
  } else {
    const shape = { ...COMMON, do: callable, undo: action, maxAttempts: whole(1), when: callable };
    checkOptions<CompensableStep<unknown>>(step, shape, name);
    const { do: run, when, replied } = step as CompensableStep<unknown>;
    const extra = when === undefined ? replied : when;
    if (run === undefined && extra !== undefined)
      throw refused(`${name}.do`, run, 'a function: a step without it has neither when nor replied');
  }
}

const planOf = (name: string, kind: Kind, step: AnyStep, group: number): StepPlan => ({
  name,
  kind: kind === 'compensable' && step.do === undefined ? 'begun' : kind,
  group,
  topic: step.topic,
  timeoutMs: toMilliseconds(step.replyTimeout ?? DEFAULT_TIMEOUT, `${name}.replyTimeout`),
  attempts: step.maxAttempts ?? DEFAULT_ATTEMPTS,
});

const functionsOf = (steps: Readonly<Record<string, unknown>>): Record<string, StepFunctions> =>
  Object.fromEntries(Object.entries(steps).map(([name, step]) => [name, step as StepFunctions]));

function grouped(steps: unknown): Readonly<Record<string, unknown>> {
  if (typeof steps !== 'object' || steps === null || Array.isArray(steps))
    throw refused('steps', steps, 'an object of steps by their names');
  const names = Object.keys(steps);
  if (names.length < 2 || names.length > MAX_GROUP)
    throw refused('steps', names.length, `2 to ${MAX_GROUP} steps in a group`);
  for (const name of names) named(name);
  return steps as Readonly<Record<string, unknown>>;
}

/** An own property, so that no name is one of an object's prototype. */
function named(name: unknown): string {
  checkName('name', name);
  return name;
}

function checkName(path: string, name: unknown): asserts name is string {
  if (typeof name !== 'string' || !NAME.test(name))
    throw refused(path, name, '1 to 100 characters of A-Z a-z 0-9 . _ -, not two underscores first');
}
