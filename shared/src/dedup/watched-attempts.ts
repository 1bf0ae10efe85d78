/**
 * Ends of waiting: for a client that gets no answer, and for a handler that takes no notice of its signal. What is given
 * up goes on by itself, and must be harmless.
 */
import type { Clock } from '../clock.ts';
import { storeUnavailable } from '../errors.ts';

export type Watched = <Value>(attempt: () => Promise<Value>) => Promise<Value>;

/**
 * From the last attempt to its answer, or to the next attempt. Firestore's client pauses for at most 5 s between five
 * attempts (a second, half as much again each time, and jitter), and for minutes where nobody answers.
 */
const ANSWER_MS = 15_000;

/** Rejects when nothing has been heard for 15 s while no attempt was running. */
export async function answered(clock: Clock, call: (watched: Watched) => Promise<void>): Promise<void> {
  const silence = Promise.withResolvers<never>();
  const listen = () =>
    clock.after(ANSWER_MS, () => {
      const text = `the transaction was not answered within ${ANSWER_MS} ms; whether it was done is not known`;
      silence.reject(storeUnavailable(text));
    });
  let cancel = listen();
  const watched: Watched = async (attempt) => {
    cancel();
    try {
      return await attempt();
    } finally {
      cancel = listen();
    }
  };
  try {
    await Promise.race([call(watched), silence.promise]);
  } finally {
    cancel();
  }
}

/** Rejects with the signal's reason once it is aborted; where it is aborted already, `work` is not begun. */
export async function unlessAborted<Value>(signal: AbortSignal, work: () => Promise<Value>): Promise<Value> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([work(), aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
