/**
 * What a simulated consumer publishes to, and asks: a dead-letter topic that may refuse or lose its reply, and an
 * outbox that still has what its publisher never published.
 */
import { TransientError } from '../../errors.ts';
import type { Middleware } from '../../handler.ts';
import type { GapRepair } from '../../outbox/gap-repair.ts';
import { retry } from '../../outcome.ts';
import type { Sent, Traffic } from './traffic.ts';

type Life = Readonly<{ alive(): boolean; crash(): void; goesWrong(): boolean }>;

const never = (): Promise<never> => new Promise(() => undefined);

export const graveyard =
  (letters: Set<string>, life: Life): Middleware =>
  (next) =>
  async (message, context) => {
    const outcome = await next(message, context);
    if (outcome.kind !== 'deadLetter' || outcome.published) return outcome;
    const refused = retry(new TransientError('DEAD_LETTER_UNPUBLISHED', 'not published'));
    if (life.goesWrong()) return refused;
    letters.add(message.data.toString());
    if (life.goesWrong()) return refused;
    if (life.goesWrong()) life.crash();
    return life.alive() ? { ...outcome, published: true } : never();
  };

export const outbox = (traffic: Traffic, life: Life, deliver: (sent: Sent) => void): GapRepair => ({
  async republish(key, { from, to }) {
    if (life.goesWrong()) throw new TransientError('STORE_UNAVAILABLE', 'the outbox does not answer');
    const found = traffic.dropped.filter((one) => one.key === key && one.number >= from && one.number <= to);
    for (const one of found) deliver(one);
    if (life.goesWrong()) life.crash();
    if (!life.alive()) return never();
    if (life.goesWrong()) throw new TransientError('STORE_UNAVAILABLE', 'the reply was lost');
    return [...new Set(found.map(({ number }) => number))];
  },
});
