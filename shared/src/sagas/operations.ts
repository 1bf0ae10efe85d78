/** What an operator asks of an instance. Each answers what is certain at that moment, and no more. */
import { PermanentError } from '../errors.ts';
import { type Draft, resend, closeStep } from './draft.ts';
import { type Instance, isParked, openAction, stepOf } from './instance.ts';
import { type AbortAnswer, abort, stepRefused, stepSucceeded } from './progress.ts';

export type SettledOutcome = 'done' | 'refused' | 'undone';

export type OperatorEvent =
  | Readonly<{ kind: 'cancel' }>
  | Readonly<{ kind: 'retry' }>
  | Readonly<{ kind: 'settle'; step: string; outcome: SettledOutcome; reason: string; reply?: string }>;

export type OperatorAnswer =
  | AbortAnswer
  /** Every open command was sent again. */
  | 'retried'
  | 'settled'
  /** It is not parked: its own participants decide. */
  | 'notParked'
  /** The step waits for no such outcome. */
  | 'notOpen';

export const cancel = (draft: Draft): AbortAnswer => abort(draft, 'CANCELLED');

/** Every open command, now. What is refused again is shown again. */
export function retryNow(draft: Draft): OperatorAnswer {
  for (const plan of draft.plan) {
    const { problem: _cleared, ...step } = stepOf(draft.steps, plan.name);
    if (openAction(step) === undefined) continue;
    draft.steps[plan.name] = step;
    resend(draft, plan);
  }
  return 'retried';
}

/** The outcome of a step that no participant will tell any more, as an operator has found it out. */
export function settle(
  draft: Draft,
  found: Instance,
  { step, outcome, reason, reply = '' }: Extract<OperatorEvent, { kind: 'settle' }>,
): OperatorAnswer {
  if (!isParked(found)) return 'notParked';
  const plan = draft.plan.find(({ name }) => name === step);
  const action = openAction(stepOf(draft.steps, step));
  if (plan === undefined || action === undefined) return 'notOpen';
  if (action === 'undo') {
    if (outcome !== 'undone') return 'notOpen';
    closeStep(draft, step, 'undone');
  } else if (outcome === 'done') stepSucceeded(draft, plan, reply);
  else if (outcome === 'refused' && plan.kind !== 'retriable') stepRefused(draft, plan, `${step}: ${reason}`);
  else return 'notOpen';
  return 'settled';
}

const OUTCOMES: readonly unknown[] = ['done', 'refused', 'undone'] satisfies readonly SettledOutcome[];

/** The body of an operator's message. Throws PermanentError `INVALID_DATA`. */
export function parseSettle(text: string): Omit<Extract<OperatorEvent, { kind: 'settle' }>, 'kind'> {
  const body: unknown = text === '' ? undefined : JSON.parse(text);
  const { step, outcome, reason, reply } = (body ?? {}) as Readonly<Record<string, unknown>>;
  const isWhole =
    typeof step === 'string' &&
    OUTCOMES.includes(outcome) &&
    typeof reason === 'string' &&
    (reply === undefined || typeof reply === 'string');
  if (!isWhole)
    throw new PermanentError('INVALID_DATA', 'settle without step, outcome or reason; accepted: all three');
  return { step, outcome: outcome as SettledOutcome, reason, ...(reply !== undefined && { reply }) };
}
