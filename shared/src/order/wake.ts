/**
 * The sweep of one key, for whoever was asked to `wake` it: a head that failed is tried again when its pause is over,
 * and not when the next sweep comes.
 *
 * A wake-up has no delivery attempts that could run out, so it may take over from an owner that died, and run a head
 * that has failed, as the sweep does. One that is lost, comes twice or comes too late costs time only: the key stays
 * due, and the sweep finds it. A crash leaves a lease that expires.
 */
import { sleep } from '../clock.ts';
import type { Handler } from '../handler.ts';
import { drainIfDue } from './drain.ts';
import { hasLiveLease, type KeyState } from './key-state.ts';
import { type InOrderOptions, portsOf } from './options.ts';
import type { OrderStore } from './order-store.ts';
import { requestWake } from './report.ts';
import { mendKey } from './sweep-gaps.ts';
import type { SweepContext } from './sweep.ts';

export type Woken = Readonly<{
  /**
   * `taken`: by this call. `left`: there is nothing to do, or somebody else is at it. `unknown`: no message of that
   * key has come.
   */
  kind: 'taken' | 'left' | 'unknown';
  /** Numbers that were run and counted as done. */
  drained: number;
  /** Missing numbers that were published again. */
  repaired: number;
  /** Missing numbers that were given up. */
  skipped: number;
}>;

/** Whoever calls has a clock of his own: what is due so soon is waited for, and for the rest another call is asked. */
const EARLY_MS = 5_000;

/**
 * `options` and `next` are those of the middleware: `inOrder(store, options)(next)`.
 * It ends by the context's deadline. Rejects with `STORE_UNAVAILABLE` when nothing is known.
 */
export function wakeOrder(
  store: OrderStore,
  options: InOrderOptions,
  next: Handler,
): (key: string, context: SweepContext) => Promise<Woken> {
  const ports = portsOf(store, options);
  return async (key, context) => {
    const ref = { consumer: context.consumer, key };
    const total = { drained: 0, repaired: 0, skipped: 0 };
    let waited = false;
    let mended = false;
    while (true) {
      const readAt = ports.clock.monotonic();
      const view = await store.read(ref);
      const { state, nowMs } = view;
      if (state === undefined) return { kind: 'unknown', ...total };
      if (!mended) {
        const { repaired, skipped } = await mendKey(ports, ref, state, nowMs, context);
        mended = true;
        total.repaired = repaired;
        total.skipped = skipped;
        if (skipped > 0) continue;
      }
      const seen = { ...view, state, storeOffsetMs: nowMs - readAt };
      const drained = await drainIfDue(ports, ref, seen, next, { ...context, source: '' });
      if (drained !== undefined) return { ...total, kind: 'taken', drained };
      const dueAt = dueLater(state, nowMs);
      if (dueAt === undefined) return { kind: 'left', ...total };
      if (waited || dueAt - nowMs > EARLY_MS || context.signal.aborted) {
        requestWake(ports, { ...context, source: '' }, ref, dueAt);
        return { kind: 'left', ...total };
      }
      waited = true;
      await sleep(ports.clock, dueAt - nowMs, context.signal);
    }
  };
}

/** Undefined: it is due now, or somebody has it who will ask himself, or nothing is to be done. */
function dueLater(state: KeyState, nowMs: number): number | undefined {
  if (state.halted !== null || state.readyAt === null || hasLiveLease(state, nowMs)) return undefined;
  const at = Math.max(state.readyAt, state.nextTryAt);
  return at > nowMs ? at : undefined;
}
