/**
 * `POST /wake`: the endpoint that the wake-up task of a stream calls. It does for that stream what the sweep does for
 * all.
 *
 * The queue calls again after any answer but success. So a wake-up that can never succeed, or has failed a few times, is
 * answered with 200 and the error, whatever limit the queue has: nothing is lost by it, the sweep finds what is due.
 */
import { identifierHash, type Log, PermanentError } from 'pubsub-guarantees';
import { readWake, type StreamWake, type WakeStream, type Woken } from 'pubsub-guarantees/order';
import type { HttpRequest, HttpResponse } from 'pubsub-guarantees/receive';
import { taskHeaders } from 'pubsub-guarantees/tasks';

export type WakeOne = StreamWake;

/** Above the longest source and key in JSON, where a byte may be six. */
const MOST_BYTES = 16_384;
/** After so many failed calls of one task the stream is left to the sweep. */
const MOST_CALLS = 5;

/** Answers 200, or 400 for a body that is no wake-up, 404 for a stream that is not stored, 503 when it failed. */
export async function answerWake(
  request: Pick<HttpRequest, 'headers' | 'rawBody'>,
  consumer: string,
  wake: (stream: WakeStream) => Promise<Woken>,
  log: Log,
): Promise<HttpResponse> {
  const refused = (status: number, error: string): HttpResponse => {
    const { retryCount = 0 } = taskHeaders(request.headers);
    const isOver = retryCount + 1 >= MOST_CALLS;
    log.error('a wake-up failed', { event: 'wake_refused', status, error, retryCount, isOver });
    return { status: isOver ? 200 : status, body: JSON.stringify({ error }) };
  };
  try {
    if (request.rawBody.length > MOST_BYTES) {
      return refused(400, `the body is no wake-up; accepted: at most ${MOST_BYTES} bytes`);
    }
    const call = readWake(request.rawBody);
    if (call.consumer !== consumer) {
      return refused(400, `the wake-up is for ${JSON.stringify(call.consumer)}; accepted: ${consumer}`);
    }
    const woken = await wake(call);
    if (woken.kind === 'unknown') {
      return refused(404, `no message of sequenceKey ${identifierHash(call.key)} has come to ${consumer}`);
    }
    return { status: 200, body: JSON.stringify(woken) };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return refused(error instanceof PermanentError ? 400 : 503, text);
  }
}
