import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { after, before, beforeEach, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { identity, type Identity } from '../identity.ts';
import { startFixture, START_MS, until, type Fixture } from './fixture.ts';
import { manualClock } from '../manual-clock.ts';

const DAY_MS = 86_400_000;
const EMAIL = 'caller@demo-project.iam.gserviceaccount.com';

let signer: Identity;
let fixture: Fixture;
before(async () => {
  const clock = manualClock(START_MS);
  signer = identity(clock);
  fixture = await startFixture({ clock, identity: signer });
  await fixture.client.createQueue({ parent: fixture.parent, queue: { name: fixture.queue } });
});
after(() => fixture.close());
let from: number;
beforeEach(() => {
  from = fixture.target.received.length;
  fixture.target.answer.with = () => 200;
});

const create = async (httpRequest: object) => {
  const url = `${fixture.target.url}/task?a=%20b`;
  const task = { httpRequest: { url, ...httpRequest } };
  const [created] = await fixture.client.createTask({ parent: fixture.queue, task, responseView: 'FULL' });
  return created;
};
const authorization = (n: number): string => {
  const headers = fixture.target.received[from + n]?.headers;
  return headers?.authorization ?? '';
};
const received = (count: number): Promise<unknown> =>
  until(() => fixture.target.received.length >= from + count, `${count} requests`);

/** The claims of a token whose signature the public key confirms. */
function claimsOf(header: string): Record<string, unknown> {
  const [, header64 = '', payload = '', signature = ''] =
    /^Bearer ([^.]+)\.([^.]+)\.([^.]+)$/.exec(header) ?? [];
  const [jwk] = signer.jwks().keys;
  const key = createPublicKey({ key: jwk ?? {}, format: 'jwk' });
  assert.ok(
    verify('RSA-SHA256', Buffer.from(`${header64}.${payload}`), key, Buffer.from(signature, 'base64url')),
  );
  return JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>;
}

test('sends a token for the service account, with the URL of the task as its audience', async () => {
  const created = await create({ oidcToken: { serviceAccountEmail: EMAIL } });
  assert.deepEqual(
    { ...created.httpRequest?.oidcToken },
    {
      serviceAccountEmail: EMAIL,
      audience: '',
    },
  );
  await received(1);
  const claims = claimsOf(authorization(0));
  assert.equal(claims['aud'], `${fixture.target.url}/task?a=%20b`);
  assert.equal(claims['email'], EMAIL);
  assert.equal(claims['email_verified'], true);
  assert.equal(claims['iss'], 'https://accounts.google.com');
});

test('sends the audience that was asked for, in place of an Authorization of the caller', async () => {
  const audience = 'https://service.example';
  const headers = { aUTHORIZATION: 'Bearer mine', 'X-Mine': 'kept' };
  await create({ headers, oidcToken: { serviceAccountEmail: EMAIL, audience } });
  await received(1);
  assert.equal(claimsOf(authorization(0))['aud'], audience);
  const { rawHeaders, headers: sent } = fixture.target.received[from]?.response.req ?? {};
  assert.equal(rawHeaders?.filter((name) => name.toLowerCase() === 'authorization').length, 1);
  assert.equal(sent?.['x-mine'], 'kept');
});

test('signs anew for every attempt, so that a retry of days later is not refused as expired', async () => {
  fixture.target.answer.with = (n) => (n === from ? 503 : 200);
  await create({ oidcToken: { serviceAccountEmail: EMAIL } });
  await received(1);
  await until(() => fixture.tasks.stats().inFlight === 0, 'failed');
  // A day later it is due, and goes out when the queue is resumed.
  await fixture.client.pauseQueue({ name: fixture.queue });
  fixture.clock.advance(DAY_MS);
  await fixture.client.resumeQueue({ name: fixture.queue });
  await received(2);
  const [first, second] = [0, 1].map((n) => claimsOf(authorization(n)));
  assert.equal(first?.['iat'], START_MS / 1000);
  assert.equal(second?.['iat'], (START_MS + DAY_MS) / 1000);
});

test('sends no token where none is asked for', async () => {
  await create({ headers: { Authorization: 'Bearer mine' } });
  await received(1);
  assert.equal(authorization(0), 'Bearer mine');
  await fixture.client.createTask({ parent: fixture.queue, task: { appEngineHttpRequest: {} } });
  await received(2);
  assert.equal(authorization(1), '');
});

test('refuses an e-mail address that is missing or not that of a service account', async () => {
  const refused = (text: RegExp) => (error: Error & { code?: number }) => {
    assert.equal(error.code, status.INVALID_ARGUMENT, error.message);
    assert.match(error.message, text);
    return true;
  };
  await assert.rejects(create({ oidcToken: {} }), refused(/serviceAccountEmail is required/));
  for (const serviceAccountEmail of [
    'person@example.com',
    'caller',
    'a b@p.iam.gserviceaccount.com',
    `${EMAIL}.evil.example`,
    'a@@gserviceaccount.com',
    '@p.iam.gserviceaccount.com',
    'a@evilgserviceaccount.com',
  ]) {
    await assert.rejects(create({ oidcToken: { serviceAccountEmail } }), refused(/not the e-mail address/));
  }
});

test('accepts the addresses of every kind of service account', async () => {
  await fixture.client.pauseQueue({ name: fixture.queue });
  for (const serviceAccountEmail of [
    'demo-project@appspot.gserviceaccount.com',
    'example.com:demo@appspot.gserviceaccount.com',
    '123456-compute@developer.gserviceaccount.com',
    'caller@demo.example.com.iam.gserviceaccount.com',
  ]) {
    const created = await create({ oidcToken: { serviceAccountEmail } });
    assert.equal(created.httpRequest?.oidcToken?.serviceAccountEmail, serviceAccountEmail);
  }
  await fixture.client.purgeQueue({ name: fixture.queue });
  await fixture.client.resumeQueue({ name: fixture.queue });
});

test('refuses OAuth tokens, with and without an identity', async () => {
  await assert.rejects(create({ oauthToken: { serviceAccountEmail: EMAIL } }), {
    code: status.UNIMPLEMENTED,
  });
});
