/**
 * In-order delivery: a durable resequencer, one object for all of it.
 *
 * Messages with a `sequence` attribute reach the handler as 1, 2, 3, … within their `sequenceKey`; messages without one
 * pass through. What comes ahead of its turn is held once and acknowledged; the delivery that fills the gap runs what
 * is held behind it. Nothing is lost: a delivery is acknowledged only when a commit shows its number as done, skipped
 * or held. After a lost lease a number that already ran may run again, before anything behind it, with a larger fencing
 * token.
 */
import { parseWishes } from '../attributes.ts';
import type { Handler, Middleware } from '../handler.ts';
import { observedStage } from '../telemetry/stages.ts';
import { type StreamOperations, streamAdmin } from './admin.ts';
import { type StreamOptions, streamPolicy } from './options.ts';
import type { StreamAdmin, StreamStore } from './stream-store.ts';
import { type StreamSweep, streamSweep } from './sweep.ts';
import { type StreamWake, streamWake } from './wake.ts';
import { streamWorkers } from './workers.ts';

export type OrderedDelivery = StreamOperations &
  Readonly<{
    /**
     * The stage. Dead letters: `SEQUENCE_CONFLICT` (other content under a number), `SEQUENCE_STALE_UNKNOWN` (see
     * `onUnknownStale`), `LATE_ARRIVAL` (the number was skipped), `EPOCH_MISMATCH`, `SEQUENCE_TOO_FAR_AHEAD`.
     */
    middleware: Middleware;
    /**
     * The sweep, which runs held messages with `handler`: what the stage has inside it. Retries of failed numbers and
     * what a crash left behind are its work, so a stage without a sweep is not complete.
     */
    sweep(handler: Handler): StreamSweep;
    /** The sweep of one stream, for the time that `wake` of the options was called with. */
    wake(handler: Handler): StreamWake;
    /**
     * Before the process ends: starts nothing any more, counts what has run, releases its streams and refuses what
     * waits. Resolves after eight seconds at the latest.
     */
    stop(): Promise<void>;
  }>;

/**
 * Throws ConfigError `INVALID_OPTION` for what is no store, and for an option that is unknown or out of range.
 *
 * @example
 * const streams = orderedDelivery(firestoreStreams(new Firestore()), { lease: '30s' });
 * const handler = compose(book, [deadLettering(publisher, 'dead-letters'), streams.middleware]);
 * const sweep = streams.sweep(book); // every minute
 */
export function orderedDelivery(
  store: StreamStore & StreamAdmin,
  options: StreamOptions = {},
): OrderedDelivery {
  const policy = streamPolicy(store, options);
  const workers = streamWorkers(policy);
  const stage =
    (next: Handler): Handler =>
    async (message, context) => {
      const { sequence } = parseWishes(message);
      if (sequence === undefined) return next(message, context);
      return workers.deliver(message, sequence, context, next);
    };
  return {
    ...streamAdmin(policy, options.deadLetters !== undefined),
    middleware: (next) => observedStage('in_order', stage(next)),
    sweep: streamSweep(policy, workers.visit),
    wake: streamWake(policy, workers.visit),
    stop: workers.stop,
  };
}
