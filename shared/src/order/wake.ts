/**
 * The sweep of one stream, for what was asked to `wake` it: a message that failed is tried again when its pause is over,
 * and not when the next sweep comes.
 *
 * A wake-up that is lost, comes twice or comes too late costs time only: the stream stays due, and the sweep finds it. A
 * crash leaves a lease that expires.
 */
import { sleep } from '../clock.ts';
import type { Handler } from '../handler.ts';
import { mendGap, mendsGaps } from './gaps.ts';
import { type StreamPolicy, streamRef } from './options.ts';
import { requestWake } from './report.ts';
import { hasLiveLease, type StreamState } from './stream-state.ts';
import type { VisitContext, VisitStream } from './visits.ts';

export type Woken = Readonly<{
  /**
   * `taken`: by this call. `left`: there is nothing to do, or another process or visit is at it. `unknown`: no message
   * of that stream has come.
   */
  kind: 'taken' | 'left' | 'unknown';
  /** Numbers that ran and are counted as done. */
  drained: number;
  /** Missing numbers that were published again. */
  repaired: number;
  /** Missing numbers that were skipped. */
  skipped: number;
}>;

/** Which stream of the context's consumer; `source` is ignored, and may be absent, with `streamScope: 'consumer'`. */
export type StreamWake = (
  stream: Readonly<{ source?: string; key: string }>,
  context: VisitContext,
) => Promise<Woken>;

/** The caller has a clock of its own: what is due so soon is waited for, and for the rest another call is asked. */
const EARLY_MS = 5_000;

/** It ends by the context's deadline. Rejects with `STORE_UNAVAILABLE` or `UNREADABLE_STATE` when nothing is known. */
export function streamWake(policy: StreamPolicy, visit: VisitStream): (next: Handler) => StreamWake {
  const { store, clock } = policy;
  return (next) =>
    async ({ source = '', key }, context) => {
      const ref = streamRef(policy, context.consumer, source, key);
      let total = { drained: 0, repaired: 0, skipped: 0 };
      let [hasWaited, hasMended] = [false, !mendsGaps(policy)];
      while (true) {
        const { state, nowMs } = await store.read(ref);
        if (state === undefined) return { kind: 'unknown', ...total };
        if (!hasMended) {
          total = { ...total, ...(await mendGap(policy, ref, state, nowMs, context)) };
          hasMended = true;
          if (total.skipped > 0) continue;
        }
        const dueAt = dueTime(state, nowMs);
        if (dueAt === undefined) return { kind: 'left', ...total };
        if (dueAt <= nowMs) {
          const { taken, drained } = await visit(ref, context, next);
          return { ...total, kind: taken ? 'taken' : 'left', drained };
        }
        if (hasWaited || dueAt - nowMs > EARLY_MS || context.signal.aborted) {
          await requestWake(policy, context, ref, dueAt);
          return { kind: 'left', ...total };
        }
        hasWaited = true;
        await sleep(clock, dueAt - nowMs, context.signal);
      }
    };
}

/** Undefined: nothing is to be done, or the process that has the stream asks for the next visit by itself. */
function dueTime(state: StreamState, nowMs: number): number | undefined {
  if (state.blocked !== null || state.readyAt === null || hasLiveLease(state, nowMs)) return undefined;
  return Math.max(state.readyAt, state.nextTryAt);
}
