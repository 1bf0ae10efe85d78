import assert from 'node:assert/strict';
import { createSign, generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { authentication, type Callers } from './auth.ts';
import type { KeyReader } from './google-keys.ts';

const AUDIENCE = 'https://republisher.example';
const ACCOUNT = 'caller@p.iam.gserviceaccount.com';
const elsewhere: Callers = { appEngine: false, oidc: { audiences: [AUDIENCE], serviceAccounts: [ACCOUNT] } };

const google = generateKeyPairSync('rsa', { modulusLength: 2_048 });
const stranger = generateKeyPairSync('rsa', { modulusLength: 2_048 });
const keys: KeyReader = async () => ({
  certificates: { k1: google.publicKey.export({ type: 'spki', format: 'pem' }).toString() },
  maxAgeMs: 3_600_000,
});

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

function token(change: object = {}, header: object = {}, key = google.privateKey): string {
  const now = Math.floor(Date.now() / 1_000);
  const claims = { iss: 'https://accounts.google.com', aud: AUDIENCE, email: ACCOUNT, email_verified: true };
  const payload = { ...claims, sub: '1', iat: now - 10, exp: now + 3_600, ...change };
  const signed = `${encode({ alg: 'RS256', kid: 'k1', typ: 'JWT', ...header })}.${encode(payload)}`;
  return `${signed}.${createSign('RSA-SHA256').update(signed).sign(key, 'base64url')}`;
}

async function verdict(headers: Record<string, string>, callers = elsewhere, source = keys): Promise<number> {
  const answer = await authentication(callers, source)(headers);
  return answer.allowed ? 200 : answer.status;
}
const withToken = (value: string) => ({ authorization: `Bearer ${value}` });

test('B40: a token of the account, for the audience, from either spelling of the issuer, is taken', async () => {
  assert.equal(await verdict(withToken(token())), 200);
  assert.equal(await verdict(withToken(token({ iss: 'accounts.google.com' }))), 200);
});

test('B40: no proof is 401, whatever headers of a queue are beside it', async () => {
  assert.equal(await verdict({}), 401);
  assert.equal(await verdict({ 'x-cloudtasks-queuename': 'delay' }), 401);
  assert.equal(await verdict({ 'x-appengine-queuename': 'delay' }), 401);
  assert.equal(await verdict({ authorization: 'Basic eDp5' }), 401);
  assert.equal(await verdict({ authorization: 'Bearer ' }), 401);
  assert.equal(await verdict(withToken('a.b.c')), 401);
  assert.equal(await verdict(withToken('nothing')), 401);
});

test('B40: a token that does not hold is 401', async () => {
  const now = Math.floor(Date.now() / 1_000);
  const bad: Record<string, string> = {
    'another audience': token({ aud: 'https://other.example' }),
    'no audience': token({ aud: undefined }),
    'another issuer': token({ iss: 'https://accounts.example' }),
    'no issuer': token({ iss: undefined }),
    expired: token({ iat: now - 7_200, exp: now - 3_600 }),
    'expired a second ago': token({ iat: now - 3_601, exp: now - 1 }),
    'no expiry': token({ exp: undefined }),
    'expiry as text': token({ exp: 'never' }),
    'too long a life': token({ exp: now + 365 * 86_400 }),
    'from the future': token({ iat: now + 3_600, exp: now + 7_200 }),
    "another key's signature": token({}, {}, stranger.privateKey),
    'an unknown key': token({}, { kid: 'k2' }),
    'a key of the prototype': token({}, { kid: 'constructor' }),
    'no algorithm and no signature': token({}, { alg: 'none' }).replace(/[^.]*$/, ''),
    'a payload that was changed': [
      token().split('.')[0],
      token({ aud: 'x' }).split('.')[1],
      token().split('.')[2],
    ].join('.'),
  };
  for (const [name, value] of Object.entries(bad)) assert.equal(await verdict(withToken(value)), 401, name);
});

test('B40: a good token of another account is 403', async () => {
  assert.equal(await verdict(withToken(token({ email: 'other@p.iam.gserviceaccount.com' }))), 403);
  assert.equal(await verdict(withToken(token({ email: undefined }))), 403);
  assert.equal(await verdict(withToken(token({ email: ACCOUNT.toUpperCase() }))), 403);
  assert.equal(await verdict(withToken(token({ email_verified: false }))), 403);
  assert.equal(await verdict(withToken(token({ email_verified: undefined }))), 403);
  assert.equal(await verdict(withToken(token({ email_verified: 'true' }))), 403);
});

test("B40: on App Engine the queue's header is the proof, and X-CloudTasks-* is not", async () => {
  const appEngine: Callers = { appEngine: { queues: ['delay-queue', 'draining'] } };
  assert.equal(await verdict({ 'x-appengine-queuename': 'delay-queue' }, appEngine), 200);
  assert.equal(await verdict({ 'x-appengine-queuename': 'draining' }, appEngine), 200);
  assert.equal(await verdict({ 'x-appengine-queuename': '' }, appEngine), 403);
  assert.equal(await verdict({ 'x-cloudtasks-queuename': 'delay' }, appEngine), 403);
  assert.equal(await verdict(withToken(token()), appEngine), 403);
  assert.equal(await verdict({}, appEngine), 403);
});

test('another queue of the application is refused, and the verdict says that the proof was refused', async () => {
  const appEngine: Callers = { appEngine: { queues: ['delay-queue'] } };
  const answer = await authentication(appEngine, keys)({ 'x-appengine-queuename': 'mails' });
  assert.deepEqual(answer, {
    allowed: false,
    status: 403,
    reason: "the queue mails is none of this republisher's: DELAY_QUEUES, DRAINING_QUEUES",
    proof: 'refused',
  });
});

test('on App Engine a token is taken too, where one is configured', async () => {
  const both: Callers = { ...elsewhere, appEngine: { queues: ['delay-queue'] } };
  assert.equal(await verdict(withToken(token()), both), 200);
  assert.equal(await verdict({ 'x-appengine-queuename': 'delay-queue' }, both), 200);
  assert.equal(await verdict({}, both), 401);
});

test('keys that cannot be read are 503, so that the queue tries again', async () => {
  const down: KeyReader = () => Promise.reject(new Error('down'));
  assert.equal(await verdict(withToken(token()), elsewhere, down), 503);
});

test('no reason holds the token', async () => {
  const value = token({ aud: 'https://other.example' });
  const answer = await authentication(elsewhere, keys)(withToken(value));
  assert.ok(!JSON.stringify(answer).includes(value.slice(0, 20)));
});
