import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { test } from 'node:test';
import { identity } from './identity.ts';

const START = Date.UTC(2030, 0, 1);
const clock = { now: () => START, after: () => () => {} };

test('signs a token that its own public key verifies, with the claims that Google sends', () => {
  const signer = identity(clock);
  const [header = '', payload = '', signature = ''] = signer
    .token({ audience: 'https://target.example', email: 'caller@p.iam.gserviceaccount.com' })
    .split('.');
  const [jwk] = signer.jwks().keys;
  const publicKey = createPublicKey({ key: jwk ?? {}, format: 'jwk' });
  const signed = Buffer.from(`${header}.${payload}`);
  assert.ok(verify('RSA-SHA256', signed, publicKey, Buffer.from(signature, 'base64url')));
  assert.ok(
    !verify('RSA-SHA256', Buffer.from(`${header}.x`), publicKey, Buffer.from(signature, 'base64url')),
  );
  const read = (part: string): unknown => JSON.parse(Buffer.from(part, 'base64url').toString());
  assert.deepEqual(read(header), { alg: 'RS256', typ: 'JWT', kid: jwk?.['kid'] });
  assert.deepEqual(read(payload), {
    iss: 'https://accounts.google.com',
    aud: 'https://target.example',
    email: 'caller@p.iam.gserviceaccount.com',
    email_verified: true,
    sub: 'caller@p.iam.gserviceaccount.com',
    azp: 'caller@p.iam.gserviceaccount.com',
    iat: START / 1_000,
    exp: START / 1_000 + 3_600,
  });
});

test('two stacks have two keys', () => {
  assert.notDeepEqual(identity(clock).jwks(), identity(clock).jwks());
});
