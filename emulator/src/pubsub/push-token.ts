/**
 * The OIDC token that authenticated pushes carry. As in the service one token serves many pushes, so that a push does
 * not cost a signature: each is used for half of its hour at most, so that what arrives is never about to expire.
 * https://cloud.google.com/pubsub/docs/authenticate-push-subscriptions
 */
import type { Clock } from '../clock.ts';
import type { Identity } from '../identity.ts';
import type { PushConfig } from './wire.ts';

const REUSED_MS = 30 * 60 * 1000;

/** What to add to the headers of a push that is sent now: nothing unless the configuration asks for a token. */
export function pushToken(
  clock: Clock,
  { oidcToken, pushEndpoint }: PushConfig,
  identity: Identity | undefined,
): () => Readonly<Record<string, string>> {
  if (!oidcToken || identity === undefined) return () => ({});
  const email = oidcToken.serviceAccountEmail;
  const audience = oidcToken.audience === '' ? pushEndpoint : oidcToken.audience;
  let made: Readonly<{ authorization: string; at: number }> | undefined;
  return () => {
    const now = clock.now();
    if (made === undefined || now < made.at || now - made.at >= REUSED_MS) {
      made = { authorization: `Bearer ${identity.token({ audience, email })}`, at: now };
    }
    return { authorization: made.authorization };
  };
}
