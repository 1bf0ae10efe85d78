/** Where a push subscription's messages go and in which form: what may be asked for, and what is refused. */
import { invalidArgument, unimplemented } from '../grpc-server.ts';
import { refuseSet } from './refuse.ts';
import type { PushConfig } from './wire.ts';

/**
 * Null is a pull subscription, which an empty endpoint means as well.
 * Throws INVALID_ARGUMENT for an endpoint that is no http(s) URL, and UNIMPLEMENTED for `oidc_token`, which
 * could not be signed here, and for attributes other than the envelope version that is sent anyway.
 */
export function pushConfig(request: PushConfig | null): PushConfig | null {
  if (request === null) return null;
  refuseSet('push_config', request, ['oidcToken']);
  for (const [key, value] of Object.entries(request.attributes)) {
    if (key !== 'x-goog-version' || (value !== 'v1' && value !== 'v1beta2')) {
      throw unimplemented(`push_config.attributes ${key}=${value} is not implemented by this server`);
    }
  }
  if (request.pushEndpoint === '') return null;
  if (!isHttpUrl(request.pushEndpoint)) {
    throw invalidArgument(
      `Invalid push endpoint given (endpoint=${request.pushEndpoint}): http:// or https:// is needed.`,
    );
  }
  const { pushEndpoint, attributes, noWrapper } = request;
  return noWrapper
    ? { pushEndpoint, attributes, noWrapper: { writeMetadata: noWrapper.writeMetadata } }
    : { pushEndpoint, attributes, pubsubWrapper: request.pubsubWrapper ?? null };
}

function isHttpUrl(text: string): boolean {
  const protocol = URL.canParse(text) ? new URL(text).protocol : '';
  return protocol === 'http:' || protocol === 'https:';
}
