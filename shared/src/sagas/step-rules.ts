/**
 * What a participant does with a command, by the record of its step alone. Pure.
 *
 * An undo or a withdrawal that finds no record leaves a tombstone, so that a command which it has overtaken never has an
 * effect. Only where the step is known to have been done is a missing record no answer.
 */
import type { Command, Outcome } from './attributes.ts';
import type { StepRecord, StepRecordState, StepRef } from './step-records.ts';

export type Answer = Readonly<{ outcome: Outcome; reply: string; code?: string }>;

export type Verdict =
  /** Nothing is to be done but to say this, and to keep the record. */
  | Readonly<{ kind: 'say'; answer: Answer; record?: StepRecord }>
  | Readonly<{ kind: 'run'; what: 'do' | 'undo' }>
  /** The outcome of a call is not known: it is made again by its key. Outside of the transaction only. */
  | Readonly<{ kind: 'repeat'; record: StepRecord }>;

export function judge(
  ref: StepRef,
  { action, kind, isKnown }: Pick<Command, 'action' | 'kind' | 'isKnown'>,
  record: StepRecord | undefined,
): Verdict {
  const tombstone = (outcome: Outcome): Verdict => ({
    kind: 'say',
    answer: { outcome, reply: '' },
    record: { ref, state: 'cancelled', reply: '' },
  });
  if (record === undefined) {
    if (action === 'do') return { kind: 'run', what: 'do' };
    if (action === 'withdraw') return tombstone('withdrawn');
    if (kind === 'begun') return { kind: 'run', what: 'undo' };
    return isKnown ? { kind: 'say', answer: { outcome: 'missing', reply: '' } } : tombstone('undone');
  }
  if (record.state === 'started')
    return action === 'do' ? { kind: 'run', what: 'do' } : { kind: 'repeat', record };
  const settled = { ...record, state: record.state };
  if (action === 'do') return say(DO, settled);
  if (action === 'withdraw') return say(WITHDRAW, settled);
  if (record.state === 'done' || record.state === 'undoing') return { kind: 'run', what: 'undo' };
  return record.state === 'refused' ? tombstone('undone') : say(UNDO, settled);
}

type Settled = Exclude<StepRecordState, 'started'>;
type Said = Readonly<Record<Settled, Outcome>>;

const DO: Said = {
  done: 'done',
  refused: 'refused',
  cancelled: 'cancelled',
  undoing: 'cancelled',
  undone: 'cancelled',
};
const UNDO: Said = {
  done: 'undone',
  refused: 'undone',
  cancelled: 'undone',
  undoing: 'undone',
  undone: 'undone',
};
const WITHDRAW: Said = {
  done: 'done',
  refused: 'withdrawn',
  cancelled: 'withdrawn',
  undoing: 'withdrawn',
  undone: 'withdrawn',
};

function say(outcomes: Said, { state, reply, code }: StepRecord & Readonly<{ state: Settled }>): Verdict {
  const outcome = outcomes[state];
  const isOwn = outcome === 'done' || outcome === 'undone' || outcome === 'refused';
  const isCoded = outcome === 'refused' && code !== undefined;
  return { kind: 'say', answer: { outcome, reply: isOwn ? reply : '', ...(isCoded && { code }) } };
}
