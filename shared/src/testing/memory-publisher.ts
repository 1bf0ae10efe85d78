/**
 * A publisher that remembers, and fails on request before or after it has taken the message.
 */
import { TransientError } from '../errors.ts';
import { checkOutgoing, type OutgoingMessage } from '../message.ts';
import type { Publisher } from '../publish/publisher.ts';

export type MemoryPublisher = Publisher &
  Readonly<{
    published: readonly OutgoingMessage[];
    /** What the n-th call (from 1) does instead of succeeding. */
    failOn(call: number, how: 'refused' | 'reply lost'): void;
  }>;

/**
 * Takes what Pub/Sub takes, and refuses the rest as it does.
 *
 * @example
 * const publisher = memoryPublisher();
 * publisher.failOn(1, 'reply lost');
 */
export function memoryPublisher(): MemoryPublisher {
  const published: OutgoingMessage[] = [];
  const failures = new Map<number, 'refused' | 'reply lost'>();
  let calls = 0;
  return {
    published,
    failOn: (call, how) => void failures.set(call, how),
    async publish(message) {
      calls += 1;
      checkOutgoing(message);
      const failure = failures.get(calls);
      if (failure !== 'refused') published.push(message);
      if (failure !== undefined) throw new TransientError('PUBLISH_FAILED', `publish ${calls}: ${failure}`);
      return String(published.length);
    },
  };
}
