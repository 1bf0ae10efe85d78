/**
 * The body of a request as the bytes that arrived, whatever its headers say.
 *
 * The framework parses bodies before a function sees them, by their content type: what is called JSON and is none it
 * answers with 400 itself, and what has no content type it does not read at all. Under a push without wrapper the
 * body is the publisher's data and the content type may be one of its attributes, so the first would be delivered again
 * for ever, and the second would lose the data. Its parsers leave a request without a content type alone; so that
 * header, and the one about compression, are kept from them.
 *
 * A request that ends early rejects: nothing of it is handled.
 */
import { subscribe } from 'node:diagnostics_channel';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

/** Above a push of 10 MB in base64, and what Cloud Run takes (https://cloud.google.com/run/quotas#request_limits). */
export const MAX_BODY_BYTES = 32 * 1_048_576;

type Hidden = Pick<IncomingHttpHeaders, 'content-type' | 'content-encoding'>;

const hidden = new WeakMap<IncomingMessage, Hidden>();

/**
 * For every server of the process, from now on. Where the channel is missing the framework parses as it always does
 * (https://nodejs.org/api/diagnostics_channel.html#http).
 */
export function keepBodiesRaw(): void {
  subscribe('http.server.request.start', (event) => {
    const { request } = event as Readonly<{ request: IncomingMessage }>;
    const { headers } = request;
    const { 'content-type': type, 'content-encoding': encoding } = headers;
    delete headers['content-type'];
    delete headers['content-encoding'];
    hidden.set(request, {
      ...(type !== undefined && { 'content-type': type }),
      ...(encoding !== undefined && { 'content-encoding': encoding }),
    });
  });
}

/** The headers as they arrived. */
export const headersOf = (request: IncomingMessage): IncomingHttpHeaders => ({
  ...request.headers,
  ...hidden.get(request),
});

/**
 * Undefined when there is more than any delivery has; `no room` when `take` refuses the bytes, which it is asked for
 * before they are read: by the length that the request says, or as they come. `rawBody` is what the framework has read,
 * if it has.
 */
export async function bodyOf(
  request: IncomingMessage & Readonly<{ rawBody?: Buffer }>,
  take: (bytes: number) => boolean = () => true,
): Promise<Buffer | 'no room' | undefined> {
  if (request.rawBody !== undefined) return take(request.rawBody.length) ? request.rawBody : 'no room';
  const declared = Number(request.headers['content-length'] ?? Number.NaN);
  const isKnown = declared <= MAX_BODY_BYTES;
  if (isKnown && !take(declared)) return 'no room';
  // Of the size that it will have: put together from its parts it would be in memory twice.
  const known = isKnown ? Buffer.allocUnsafeSlow(declared) : undefined;
  const chunks: Buffer[] = [];
  let bytes = 0;
  // The rest of what is too large is read and thrown away, so that the answer can be sent.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (known !== undefined) {
      chunk.copy(known, bytes - chunk.length);
    } else if (bytes > MAX_BODY_BYTES) {
      chunks.length = 0;
    } else {
      if (!take(chunk.length)) return 'no room';
      chunks.push(chunk);
    }
  }
  if (bytes > MAX_BODY_BYTES) return undefined;
  return known ?? Buffer.concat(chunks, bytes);
}
