/**
 * One line of the log with each sweep for as long as a stream has waited for a number for longer than the gap timeout,
 * so that an alert on it needs no metric: the lines of arriving messages say that streams wait, not for how long.
 *
 * It costs one query a sweep. What cannot be asked is said, and fails nothing.
 */
import { textOf } from '../errors.ts';
import type { Ports } from './options.ts';
import type { SweepContext } from './sweep.ts';

export async function reportOldGaps(
  { store, gapTimeoutMs }: Ports,
  { consumer, log }: SweepContext,
): Promise<void> {
  try {
    const { keys } = await store.list(consumer, { state: 'waiting', forMs: gapTimeoutMs, limit: 1 });
    const [oldest] = keys;
    if (oldest === undefined || !('state' in oldest) || oldest.state.waitingSince === null) return;
    log.warn('in order: a stream has waited for a number for longer than the gap timeout', {
      event: 'order_gap_old',
      consumer,
      sequenceKey: oldest.ref.key,
      missing: oldest.state.last + 1,
      waitedSeconds: Math.floor((oldest.nowMs - oldest.state.waitingSince) / 1_000),
    });
  } catch (error) {
    log.warn('in order: old gaps were not looked for', { consumer, error: textOf(error) });
  }
}
