/**
 * OIDC tokens as Google's push and task dispatchers send them, signed by a key of this stack's own. The key is made
 * when it is first needed and forgotten with the process; a program that verifies a token takes the public half from the
 * stack (`GET /oidc/jwks` on its control address), never from Google.
 */
import { generateKeyPairSync, type JsonWebKey, type KeyObject, randomUUID, sign } from 'node:crypto';
import type { Clock } from './clock.ts';

export type Identity = Readonly<{
  /** A token for the service account `email`, for one hour, as `Authorization: Bearer …` carries it. */
  token(claims: Readonly<{ audience: string; email: string }>): string;
  /** The public key, in the form of RFC 7517. */
  jwks(): Readonly<{ keys: readonly JsonWebKey[] }>;
}>;

/** How long Google's tokens live: https://cloud.google.com/docs/authentication/token-types#id-lifetime */
const LIFETIME_SECONDS = 3_600;
const ISSUER = 'https://accounts.google.com';

export function identity(clock: Clock): Identity {
  let made: Readonly<{ id: string; privateKey: KeyObject; publicKey: KeyObject }> | undefined;
  const key = () => {
    made ??= { id: randomUUID(), ...generateKeyPairSync('rsa', { modulusLength: 2_048 }) };
    return made;
  };
  return {
    token({ audience, email }) {
      const { id, privateKey } = key();
      const now = Math.floor(clock.now() / 1_000);
      const claims = {
        iss: ISSUER,
        aud: audience,
        email,
        email_verified: true,
        sub: email,
        azp: email,
        iat: now,
        exp: now + LIFETIME_SECONDS,
      };
      const signed = `${encoded({ alg: 'RS256', typ: 'JWT', kid: id })}.${encoded(claims)}`;
      return `${signed}.${sign('RSA-SHA256', Buffer.from(signed), privateKey).toString('base64url')}`;
    },
    jwks() {
      const { id, publicKey } = key();
      return { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: id, use: 'sig', alg: 'RS256' }] };
    },
  };
}

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
