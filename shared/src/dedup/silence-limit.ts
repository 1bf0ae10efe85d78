/**
 * The end of waiting for a client that does not answer. An abandoned call goes on by itself, and must be harmless.
 */
import type { Clock } from '../clock.ts';
import { storeUnavailable } from '../errors.ts';

export type WatchAttempt = <Value>(attempt: () => Promise<Value>) => Promise<Value>;

/**
 * From the last attempt to its answer, or to the next attempt. Firestore's client pauses for at most 5 s between five
 * attempts (a second, half as much again each time, and jitter), and for minutes where no server answers.
 */
const ANSWER_MS = 15_000;

/** Rejects when no attempt has begun or ended for 15 s while none was running. */
export async function withSilenceLimit(
  clock: Clock,
  call: (watch: WatchAttempt) => Promise<void>,
): Promise<void> {
  const silence = Promise.withResolvers<never>();
  const listen = () =>
    clock.after(ANSWER_MS, () => {
      const text = `the transaction was not withSilenceLimit within ${ANSWER_MS} ms; whether it was done is not known`;
      silence.reject(storeUnavailable(text));
    });
  let cancel = listen();
  const watch: WatchAttempt = async (attempt) => {
    cancel();
    try {
      return await attempt();
    } finally {
      cancel = listen();
    }
  };
  try {
    await Promise.race([call(watch), silence.promise]);
  } finally {
    cancel();
  }
}
