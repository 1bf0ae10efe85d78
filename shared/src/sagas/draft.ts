/**
 * An instance while one event is applied to it: what its steps become, and which commands that asks for. What is never
 * finished is thrown away, so an event that fails in the middle leaves nothing of itself.
 */
import type { SagaDefinition } from './definition.ts';
import {
  type Action,
  type Instance,
  openAction,
  stepOf,
  type StepPlan,
  type StepState,
  type StepStatus,
} from './instance.ts';
import { jsonOf, valueOf } from './json.ts';
import type { Sending } from './messages.ts';

export type Draft = {
  readonly definition: SagaDefinition;
  readonly plan: Instance['plan'];
  /** The store's time of the transaction's read. */
  readonly nowMs: number;
  readonly steps: Record<string, StepState>;
  state: Instance['state'];
  data: string;
  reason?: string;
  readonly commands: Sending[];
};

export function draftOf(definition: SagaDefinition, instance: Instance, nowMs: number): Draft {
  const { plan, steps, state, data, reason } = instance;
  const kept = { plan, state, data, ...(reason !== undefined && { reason }) };
  return { definition, nowMs, ...kept, steps: { ...steps }, commands: [] };
}

export const statusOf = ({ steps }: Pick<Draft, 'steps'>, name: string): StepStatus =>
  stepOf(steps, name).status;

/** Groups in the order in which they run. */
export function groupsOf(plan: Instance['plan']): readonly (readonly StepPlan[])[] {
  const groups: StepPlan[][] = [];
  for (const step of plan) (groups[step.group] ??= []).push(step);
  return groups;
}

/** Throws what the definition's function throws. */
export function call(
  { definition, data }: Draft,
  name: string,
  what: 'do' | 'undo' | 'when' | 'replied',
  reply?: string,
): unknown {
  const run = definition.functions[name]?.[what];
  if (run === undefined) throw new Error(`version ${definition.version} has no ${what} of step ${name}`);
  return run(valueOf(data), valueOf(reply));
}

/** The first command of an action. Its body is kept, so that a repeat is the same whatever becomes of the data. */
export function send(draft: Draft, plan: StepPlan, action: Action): void {
  const { name, timeoutMs } = plan;
  const { status, reply } = stepOf(draft.steps, name);
  const isKnown = status === 'done';
  const body = action === 'withdraw' ? '' : jsonOf(`${action} of ${name}`, call(draft, name, action, reply));
  const statusAfter = { do: 'doing', undo: 'undoing', withdraw: 'withdrawing' } as const;
  draft.steps[name] = {
    status: statusAfter[action],
    attempt: 1,
    body,
    sentAtMs: 'commit',
    waitMs: timeoutMs,
    ...(action === 'undo' && isKnown && { known: true }),
    ...(reply !== undefined && { reply }),
  };
  command(draft, plan, action);
}

/** The longest wait between two attempts, unless the step's own timeout is longer. */
const LONGEST_WAIT_MS = 600_000;
/** Attempts after which a step that cannot be aborted is shown to an operator. */
const QUIET_ATTEMPTS = 10;

/** The command that is open, once more. */
export function resend(draft: Draft, plan: StepPlan): void {
  const { name, timeoutMs, kind } = plan;
  const step = stepOf(draft.steps, name);
  const action = openAction(step);
  if (action === undefined) return;
  const attempt = step.attempt + 1;
  const waitMs = Math.min((step.waitMs ?? timeoutMs) * 2, Math.max(LONGEST_WAIT_MS, timeoutMs));
  const isUnanswered = attempt > QUIET_ATTEMPTS && (action !== 'do' || kind === 'retriable');
  const { problem = isUnanswered ? 'UNANSWERED' : undefined } = step;
  draft.steps[name] = {
    ...step,
    attempt,
    waitMs,
    sentAtMs: 'commit',
    ...(problem !== undefined && { problem }),
  };
  command(draft, plan, action);
}

function command(draft: Draft, { name, topic, kind }: StepPlan, action: Action): void {
  const { attempt, known, body = '' } = stepOf(draft.steps, name);
  draft.commands.push({ step: name, topic, action, attempt, kind, isKnown: known === true, body });
}

/** Nothing waits for it any more. */
export function closeStep(draft: Draft, name: string, status: StepStatus, reply?: string): void {
  const { attempt, reply: before = reply } = stepOf(draft.steps, name);
  draft.steps[name] = { status, attempt, ...(before !== undefined && { reply: before }) };
}

export function noteProblem(draft: Draft, name: string, problem: string): void {
  draft.steps[name] = { ...stepOf(draft.steps, name), problem };
}
