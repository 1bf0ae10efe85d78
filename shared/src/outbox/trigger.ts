/**
 * The outbox's second way to notice a row: a Firestore trigger (Eventarc) on the collection of rows, in place of the next
 * pass. It gets each row within a fraction of a second, and makes the relay look at that one.
 *
 * Eventarc delivers at least once, in any order, and stops after a day: an event that comes twice does nothing twice,
 * and one that is lost costs the time until the next pass, which stays as the net.
 */
import { type DocumentEvent, refusedEvent, readCreatedDocument, shown } from '../firestore/document-event.ts';
import { checkOptions, port, text } from '../options.ts';
import type { Relay } from './relay.ts';
import type { Tailed } from './tail.ts';

export type OutboxTriggerOptions = Readonly<{
  /** The collection of the rows, as for the outbox's store (default `pubsub-guarantees-outbox-rows`). */
  rows?: string;
  /** The database that the relay's store is in (default `(default)`). */
  database?: string;
}>;

/**
 * What an endpoint does with a delivered event: resolves with what became of the row. Rejects with PermanentError
 * `EVENT_REFUSED` for what is no event of a document that was created in `rows`, which another delivery would not change;
 * and with TransientError when the store cannot be asked: answer so that Eventarc delivers the event again. Throws
 * ConfigError `INVALID_OPTION`.
 *
 * @example
 * const created = outboxTrigger(relay(firestoreOutbox(new Firestore()), publisher));
 * const outcome = await created({ headers: request.headers, rawBody: request.rawBody });
 * response.sendStatus(outcome === 'failed' ? 503 : 204);
 */
export function outboxTrigger(
  relay: Pick<Relay, 'tailRow'>,
  options: OutboxTriggerOptions = {},
): (event: DocumentEvent) => Promise<Tailed> {
  port(['tailRow'], 'a relay of the outbox, for example relay(store, publisher)')('relay', relay);
  checkOptions<OutboxTriggerOptions>(options, { rows: text, database: text });
  const { rows = 'pubsub-guarantees-outbox-rows', database = '(default)' } = options;
  return async (event) => {
    const created = readCreatedDocument(event);
    if (created.database !== database || created.collection !== rows) {
      const place = `${created.database}/${created.collection}`;
      throw refusedEvent(`the document was created in ${shown(place)}; accepted: ${database}/${rows}`);
    }
    return relay.tailRow(created.id);
  };
}
