/**
 * `POST /outbox`: the endpoint of a Firestore trigger (Eventarc) on the outbox's collection of rows. It publishes the row
 * that the event tells of, where its writer did not.
 *
 * Eventarc delivers an event again after any answer but success, for a day, with pauses from 10 seconds to 10 minutes. An
 * event that can never be used is answered 400 all the same: it means that the trigger is set up wrongly, which the
 * sweep would hide. Nothing depends on an answer: the sweep publishes what no event has led to.
 */
import { type Log, PermanentError } from 'pubsub-guarantees';
import type { DocumentEvent, Tailed } from 'pubsub-guarantees/outbox';
import type { HttpRequest, HttpResponse } from 'pubsub-guarantees/receive';

/** Answers 200, or 400 for what is no event of a row, 503 for a row that could not be published or looked at. */
export async function answerCreated(
  request: Pick<HttpRequest, 'headers' | 'rawBody'>,
  created: (event: DocumentEvent) => Promise<Tailed>,
  log: Log,
): Promise<HttpResponse> {
  try {
    const outcome = await created(request);
    return { status: outcome === 'failed' ? 503 : 200, body: JSON.stringify({ outcome }) };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const status = error instanceof PermanentError ? 400 : 503;
    if (status === 400) log.error('refused an event', { event: 'outbox_event_refused', error: text });
    else log.warn('outbox: a row was not looked at; it is delivered again', { error: text });
    return { status, body: JSON.stringify({ error: text }) };
  }
}
