/**
 * A claim store that measures its calls: how long each took, what it answered, and how often it was not reachable.
 */
import type { Clock } from '../clock.ts';
import type { ClaimStore } from './claim-store.ts';
import { ATTR, count, isMeasured, record } from '../telemetry/instruments.ts';
import { errorType } from '../telemetry/spans.ts';

export function measureClaims(store: ClaimStore, clock: Clock): ClaimStore {
  const measured = async <Answer>(
    operation: keyof ClaimStore,
    call: () => Promise<Answer>,
    answerOf: (answer: Answer) => string,
  ): Promise<Answer> => {
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
      isMeasured()
        ? measured(
            'claim',
            () => store.claim(request),
            ({ kind }) => kind,
          )
        : store.claim(request),
    renew: (held, nonce) =>
      isMeasured()
        ? measured(
            'renew',
            () => store.renew(held, nonce),
            ({ kind }) => kind,
          )
        : store.renew(held, nonce),
    complete: (held) =>
      isMeasured()
        ? measured(
            'complete',
            () => store.complete(held),
            (answer) => answer,
          )
        : store.complete(held),
    release: (held) =>
      isMeasured()
        ? measured(
            'release',
            () => store.release(held),
            () => 'released',
          )
        : store.release(held),
  };
}
