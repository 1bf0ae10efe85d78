/**
 * A publisher that stops when the process has to end: a publish that is not confirmed by then is rejected, so that the
 * layers outside release the claim or the lease that they hold, instead of leaving it to run out.
 */
import { TransientError } from '../errors.ts';
import type { OutgoingMessage } from '../message.ts';
import type { Publisher } from './publisher.ts';

/**
 * Rejects with TransientError `PUBLISH_STOPPED` from the moment `stop` is aborted. The message may have been published,
 * or be published yet, as after a crash: what comes twice has the same `dedupId` both times.
 *
 * @example
 * const end = new AbortController();
 * const publisher = untilStopped(pubsubPublisher(pubsub), end.signal);
 * process.once('SIGTERM', () => setTimeout(() => end.abort(), 6_000));
 */
export function untilStopped(publisher: Publisher, stop: AbortSignal): Publisher {
  return {
    publish: (message: OutgoingMessage): Promise<string> =>
      new Promise((resolve, reject) => {
        const end = (): void => reject(new TransientError('PUBLISH_STOPPED', 'the process has to end'));
        if (stop.aborted) return end();
        stop.addEventListener('abort', end, { once: true });
        publisher
          .publish(message)
          .then(resolve, reject)
          .finally(() => stop.removeEventListener('abort', end));
      }),
  };
}
