/**
 * The ports of a simulated consumer, beside its store: a dead-letter topic, an outbox that still has what its publisher
 * never published, and a payload store for what is too large to be held. Requests to each go wrong as those to the store do.
 */
import { TransientError } from '../../../shared/src/errors.ts';
import type { Middleware } from '../../../shared/src/handler.ts';
import type { GapRepair } from '../../../shared/src/outbox/gap-repair.ts';
import { retry } from '../../../shared/src/outcome.ts';
import type { PayloadStore } from '../../../shared/src/payload/payload-store.ts';
import { through } from '../engine/through.ts';
import type { Call } from './faulty-store.ts';
import type { Sent, Traffic } from './traffic.ts';

export const deadLetterPublisher =
  (deadLettered: Set<string>, call: Call): Middleware =>
  (next) =>
  async (message, context) => {
    const outcome = await next(message, context);
    if (outcome.kind !== 'deadLetter' || outcome.published) return outcome;
    try {
      await call('dead letter', async () => void deadLettered.add(message.data.toString()));
    } catch (cause) {
      return retry(new TransientError('DEAD_LETTER_UNPUBLISHED', 'not published', { cause }));
    }
    return { ...outcome, published: true };
  };

export const outbox = (traffic: Traffic, call: Call, deliver: (sent: Sent) => void): GapRepair => ({
  republish: (key, { from, to }) =>
    call('republish', async () => {
      const found = traffic.dropped.filter(
        (one) => one.key === key && one.number >= from && one.number <= to,
      );
      for (const one of found) deliver(one);
      return [...new Set(found.map(({ number }) => number))];
    }),
});

export const payloadStore = (payloads: PayloadStore, call: Call): PayloadStore =>
  through(call, payloads, { put: 'put', get: 'get', done: 'done' });
