/**
 * Once: the handler's effect happens once per message, however often it is published or delivered.
 *
 * A delivery claims the message, runs the handler under a lease, and completes the claim only after the handler has
 * acknowledged; whatever the handler wanted published must be published by then. A crash in between costs a rerun after
 * the lease, never the message. A duplicate of a completed message is acknowledged without running; one of a message in
 * progress waits, and is never acknowledged before the work is done.
 */
import { systemClock } from '../clock.ts';
import { type Middleware, withLeastTime } from '../handler.ts';
import { ack } from '../outcome.ts';
import { measureClaims } from './measured-claims.ts';
import { ATTR, count } from '../telemetry/instruments.ts';
import type { ClaimStore } from './claim-store.ts';
import { claiming } from './claiming.ts';
import { runClaimed } from './run-claimed.ts';
import { checkStore, DEDUP_SHAPE, type DedupOptions, dedupSettings, leastTime } from './settings.ts';
import { callable, checkOptions } from '../options.ts';

/**
 * Place it outside what publishes (`publishing`, an inner `deadLettering`), inside an outer `deadLettering`.
 * Throws ConfigError when an option is invalid. Outcomes of its own: ack `duplicate`; retry with
 * IN_PROGRESS_ELSEWHERE, LEASE_LOST or STORE_UNAVAILABLE; dead letter `DEDUP_CONFLICT` and `INVALID_ATTRIBUTE`.
 *
 * @example
 * const handler = guarded(book, {
 *   publisher,
 *   deadLetterTopic: 'dead-letters',
 *   once: dedup(firestoreClaims(firestore), { lease: '30s', onConflict: 'ack' }),
 * });
 */
export function dedup(claims: ClaimStore, options: DedupOptions = {}): Middleware {
  checkStore(claims, ['claim', 'renew', 'complete', 'release']);
  checkOptions<DedupOptions>(options, DEDUP_SHAPE);
  const { clock = systemClock() } = options;
  const settings = dedupSettings(options);
  const store = measureClaims(claims, clock);
  const run = runClaimed(store, clock, settings);
  return (next) => {
    callable('handler', next);
    const handler = claiming(store, clock, settings, {
      claimed: (received, answer, sentAt) => run({ ...received, next }, answer, sentAt),
      duplicate: () => ack('duplicate'),
      unguarded({ message, context, identity }, reason, event) {
        context.log.warn(reason, { event, key: identity.key, messageId: message.id });
        count('possibleDuplicates', { [ATTR.consumer]: context.consumer, [ATTR.reason]: event });
        return next(message, { ...context, possibleDuplicate: true });
      },
    });
    return withLeastTime(handler, leastTime(settings));
  };
}
