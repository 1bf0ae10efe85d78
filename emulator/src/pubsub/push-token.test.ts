import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { identity } from '../identity.ts';
import { manualClock } from '../manual-clock.ts';
import { subscriptionName, testServer, topicName, until } from './test-server.ts';

const EMAIL = 'pusher@test-project.iam.gserviceaccount.com';
const HALF_AN_HOUR_MS = 1_800_000;

/** An endpoint that acknowledges everything and remembers what authorized it. */
async function endpoint(t: TestContext): Promise<Readonly<{ url: string; got: (string | undefined)[] }>> {
  const got: (string | undefined)[] = [];
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    got.push(request.headers.authorization);
    request.resume();
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/push`, got };
}

async function start(t: TestContext) {
  const clock = manualClock(Date.UTC(2030, 0, 1));
  const signer = identity(clock);
  const running = await testServer(t, clock, signer);
  /** The claims, after the signature was checked against the published key. */
  const claims = (authorization = ''): Record<string, unknown> => {
    const [header = '', payload = '', signature = ''] = authorization.replace(/^Bearer /, '').split('.');
    const key = createPublicKey({ key: signer.jwks().keys[0] ?? {}, format: 'jwk' });
    const signed = Buffer.from(`${header}.${payload}`);
    assert.ok(verify('RSA-SHA256', signed, key, Buffer.from(signature, 'base64url')), authorization);
    return JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>;
  };
  return { ...running, clock, claims, ...(await endpoint(t)) };
}

test('a push carries a token for its service account and audience, which the real client configures', async (t) => {
  const { pubsub, clock, claims, url, got } = await start(t);
  const [topic] = await pubsub.createTopic('orders');
  const [subscription] = await topic.createSubscription('orders-sub', {
    pushConfig: { pushEndpoint: url, oidcToken: { serviceAccountEmail: EMAIL, audience: 'https://me' } },
  });
  const [metadata] = await subscription.getMetadata();
  assert.deepEqual(metadata.pushConfig?.oidcToken, { serviceAccountEmail: EMAIL, audience: 'https://me' });
  await topic.publishMessage({ data: Buffer.from('a') });
  await until(() => got.length === 1);
  const { aud, email, email_verified: verified, iss, exp, iat } = claims(got[0]);
  assert.deepEqual([aud, email, verified, iss], ['https://me', EMAIL, true, 'https://accounts.google.com']);
  assert.deepEqual([iat, exp], [clock.now() / 1000, clock.now() / 1000 + 3600]);
});

test('without an audience it is the endpoint, also when the configuration is changed later', async (t) => {
  const { call, create, publish, claims, url, got } = await start(t);
  await create('orders', 'orders-sub');
  const pushConfig = { pushEndpoint: url, oidcToken: { serviceAccountEmail: EMAIL } };
  await call('ModifyPushConfig', { subscription: subscriptionName('orders-sub'), pushConfig });
  await publish('orders', { data: Buffer.from('a') });
  await until(() => got.length === 1);
  assert.equal(claims(got[0])['aud'], url);
  const plain = { name: subscriptionName('orders-sub'), pushConfig: { pushEndpoint: url } };
  await call('UpdateSubscription', { subscription: plain, updateMask: { paths: ['push_config'] } });
  await publish('orders', { data: Buffer.from('b') });
  await until(() => got.length === 2);
  assert.equal(got[1], undefined);
});

test('a token serves many pushes, and is renewed long before it expires', async (t) => {
  const { create, publish, claims, clock, url, got } = await start(t);
  const oidcToken = { serviceAccountEmail: EMAIL };
  await create('orders', 'orders-sub', { pushConfig: { pushEndpoint: url, oidcToken } });
  const push = async (): Promise<string | undefined> => {
    const before = got.length;
    await publish('orders', { data: Buffer.from('a') });
    await until(() => got.length === before + 1);
    return got.at(-1);
  };
  const first = await push();
  clock.advance(HALF_AN_HOUR_MS - 1);
  assert.equal(await push(), first);
  clock.advance(1);
  const next = await push();
  assert.notEqual(next, first);
  assert.equal(claims(next)['iat'], clock.now() / 1000);
});

test('an attribute of an unwrapped message cannot take the place of the token', async (t) => {
  const { create, publish, claims, url, got } = await start(t);
  const oidcToken = { serviceAccountEmail: EMAIL };
  const pushConfig = { pushEndpoint: url, noWrapper: { writeMetadata: true }, oidcToken };
  await create('orders', 'orders-sub', { pushConfig });
  await publish('orders', { data: Buffer.from('a'), attributes: { Authorization: 'Bearer forged' } });
  await until(() => got.length === 1);
  assert.equal(claims(got[0])['email'], EMAIL);
});

test('refuses a token without an account, and any token where the server has no key', async (t) => {
  const { call, create } = await start(t);
  await create('orders', 'first');
  const pushConfig = { pushEndpoint: 'http://127.0.0.1:1/', oidcToken: { audience: 'https://me' } };
  const wanted = { name: subscriptionName('second'), topic: topicName('orders'), pushConfig };
  await assert.rejects(call('CreateSubscription', wanted), {
    code: 3,
    details: 'push_config.oidc_token.service_account_email must be set.',
  });
  const unsigned = await testServer(t);
  await unsigned.create('orders', 'first');
  const full = { ...pushConfig, oidcToken: { serviceAccountEmail: EMAIL } };
  await assert.rejects(unsigned.call('CreateSubscription', { ...wanted, pushConfig: full }), {
    code: 12,
    details: 'push_config.oidc_token is not implemented by this server',
  });
});
