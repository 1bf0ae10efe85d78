/**
 * The rules of a saga: what each event makes of an instance. Pure, without a clock and without I/O, and run inside a
 * transaction on the instance, so that of two events at once each sees what the other left.
 *
 * A definition's function that throws changes nothing but the instance's `failure`: the event is lost, as a message may
 * be, and the timer asks again.
 */
import { textOf } from '../errors.ts';
import { hashOf } from '../hash.ts';
import { byteLength } from '../message.ts';
import { isObject, listOf } from '../options.ts';
import { propertyOf } from '../shown-value.ts';
import type { Outcome } from './attributes.ts';
import type { SagaDefinition } from './definition.ts';
import { type Draft, draftOf, resend, closeStep, noteProblem } from './draft.ts';
import {
  type Action,
  dueMs,
  type Instance,
  isDecided,
  isEnded,
  MAX_DATA_BYTES,
  MAX_INSTANCE_BYTES,
  openAction,
  type SagaRef,
  stepOf,
} from './instance.ts';
import type { Sending } from './messages.ts';
import { cancel, type OperatorAnswer, type OperatorEvent, retryNow, settle } from './operations.ts';
import { advance, abort, stepRefused, stepSucceeded } from './progress.ts';
import { withTimer } from './timer.ts';

export type SagaEvent = Readonly<{
  /** The `dedupId` of the message, for the history. */
  id?: string;
}> &
  (
    | Readonly<{ kind: 'start'; ref: SagaRef; body: string }>
    | Readonly<{
        kind: 'reply';
        step: string;
        action: Action;
        outcome: Outcome;
        reply: string;
        code?: string;
      }>
    | Readonly<{ kind: 'tick'; arm: number }>
    /** In the place of a tick that has not come. */
    | Readonly<{ kind: 'sweep' }>
    | OperatorEvent
  );

export type SagaAnswer =
  | 'started'
  | 'moved'
  /** It changes nothing: a repeat, something late, or a timer that is not the instance's any more. */
  | 'stale'
  /** There is no such instance. */
  | 'unknown'
  /** Another start of this ID had other data. */
  | 'conflict'
  /** A function of the definition threw. */
  | 'failed'
  | OperatorAnswer;

export type Decision = Readonly<{
  answer: SagaAnswer;
  /** To be written; absent: nothing changes, and nothing leaves. */
  instance?: Instance;
  commands: readonly Sending[];
  /** A message to oneself, not before its time. */
  tick?: Readonly<{ arm: number; atMs: number }>;
}>;

/** What the sweep leaves to the timer: a task is late before it is lost. */
export const SWEEP_GRACE_MS = 120_000;
/** Events that are kept. */
const HISTORY = 100;

/**
 * `nowMs` is the store's time of the read. `definition` is that of the instance's own version. Throws ConfigError
 * `INVALID_OPTION` for what is no definition, no instance or no event.
 *
 * @example
 * const event = { kind: 'start', ref, body: JSON.stringify(order) } as const;
 * const { instance, commands } = decide(placeOrder, undefined, event, Date.now()); // commands: do credit
 */
export function decide(
  definition: SagaDefinition,
  found: Instance | undefined,
  event: SagaEvent,
  nowMs: number,
): Decision {
  checkArguments(definition, found, event);
  if (event.kind === 'start') return started(definition, found, event, nowMs);
  if (found === undefined) return nothing('unknown');
  const repeated = found.history.find(({ id, answer }) => answer !== undefined && id === event.id);
  if (repeated !== undefined) return nothing(repeated.answer as SagaAnswer);
  if (isStale(found, event, nowMs)) return nothing('stale');
  return applied(definition, found, event, nowMs);
}

function checkArguments(definition: unknown, found: unknown, event: unknown): void {
  isObject('definition', definition);
  const isList = listOf(() => undefined);
  isList('definition.plan', propertyOf(definition, 'plan'));
  if (found !== undefined) {
    isObject('instance', found);
    isList('instance.history', propertyOf(found, 'history'));
  }
  isObject('event', event);
}

const nothing = (answer: SagaAnswer): Decision => ({ answer, commands: [] });

function started(
  definition: SagaDefinition,
  found: Instance | undefined,
  event: Extract<SagaEvent, { kind: 'start' }>,
  nowMs: number,
): Decision {
  const { ref, body } = event;
  const startHash = hashOf(body);
  if (found !== undefined) return nothing(found.startHash === startHash ? 'stale' : 'conflict');
  const { plan, version, deadlineMs } = definition;
  // What the starting transaction has done is done, whichever group it is in.
  const begun = plan.filter(({ kind }) => kind === 'begun').map(({ name }) => name);
  const fresh: Instance = {
    ref,
    version,
    startHash,
    state: 'running',
    plan,
    steps: Object.fromEntries(begun.map((name) => [name, { status: 'done', attempt: 0 }])),
    data: body,
    ...(deadlineMs !== undefined && { deadlineAtMs: nowMs + deadlineMs }),
    arm: 0,
    history: [],
    startedAtMs: nowMs,
    atMs: nowMs,
  };
  return applied(definition, fresh, event, nowMs);
}

function isStale(found: Instance, event: SagaEvent, nowMs: number): boolean {
  if (isEnded(found)) return true;
  if (event.kind === 'tick') return event.arm !== found.arm;
  if (event.kind === 'sweep') return found.wakeAtMs === undefined || found.wakeAtMs + SWEEP_GRACE_MS > nowMs;
  // Which attempt it answers does not matter, only that the step waits for this action.
  return event.kind === 'reply' && !isAwaited(found, event);
}

function isAwaited({ state, steps }: Instance, { step, action }: { step: string; action: Action }): boolean {
  const open = openAction(stepOf(steps, step));
  // Of a pivot that is being withdrawn, a late reply to its `do` says the same.
  const isSame = open === action || (open === 'withdraw' && action === 'do');
  return isSame && (state === 'compensating') === (action === 'undo');
}

function applied(definition: SagaDefinition, found: Instance, event: SagaEvent, nowMs: number): Decision {
  const draft = draftOf(definition, found, nowMs);
  try {
    const answer = apply(draft, found, event);
    advance(draft);
    const next = withTimer(remembered(merged(found, draft), event, answer, nowMs), event.kind, nowMs);
    checkSize(next.instance);
    return { answer, commands: draft.commands, ...next };
  } catch (error) {
    const failure = { text: textOf(error).slice(0, 500), times: (found.failure?.times ?? 0) + 1 };
    const failed = remembered({ ...found, failure, atMs: nowMs }, event, 'failed', nowMs);
    return { answer: 'failed', commands: [], ...withTimer(failed, event.kind, nowMs) };
  }
}

/** What went wrong before has gone right. */
function merged({ failure: _failed, reason: _reason, ...rest }: Instance, draft: Draft): Instance {
  const { state, steps, data, reason, nowMs } = draft;
  const isLate =
    rest.deadlineAtMs !== undefined && rest.deadlineAtMs <= nowMs && state === 'running' && isDecided(draft);
  return {
    ...rest,
    state,
    steps,
    data,
    ...(reason !== undefined && { reason }),
    ...(isLate && { late: true }),
    atMs: nowMs,
  };
}

function apply(draft: Draft, found: Instance, event: SagaEvent): SagaAnswer {
  switch (event.kind) {
    case 'start':
      return 'started';
    case 'reply':
      replied(draft, event);
      return 'moved';
    case 'tick':
    case 'sweep':
      expire(draft, found);
      return 'moved';
    case 'cancel':
      return cancel(draft);
    case 'retry':
      return retryNow(draft);
    case 'settle':
      return settle(draft, found, event);
  }
}

function replied(draft: Draft, event: Extract<SagaEvent, { kind: 'reply' }>): void {
  const { step, action, outcome, reply, code = '' } = event;
  const plan = draft.plan.find(({ name }) => name === step);
  if (plan === undefined) return;
  const why = `${step}: ${outcome}${code === '' ? '' : ` ${code}`}`;
  if (action === 'undo') {
    if (outcome === 'undone') closeStep(draft, step, 'undone');
    else noteProblem(draft, step, outcome === 'missing' ? 'RECORD_MISSING' : `UNDO_REFUSED ${code}`.trim());
  } else if (outcome === 'done') stepSucceeded(draft, plan, reply);
  // It must succeed in the end: it goes on being asked, and an operator sees it.
  else if (plan.kind === 'retriable') noteProblem(draft, step, `REFUSED ${code}`.trim());
  else stepRefused(draft, plan, why);
}

/** A tick: the deadline first, then each step whose time is over. */
function expire(draft: Draft, found: Instance): void {
  const { nowMs } = draft;
  const { deadlineAtMs = Infinity } = found;
  if (draft.state === 'running' && deadlineAtMs <= nowMs) abort(draft, 'DEADLINE');
  for (const plan of draft.plan) {
    const step = stepOf(draft.steps, plan.name);
    // What this very event has sent is not due.
    if (openAction(step) === undefined || step.sentAtMs === 'commit' || dueMs(step, nowMs) > nowMs) continue;
    const isLimited = step.status === 'doing' && plan.kind !== 'retriable';
    if (isLimited && step.attempt >= plan.attempts) abort(draft, `${plan.name}: TIMED_OUT`);
    else resend(draft, plan);
  }
}

function remembered(instance: Instance, event: SagaEvent, answer: SagaAnswer, atMs: number): Instance {
  const isOperators = event.kind === 'cancel' || event.kind === 'retry' || event.kind === 'settle';
  const entry = {
    atMs,
    event: answer === 'failed' ? `${named(event)} (failed)` : named(event),
    ...(event.id !== undefined && { id: event.id }),
    ...(isOperators && { answer }),
  };
  return { ...instance, history: [...instance.history, entry].slice(-HISTORY) };
}

function named(event: SagaEvent): string {
  if (event.kind === 'reply') return `${event.step} ${event.action} ${event.outcome}`;
  if (event.kind === 'settle') return `settle ${event.step} ${event.outcome}: ${event.reason}`;
  return event.kind === 'tick' ? `tick ${event.arm}` : event.kind;
}

/** Throws, so that the event fails before it makes a commit that no store takes. */
function checkSize(instance: Instance): void {
  const bytes = byteLength(JSON.stringify(instance));
  const dataBytes = byteLength(instance.data);
  if (bytes > MAX_INSTANCE_BYTES || dataBytes > MAX_DATA_BYTES)
    throw new Error(`the instance would take ${bytes} bytes, ${dataBytes} of them data`);
}
