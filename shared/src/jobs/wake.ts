/**
 * Wake-ups that come often, as few calls: the first at once, and one more after the pause for all that came meanwhile. The
 * last one of a burst is always sent, so that what was committed before it is seen. What fails is left to the poll.
 */
import { type Clock, sleep } from '../clock.ts';

/** A wake-up resolves when one that was sent after it is answered, or has failed. Never rejects. */
export function coalesced(
  clock: Clock,
  pauseMs: number,
  send: (role: string) => Promise<void>,
): (role: string) => Promise<void> {
  const roles = new Map<string, { sentAtMs: number; next: Promise<void> | undefined }>();

  const sendNow = async (role: string, state: { sentAtMs: number }): Promise<void> => {
    state.sentAtMs = clock.monotonic();
    try {
      await send(role);
    } catch {
      // Workers poll.
    }
  };
  return (role) => {
    const state = roles.get(role) ?? { sentAtMs: -Infinity, next: undefined };
    roles.set(role, state);
    const waitMs = state.sentAtMs + pauseMs - clock.monotonic();
    if (state.next !== undefined) return state.next;
    if (waitMs <= 0) return sendNow(role, state);
    const later = async (): Promise<void> => {
      await sleep(clock, waitMs);
      state.next = undefined;
      await sendNow(role, state);
    };
    state.next = later();
    return state.next;
  };
}
