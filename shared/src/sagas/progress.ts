/**
 * The two directions of a saga: forward to `completed`, group after group, and backward to `compensated`, from the last
 * group to the first. Both do only what is not done yet, so either may be called after any event.
 */
import { call, type Draft, groupsOf, send, closeStep, statusOf } from './draft.ts';
import { isDecided, type StepPlan } from './instance.ts';
import { jsonOf } from './json.ts';

/** In the direction that the saga has. */
export function advance(draft: Draft): void {
  if (draft.state === 'running') forward(draft);
  else if (draft.state === 'compensating') backward(draft);
}

function forward(draft: Draft): void {
  for (const group of groupsOf(draft.plan)) {
    for (const plan of group) if (statusOf(draft, plan.name) === 'idle') begin(draft, plan);
    if (group.some(({ name }) => !isPassed(draft, name))) return;
  }
  draft.state = 'completed';
}

const isPassed = (draft: Draft, name: string): boolean => ['done', 'skipped'].includes(statusOf(draft, name));

function begin(draft: Draft, plan: StepPlan): void {
  const { name } = plan;
  const isAsked = draft.definition.functions[name]?.when !== undefined;
  if (isAsked && call(draft, name, 'when') !== true) draft.steps[name] = { status: 'skipped', attempt: 0 };
  else send(draft, plan, 'do');
}

/** Waits for each group before it turns to the one in front of it. */
function backward(draft: Draft): void {
  for (const group of groupsOf(draft.plan).toReversed()) {
    for (const plan of group) undo(draft, plan);
    if (group.some(({ name }) => statusOf(draft, name) !== 'undone')) return;
  }
  draft.state = 'compensated';
}

function undo(draft: Draft, plan: StepPlan): void {
  const status = statusOf(draft, plan.name);
  if (status === 'undoing' || status === 'undone') return;
  // In doubt is undone like done: the participant's record knows which it was.
  if (status === 'done' || status === 'doing') send(draft, plan, 'undo');
  else closeStep(draft, plan.name, 'undone');
}

function compensate(draft: Draft, reason: string): void {
  draft.state = 'compensating';
  draft.reason = reason;
  backward(draft);
}

/** The step has its effect. Of a pivot that had been asked, this ends the abort. */
export function stepSucceeded(draft: Draft, { name }: StepPlan, reply: string): void {
  closeStep(draft, name, 'done', reply);
  delete draft.reason;
  if (draft.definition.functions[name]?.replied !== undefined)
    draft.data = jsonOf(`replied of ${name}`, call(draft, name, 'replied', reply));
  forward(draft);
}

/** The step has no effect, and never will. */
export function stepRefused(draft: Draft, { name }: StepPlan, reason: string): void {
  closeStep(draft, name, 'refused');
  compensate(draft, reason);
}

export type AbortAnswer =
  /** It will be compensated, for certain. */
  | 'cancelling'
  /** The pivot is asked: the end is open. */
  | 'asked'
  /** It will be completed, for certain. */
  | 'tooLate';

/** Aborts the saga: for its deadline, for attempts that are used up, or for an operator's cancel. A pivot in doubt is asked;
 * nothing is assumed of it. */
export function abort(draft: Draft, reason: string): AbortAnswer {
  if (draft.state === 'compensating' || draft.state === 'compensated') return 'cancelling';
  if (draft.state === 'completed' || isDecided(draft)) return 'tooLate';
  const pivot = draft.plan.find(({ kind }) => kind === 'pivot');
  const status = pivot === undefined ? 'idle' : statusOf(draft, pivot.name);
  if (pivot !== undefined && (status === 'doing' || status === 'withdrawing')) {
    if (status === 'doing') {
      send(draft, pivot, 'withdraw');
      draft.reason = reason;
    }
    return 'asked';
  }
  compensate(draft, reason);
  return 'cancelling';
}
