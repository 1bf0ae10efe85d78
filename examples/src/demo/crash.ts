/**
 * The crash in the middle of the run: SIGKILL to all function processes, as when their instances die, and a new start
 * on the same ports, while publishing goes on.
 */
import type { Clock } from 'pubsub-guarantees';

type Functions = Readonly<{ kill(): Promise<void>; start(): Promise<void> }>;

/** Empty when nothing was killed. */
export type CrashFacts = Readonly<{
  /** How many messages were published by then. */
  killedAfter?: number;
  /** Milliseconds until the functions served again. */
  backAfterMs?: number;
}>;

export type CrashPlan = Readonly<{
  onPublished(count: number): void;
  /** On the monotonic clock; undefined until the crash is over. */
  readonly servingSinceMs: number | undefined;
  readonly state: 'up' | 'killed' | 'up again';
  readonly facts: CrashFacts;
  /** Resolves when the functions serve again; at once when there is no crash to come. Rejects if they do not start. */
  done: Promise<void>;
}>;

/** Kills when `count` messages are published. Never for a count of 0, nor after `signal` is aborted. */
export function crashAt(count: number, functions: Functions, clock: Clock, signal: AbortSignal): CrashPlan {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let facts: CrashFacts = {};
  let state: CrashPlan['state'] = 'up';
  let servingSinceMs = count === 0 ? clock.monotonic() : undefined;

  const crash = async (published: number): Promise<void> => {
    const start = clock.monotonic();
    state = 'killed';
    await functions.kill();
    await functions.start();
    servingSinceMs = clock.monotonic();
    facts = { killedAfter: published, backAfterMs: servingSinceMs - start };
    state = 'up again';
  };
  const giveUp = (): void => {
    if (state === 'up') resolve();
  };
  if (count === 0 || signal.aborted) resolve();
  signal.addEventListener('abort', giveUp, { once: true });

  return {
    onPublished(published) {
      if (count === 0 || published < count || state !== 'up' || signal.aborted) return;
      crash(published).then(resolve, reject);
    },
    get servingSinceMs() {
      return servingSinceMs;
    },
    get state() {
      return state;
    },
    get facts() {
      return facts;
    },
    done: promise,
  };
}
