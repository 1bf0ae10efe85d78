/**
 * Waiting for a claim that another delivery holds. However many deliveries of one key wait in this process, one of them
 * asks the store at a time and the others use its answer, so a burst of duplicates does not become a burst of writes.
 *
 * No delivery stops waiting while its own request is out: a claim that arrives for a delivery that has gone would block the
 * key for a lease.
 */
import { pauseAfter } from '../async/backoff.ts';
import { inTime } from '../async/time-limit.ts';
import { type Clock, type Moment, momentOf, sleep } from '../clock.ts';
import type { ClaimAnswer, ClaimRequest, ClaimStore } from './claim-store.ts';

export type Waited = Readonly<{
  answer: ClaimAnswer;
  /** When the request behind the answer was sent. */
  sentAt: Moment;
}>;

export type SharedPolls = Readonly<{
  /**
   * Asks again until the key is free or done, or until the time `until`, when the answer is the last `inProgress`.
   * Rejects as the store does.
   */
  wait(request: ClaimRequest, first: Waited, until: number, signal: AbortSignal): Promise<Waited>;
  /** A delivery of this process has finished with the key: the ones that wait for it ask now. */
  wake(key: string): void;
}>;

type Poll = { result: Promise<Waited | undefined>; hurry: AbortController };

const PAUSES = { minMs: 250, maxMs: 2_000 };
/** Added to what is left of a lease, so that the next look does not come just before its end. */
const MARGIN_MS = 10;

export function sharedPolls(store: ClaimStore, clock: Clock): SharedPolls {
  const polls = new Map<string, Poll>();

  /** Waits, then asks. Undefined when there was no time left to ask. */
  const poll = (request: ClaimRequest, pauseMs: number, until: number, signal: AbortSignal): Poll => {
    const { key } = request;
    const hurry = new AbortController();
    const ask = async (): Promise<Waited | undefined> => {
      try {
        const left = until - clock.monotonic();
        await sleep(clock, Math.min(pauseMs, left), AbortSignal.any([hurry.signal, signal]));
        if (signal.aborted || clock.monotonic() >= until) return undefined;
        const sentAt = momentOf(clock);
        return { answer: await store.claim(request), sentAt };
      } finally {
        polls.delete(key);
      }
    };
    const started = { result: ask(), hurry };
    polls.set(key, started);
    return started;
  };

  return {
    async wait(request, first, until, signal) {
      let last = first;
      for (let looks = 1; last.answer.kind === 'inProgress'; looks += 1) {
        if (signal.aborted || clock.monotonic() >= until) return last;
        const other = polls.get(request.key);
        if (other === undefined) {
          const { remainingMs } = last.answer;
          const pauseMs = pauseAfter(looks, PAUSES);
          // Nothing remains: others keep changing the record, or the store refuses writes. Asking faster makes it worse.
          const wantedMs = remainingMs > 0 ? Math.min(pauseMs, remainingMs + MARGIN_MS) : pauseMs;
          const asked = await poll(request, wantedMs, until, signal).result;
          if (asked === undefined) return last;
          last = asked;
        } else {
          const shared = await inTime(clock, until - clock.monotonic(), signal, other.result);
          if (shared !== undefined)
            last = { answer: answerFor(shared.answer, request), sentAt: shared.sentAt };
        }
      }
      return last;
    },
    wake: (key) => polls.get(key)?.hurry.abort(),
  };
}

/** What an answer to another delivery of the key in this process says to this one. */
export function answerFor(answer: ClaimAnswer, { fingerprint, leaseMs }: ClaimRequest): ClaimAnswer {
  if (answer.kind === 'claimed') return { kind: 'inProgress', remainingMs: leaseMs };
  if (answer.kind !== 'duplicate' && answer.kind !== 'conflict') return answer;
  return { ...answer, kind: fingerprint.startsWith(answer.fingerprint) ? 'duplicate' : 'conflict' };
}
