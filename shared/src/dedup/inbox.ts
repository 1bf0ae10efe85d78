/**
 * Once, exactly: the inbox. The handler gets a transaction of the store; its writes through it, the record that the
 * message is done, and the messages that it returns are committed together. A crash at any point leaves all of it or
 * nothing: what is not committed runs again, what is committed never does.
 *
 * Outgoing messages are published after the commit and before the message is acknowledged. A crash in between publishes
 * them with the next delivery of the message, or with the pass of a relay: they are rows of the outbox.
 */
import { sleep, systemClock } from '../clock.ts';
import { inProgressElsewhere, textOf, TransientError } from '../errors.ts';
import { type Handler, withLeastTime } from '../handler.ts';
import { LIMITS } from '../message.ts';
import { ack, type Outcome, retry } from '../outcome.ts';
import { publishUnordered, publishOwnGroup } from '../outbox/unordered-rows.ts';
import { portsOf } from '../outbox/relay.ts';
import type { Publisher } from '../publish/publisher.ts';
import { measureClaims } from './measured-claims.ts';
import { claiming, type Received } from './claiming.ts';
import { type InboxHandler, runInTransaction } from './inbox-run.ts';
import type { InboxStore } from './inbox-store.ts';
import { groupOf } from './outbox-rows.ts';
import { checkStore, DEDUP_SHAPE, type DedupOptions, dedupSettings, leastTime } from './settings.ts';
import { callable, checkOptions, oneOf, publisher as aPublisher, text, whole } from '../options.ts';

export type InboxOptions = Omit<DedupOptions, 'onConflict' | 'onStoreUnavailable'> &
  Readonly<{
    /** As for `dedup`: `deadLetter` (default) or `ack`. There is no `process`, which would be a second effect. */
    onConflict?: 'deadLetter' | 'ack';
    /** Publishes what the handler returns, after the commit. Without one a handler that returns messages is refused. */
    publisher?: Publisher;
    /**
     * The limit on data and attributes of a message together, in bytes (default 10,000,000, Pub/Sub's own; at least
     * 1).
     */
    maxBytes?: number;
    /** The project of topics that are given by their ID alone. Default: that of the store's client. Rows hold full names. */
    projectId?: string;
  }>;

/** Before the second look at messages that another delivery is publishing; each further pause is twice as long. */
const FIRST_PAUSE_MS = 500;

/**
 * `inbox(firestoreInbox(firestore), { publisher })(async (message, { transaction }) => { …; return ack(); })` is a Handler
 * for push and for pull. It does the work of `dedup` and `publishing`; put neither of them around it.
 *
 * - The handler may be called several times for one delivery, because the store's client runs a transaction again when
 *   another writer was in the way or a reply was lost. One call's writes are committed, never two. It must write through
 *   `transaction` alone, and look at `signal` before anything else that has an effect: whatever it does outside of the
 *   transaction (another database, an HTTP call, a publish of its own) is not covered and may happen more than once.
 * - It has `store.transactionMs` for one call (Firestore: `attemptTimeout`, 60 s by default), then its signal is aborted and its
 *   writes are dropped. An outcome other than `ack`, and a throw, drops them as well.
 * - A dead letter, a retry, and everything about conflicts, waiting and leases is as with `dedup`. A record that is not
 *   the library's is a retry (`UNRECOGNISED_CLAIM`) until an operator removes it: processing it could be a second
 *   effect.
 *
 * Throws ConfigError for an invalid option. Outcomes of its own, beside those of `dedup`: retry with
 * TRANSACTION_TIMED_OUT, TRANSACTION_REFUSED (a write of the handler's that the store does not take),
 * TRANSACTION_CONTENTION, OUTBOX_UNPUBLISHED (committed, but not all is published), PUBLISHER_MISSING,
 * UNRECOGNISED_CLAIM; dead letter LIMIT_EXCEEDED (an outgoing message larger than a row: Firestore about 1 MB).
 *
 * Cost beside the handler's own reads and writes: as `dedup`, for the record is written in the handler's commit; per outgoing
 * message a write and a delete. With a publisher a duplicate costs one more read.
 *
 * @example
 * const handler = inbox(firestoreInbox(firestore), { publisher })(async (message, { transaction }) => {
 *   transaction.set(firestore.doc(`orders/${message.id}`), { paid: true });
 *   return ack('handled', [{ topic: 'paid', data: message.data, attributes: {} }]);
 * });
 */
export function inbox<Tx>(
  store: InboxStore<Tx>,
  options: InboxOptions = {},
): (handler: InboxHandler<Tx>) => Handler {
  checkStore(store, ['claim', 'renew', 'complete', 'release', 'transact', 'look', 'withdraw']);
  checkOptions<InboxOptions & DedupOptions>(options, {
    ...DEDUP_SHAPE,
    // `process` would be a second effect.
    onConflict: oneOf('deadLetter', 'ack'),
    onStoreUnavailable: oneOf('retry'),
    publisher: aPublisher,
    maxBytes: whole(1),
    projectId: text,
  });
  const { clock = systemClock(), publisher, maxBytes = LIMITS.messageBytes, projectId } = options;
  const settings = dedupSettings(options);
  const observed = { ...store, ...measureClaims(store, clock) };

  const unpublished = ({ context, message }: Received, failure: unknown): Outcome => {
    context.log.error('the work is done, but not all of its messages are published', {
      event: 'outbox_unpublished',
      messageId: message.id,
      error: textOf(failure),
    });
    return retry(new TransientError('OUTBOX_UNPUBLISHED', textOf(failure), { cause: failure }));
  };

  /**
   * Publishes what is left of messages that are committed, once no other process has them. A look reads one row without
   * its content, and what is read whole is published. Undefined: nothing is left.
   */
  const publishLeft = async (
    sink: Publisher,
    prefix: string,
    received: Received,
    owner?: string,
  ): Promise<Outcome | undefined> => {
    const { context, identity } = received;
    const { signal, log } = context;
    const ports = portsOf(store.outbox, sink, { clock, log });
    const latest = context.deadline - settings.minimumHandlerMs;
    const until = Math.min(clock.monotonic() + settings.waitBudgetMs, latest);
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs *= 2) {
      const first = await store.outbox.first(prefix);
      if (first === undefined) return undefined;
      if (first.isFailed) return unpublished(received, `row ${first.id} failed for good`);
      const busyMs = owner === undefined ? first.freeMs - first.nowMs : 0;
      if (busyMs <= 0) {
        const how = await publishUnordered(ports, first.id, {
          signal,
          ...(owner !== undefined && { owner }),
        });
        if (how === 'sent') continue;
        if (how === 'failed') return unpublished(received, `row ${first.id} was not published`);
      }
      const leftMs = until - clock.monotonic();
      if (signal.aborted || leftMs <= 0) {
        return retry(inProgressElsewhere(`the messages of ${identity.name} are being published`));
      }
      await sleep(clock, Math.min(busyMs > 0 ? busyMs : pauseMs, pauseMs, leftMs), signal);
    }
  };

  return (handler) => {
    callable('handler', handler);
    const run = runInTransaction(observed, handler, {
      clock,
      settings,
      hasPublisher: publisher !== undefined,
      maxBytes,
      project: projectId,
    });
    const claimed = claiming(observed, clock, settings, {
      async claimed(received, answer, sentAt) {
        const ran = await run(received, answer, sentAt);
        if (ran.kind === 'rolledBack' || publisher === undefined) return ran.outcome;
        const { request } = answer.held;
        if (ran.rows === undefined) {
          // The answer to the commit was lost: its rows are in the store, under this very lease.
          const left = await publishLeft(publisher, `${groupOf(request)}.`, received, request.owner);
          return left ?? ran.outcome;
        }
        const { log, signal } = received.context;
        const ports = portsOf(store.outbox, publisher, { clock, log });
        const failure = await publishOwnGroup(ports, ran.rows, signal);
        return failure === undefined ? ran.outcome : unpublished(received, failure);
      },
      async duplicate(received) {
        if (publisher === undefined) return ack('duplicate');
        const left = await publishLeft(publisher, `${received.identity.key}.`, received);
        return left ?? ack('duplicate');
      },
      unguarded: (_received, reason) => retry(new TransientError('UNRECOGNISED_CLAIM', reason)),
    });
    return withLeastTime(claimed, leastTime(settings));
  };
}
