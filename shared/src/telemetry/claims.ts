/**
 * A claim store that measures its calls: how long each took, what it answered, and how often it was not reachable.
 */
import type { Clock } from '../clock.ts';
import type { ClaimStore } from '../dedup/claim-store.ts';
import { ATTR, count, isMeasured, record } from './instruments.ts';
import { errorType } from './spans.ts';

export function observedClaims(store: ClaimStore, clock: Clock): ClaimStore {
  const measured = async <Answer>(
    operation: keyof ClaimStore,
    call: () => Promise<Answer>,
    answerOf: (answer: Answer) => string,
  ): Promise<Answer> => {
    if (!isMeasured()) return call();
    const began = clock.monotonic();
    const ended = (answer: string): void =>
      record('store', clock.monotonic() - began, { [ATTR.operation]: operation, [ATTR.answer]: answer });
    try {
      const answer = await call();
      ended(answerOf(answer));
      return answer;
    } catch (error) {
      ended(errorType(error));
      count('storeUnavailable', { [ATTR.operation]: operation, [ATTR.reason]: errorType(error) });
      throw error;
    }
  };
  return {
    claim: (request) =>
      measured(
        'claim',
        () => store.claim(request),
        ({ kind }) => kind,
      ),
    renew: (held, nonce) =>
      measured(
        'renew',
        () => store.renew(held, nonce),
        ({ kind }) => kind,
      ),
    complete: (held) =>
      measured(
        'complete',
        () => store.complete(held),
        (answer) => answer,
      ),
    release: (held) =>
      measured(
        'release',
        () => store.release(held),
        () => 'released',
      ),
  };
}
