/**
 * What the republisher answers to the queue, and what it logs. Only a confirmed publish, next task or dead letter is a
 * success; for everything else the queue sends the task again.
 */
import { codeOf, faultOf, stackOf, textOf } from '../errors.ts';
import type { Log } from '../log.ts';
import type { Outcome } from '../outcome.ts';

/** 204: published or scheduled on. 200: dead-lettered. 403: for no topic on the list. 503: to be tried again. */
export type TaskAnswer = Readonly<{ status: 200 | 204 | 403 | 503 }>;

/** The code of a task for a topic that is not on the list. */
export const NOT_ALLOWED = 'TOPIC_NOT_ALLOWED';

/** Says what became of a task, never what it holds. */
export function report(outcome: Outcome, log: Log): void {
  if (outcome.kind === 'ack') return;
  const stack = stackOf(outcome.error);
  const fields = {
    code: codeOf(outcome.error),
    error: textOf(outcome.error),
    ...(stack !== undefined && { stack_trace: stack }),
  };
  const isDeadLettered = outcome.kind === 'deadLetter' && outcome.published === true;
  if (isDeadLettered) log.error('dead-lettered', fields);
  else if (fields.code === NOT_ALLOWED)
    log.error('for a topic that is not on the list', { event: 'topic_not_allowed', ...fields });
  else if (faultOf(outcome.error) === 'deployment')
    log.error('to be tried again', { event: 'deployment_fault', ...fields });
  else log.warn('to be tried again', fields);
}

export function answer(outcome: Outcome): TaskAnswer {
  if (outcome.kind === 'ack') return { status: 204 };
  if (outcome.kind === 'deadLetter' && outcome.published === true) return { status: 200 };
  return { status: codeOf(outcome.error) === NOT_ALLOWED ? 403 : 503 };
}
