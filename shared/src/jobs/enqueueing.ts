/**
 * From Pub/Sub to a job: a message becomes a job in a commit of its own, and is acknowledged once that is certain. A
 * redelivery, after whatever crash, finds the job by the identity of the message and enqueues nothing.
 *
 * An acknowledgement deadline ends at 10 minutes (https://cloud.google.com/pubsub/docs/lease-management); a job has as long
 * as its role allows.
 */
import { identify } from '../dedup/identity.ts';
import { PermanentError } from '../errors.ts';
import type { Handler } from '../handler.ts';
import type { Message } from '../message.ts';
import { callable, port } from '../options.ts';
import { ack, deadLetter, outcomeOf } from '../outcome.ts';
import type { NewJob } from './job.ts';
import type { Jobs } from './jobs.ts';

/**
 * A handler for every receiver. The job's key is the identity of the message (consumer, source, and its `dedupId` or else
 * its ID), unless `toJob` names one.
 *
 * Outcomes: ack `handled`; ack `duplicate` where the job is there already; a dead letter `KEY_CONFLICT` where its key
 * belongs to a job with other content, `INVALID_JOB` or `LIMIT_EXCEEDED` where it is no job; a retry where the store does
 * not answer, and of what `toJob` throws unless that is a PermanentError. Throws ConfigError for what is no queue or no function.
 *
 * @example
 * receive(pubsub.subscription('scenes'), compose(enqueueing(ingest, (message) => ({
 *   role: 'ingest', kind: 'scene', payload: JSON.parse(message.data.toString()),
 * })), [deadLettering(publisher, 'dead')]), { consumer: 'intake' });
 */
export function enqueueing(
  queue: Pick<Jobs<never>, 'submit' | 'wake'>,
  toJob: (message: Message) => NewJob,
): Handler {
  port(['submit', 'wake'], 'what jobs(store) answers')('queue', queue);
  callable('toJob', toJob);
  return async (message, context) => {
    try {
      const job = toJob(message);
      const key = `message ${identify(message, context).key}`;
      const [answer] = await queue.submit([{ key, ...job }]);
      if (answer?.kind === 'conflict') {
        const text = `the key of the message belongs to job ${answer.first}, which has other content`;
        return deadLetter(new PermanentError('KEY_CONFLICT', text));
      }
      if (answer?.kind === 'repeated') return ack('duplicate');
      // A hint, which needs no waiting for.
      void queue.wake(job.role);
      return ack();
    } catch (error) {
      return outcomeOf(error);
    }
  };
}
