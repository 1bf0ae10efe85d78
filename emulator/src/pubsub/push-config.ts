/** Where a push subscription's messages go and in which form: what may be asked for, and what is refused. */
import { invalidArgument, unimplemented } from '../grpc-server.ts';
import { refuseSet } from './refuse.ts';
import type { PushConfig } from './wire.ts';

/** Both versions that are carried out have one format. */
const VERSION = 'x-goog-version';

/**
 * Null is a pull subscription, which an empty endpoint means as well.
 * Throws INVALID_ARGUMENT for an endpoint that is no http(s) URL and an `oidc_token` without an account, and UNIMPLEMENTED
 * for an `oidc_token` where nothing can sign it (`signs`), and for attributes other than the envelope version that is
 * sent anyway. `version` is what it is set to when the request leaves it out: it is always returned.
 */
export function pushConfig(request: PushConfig | null, signs: boolean, version = 'v1'): PushConfig | null {
  if (request === null) return null;
  if (!signs) refuseSet('push_config', request, ['oidcToken']);
  if (request.oidcToken?.serviceAccountEmail === '') {
    throw invalidArgument('push_config.oidc_token.service_account_email must be set.');
  }
  for (const [key, value] of Object.entries(request.attributes)) {
    if (key !== VERSION || (value !== 'v1' && value !== 'v1beta2')) {
      throw unimplemented(`push_config.attributes ${key}=${value} is not implemented by this server`);
    }
  }
  if (request.pushEndpoint === '') return null;
  if (!isHttpUrl(request.pushEndpoint)) {
    throw invalidArgument(
      `Invalid push endpoint given (endpoint=${request.pushEndpoint}): http:// or https:// is needed.`,
    );
  }
  const { pushEndpoint, noWrapper } = request;
  const attributes = { [VERSION]: version, ...request.attributes };
  const target = { pushEndpoint, attributes, oidcToken: request.oidcToken ?? null };
  return noWrapper
    ? { ...target, noWrapper: { writeMetadata: noWrapper.writeMetadata } }
    : { ...target, pubsubWrapper: request.pubsubWrapper ?? null };
}

/** The version of the envelope that the subscription has been configured to. */
export const envelopeVersion = (config: PushConfig | null): string | undefined => config?.attributes[VERSION];

function isHttpUrl(text: string): boolean {
  const protocol = URL.canParse(text) ? new URL(text).protocol : '';
  return protocol === 'http:' || protocol === 'https:';
}
