/**
 * What endpoints need of an HTTP request: nothing of any framework, and the body as the bytes that came in.
 */

export type HttpRequest = Readonly<{
  method: string;
  /** Names in any case. */
  headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** As received: not parsed, not decoded. */
  rawBody: Uint8Array;
}>;

/** Names in lower case; a header that came more than once is joined as RFC 9110 section 5.3 says. */
export type Headers = ReadonlyMap<string, string>;

export function headersOf(request: HttpRequest): Headers {
  const headers = new Map<string, string>();
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined)
      headers.set(name.toLowerCase(), typeof value === 'string' ? value : value.join(', '));
  }
  return headers;
}

/** The media type without its parameters, in lower case; empty when there is none. */
export const mediaType = (headers: Headers): string =>
  (headers.get('content-type') ?? '').split(';', 1).join('').trim().toLowerCase();
