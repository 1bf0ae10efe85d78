/**
 * Keeps web pages away from the HTTP servers of the stack. Those listen on the loopback interface, where every page that
 * is open in a browser on the machine can send requests, and by DNS rebinding even read the answers. There is no login
 * to a local stack, so the request itself must show that no page of another site has made it:
 *
 * - `Host` is a loopback name or address. A page whose name was rebound to 127.0.0.1 still sends its own name.
 * - `Origin`, which browsers set and programs do not, is absent or the origin of this very server. `null` is not.
 * - `Sec-Fetch-Site` is absent, `same-origin` or `none`, which is an address typed by the user.
 *
 * Command-line clients and Google's libraries send nothing of the kind. The gRPC servers need no guard: they speak
 * HTTP/2 without TLS, which no browser does.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';

const LOOPBACK_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;
const OWN_SITES = new Set(['same-origin', 'none']);

/** Answers a request of another site with 403 and `{"error":"…"}`, reading nothing of it, and says that it did. */
export function refusedForeign(request: IncomingMessage, response: ServerResponse): boolean {
  const error = foreignRequest(request.headers);
  if (error === undefined) return false;
  // Its body may be long, or never end.
  response.writeHead(403, { 'content-type': 'application/json', connection: 'close' });
  response.end(`${JSON.stringify({ error })}\n`);
  return true;
}

/** Why the request is not accepted, as one line; undefined where it is. */
function foreignRequest(headers: IncomingHttpHeaders): string | undefined {
  const { host, origin, 'sec-fetch-site': site } = headers;
  if (host === undefined || !LOOPBACK_HOST.test(host)) {
    return `the header Host is ${JSON.stringify(host ?? '')}; accepted: localhost, 127.0.0.1 or [::1], and a port`;
  }
  if (origin !== undefined && origin.toLowerCase() !== `http://${host.toLowerCase()}`) {
    return `the header Origin is ${JSON.stringify(origin)}; accepted: none, or http://${host}`;
  }
  if (site !== undefined && !(typeof site === 'string' && OWN_SITES.has(site.toLowerCase()))) {
    return `the header Sec-Fetch-Site is ${JSON.stringify(site)}; accepted: none, same-origin, or no such header`;
  }
  return undefined;
}
