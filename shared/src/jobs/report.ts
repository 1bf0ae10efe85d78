/** What a worker logs of jobs. */
import type { Log } from '../log.ts';
import type { ClaimedJob } from './job.ts';
import type { Ending, Settled } from './job-store.ts';
import { measureEnd } from './measures.ts';

const fieldsOf = ({ id, role, kind, attempt }: ClaimedJob) => ({ job: id, role, kind, attempt });

/** The job was taken over and may have been done twice. */
export function reportStolen(log: Log, job: ClaimedJob): void {
  measureEnd(job, 'stolen');
  log.warn('a job was taken from its run before its end was stored', {
    event: 'job_stolen',
    ...fieldsOf(job),
  });
}

export function reportLostLease(log: Log, job: ClaimedJob): void {
  measureEnd(job, 'lost');
  log.warn('a run has lost its lease and was dropped', { event: 'job_lease_lost', ...fieldsOf(job) });
}

export function reportSettled(
  log: Log,
  job: ClaimedJob,
  ending: Ending,
  answer: Extract<Settled, { kind: 'settled' | 'already' }>,
): void {
  const fields = { ...fieldsOf(job), state: answer.state };
  measureEnd(job, answer.state, 'error' in ending ? ending.error.code : undefined);
  const error = 'error' in ending ? { code: ending.error.code, error: ending.error.text } : {};
  if (answer.state === 'dead') log.error('a job is dead', { event: 'job_dead', ...fields, ...error });
  else if (ending.kind === 'failed')
    log.warn('a run has failed', { event: 'job_failed', ...fields, ...error });
  else log.debug?.('a run has ended', { event: 'job_ended', ...fields });
}
