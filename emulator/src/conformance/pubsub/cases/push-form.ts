/** What a push endpoint gets: the wrapped and the unwrapped form, and the token. */
import assert from 'node:assert/strict';
import { createPublicKey, type JsonWebKey, verify } from 'node:crypto';
import { of, until, type PubsubCase, same } from '../expect.ts';
import { envelope, type Endpoint, type Pushed } from '../endpoint.ts';
import { PROTO, PUSH, PUSH_TOKENS, UNWRAPPING } from '../sources.ts';
import type { Fields, PubsubWorld } from '../world.ts';

const wrapped = of('Push, wrapped');
const unwrapped = of('Push, unwrapped');
const token = of('Push, authenticated');
const SUB = 'orders-sub';
const ACCOUNT = 'pusher@example.iam.gserviceaccount.com';

/** Publishes one message to a push subscription, and returns what the endpoint got. */
async function pushed(
  world: PubsubWorld,
  message: Fields,
  { push = {}, subscription = {} }: Readonly<{ push?: Fields; subscription?: Fields }> = {},
): Promise<Pushed & Readonly<{ id: string; endpoint: Endpoint }>> {
  const endpoint = await world.endpoint();
  const pushConfig = { pushEndpoint: endpoint.url, ...push };
  await world.create('orders', SUB, { pushConfig, ...subscription });
  const [id = ''] = await world.publish('orders', message);
  await until(() => endpoint.got.length > 0, 'pushed', 8_000);
  return { ...(endpoint.got[0] ?? assert.fail()), id, endpoint };
}

const DATA = Buffer.from('00fffe80c328', 'hex');
const bare = { push: { noWrapper: { writeMetadata: false } } };
const metadata = { push: { noWrapper: { writeMetadata: true } } };

/** The claims of a token, its signature checked against the keys of the stack. */
function claims(world: PubsubWorld, { headers: { authorization = '' } }: Pushed): Record<string, unknown> {
  assert.match(authorization, /^Bearer .+\..+\./, 'the push has no Authorization header with a token');
  const [header = '', payload = '', signature = ''] = authorization.replace(/^Bearer /, '').split('.');
  const [key = assert.fail('there is no public key to check the token')] = world.keys().keys;
  const signed = Buffer.from(`${header}.${payload}`);
  const publicKey = createPublicKey({ key: key as JsonWebKey, format: 'jwk' });
  assert.ok(
    verify('RSA-SHA256', signed, publicKey, Buffer.from(signature, 'base64url')),
    'the signature is wrong',
  );
  return JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>;
}

export const pushForm: readonly PubsubCase[] = [
  wrapped('The body names the subscription, and the data in base64', PUSH, async (world) => {
    const got = await pushed(world, { data: DATA });
    const { subscription, message } = envelope(got);
    same([subscription, message['data']], [world.subscription(SUB), DATA.toString('base64')]);
  }),
  wrapped('It is a POST of application/json', PUSH, async (world) => {
    assert.match((await pushed(world, { data: DATA })).headers['content-type'] ?? '', /^application\/json/);
  }),
  wrapped('The body has the attributes', PUSH, async (world) => {
    const attributes = { colour: 'blue', käse: 'ü' };
    const got = await pushed(world, { data: DATA, attributes });
    same(envelope(got).message['attributes'], attributes);
  }),
  wrapped('The body has the message ID in both spellings', PUSH, async (world) => {
    const got = await pushed(world, { data: DATA });
    const { messageId, message_id: snake } = envelope(got).message;
    same([messageId, snake], [got.id, got.id]);
  }),
  wrapped('The body has the publish time in both spellings', PUSH, async (world) => {
    const got = await pushed(world, { data: DATA });
    const { publishTime, publish_time: snake } = envelope(got).message;
    assert.match(String(publishTime), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
    same(publishTime, snake);
  }),
  wrapped('The body has the ordering key', PUSH, async (world) => {
    const subscription = { enableMessageOrdering: true };
    const got = await pushed(world, { data: DATA, orderingKey: 'k' }, { subscription });
    same(
      envelope(got).message['orderingKey'],
      'k',
      `the message has ${Object.keys(envelope(got).message).join()}`,
    );
  }),
  wrapped('The body has the delivery attempt when there is a dead-letter policy', PUSH, async (world) => {
    await world.pubsub.createTopic('orders');
    const deadLetterPolicy = { deadLetterTopic: world.topic('orders'), maxDeliveryAttempts: 5 };
    const got = await pushed(world, { data: DATA }, { subscription: { deadLetterPolicy } });
    same(envelope(got).deliveryAttempt, 1, `the body has ${Object.keys(envelope(got)).join()}`);
  }),
  wrapped('Without a dead-letter policy the body has no delivery attempt', PUSH, async (world) => {
    same('deliveryAttempt' in envelope(await pushed(world, { data: DATA })), false);
  }),
  wrapped('A message without data has none in the body', PROTO, async (world) => {
    const got = await pushed(world, { attributes: { only: 'attributes' } });
    assert.ok([undefined, ''].includes(envelope(got).message['data'] as string | undefined));
  }),

  unwrapped('The body is the data, byte for byte', UNWRAPPING, async (world) => {
    same((await pushed(world, { data: DATA }, bare)).body, DATA);
  }),
  unwrapped('Without write_metadata no header describes the message', UNWRAPPING, async (world) => {
    const { headers } = await pushed(world, { data: DATA, attributes: { colour: 'blue' } }, bare);
    const sent = Object.keys(headers).filter((name) => name.startsWith('x-goog-pubsub') || name === 'colour');
    same(sent, []);
  }),
  unwrapped('With write_metadata each attribute is a header', UNWRAPPING, async (world) => {
    const { headers } = await pushed(
      world,
      { data: DATA, attributes: { tenant: 'a', 'x-colour': 'b c' } },
      metadata,
    );
    same([headers['tenant'], headers['x-colour']], ['a', 'b c']);
  }),
  unwrapped(
    'With write_metadata headers have message ID, publish time and subscription',
    UNWRAPPING,
    async (world) => {
      const { headers, id } = await pushed(world, { data: DATA }, metadata);
      same(headers['x-goog-pubsub-message-id'], id);
      assert.match(String(headers['x-goog-pubsub-publish-time']), /^\d{4}-\d\d-\d\dT/);
      same(headers['x-goog-pubsub-subscription-name'], world.subscription(SUB));
    },
  ),
  unwrapped('With write_metadata a header has the ordering key', UNWRAPPING, async (world) => {
    const { headers } = await pushed(world, { data: DATA, orderingKey: 'k' }, metadata);
    const seen = Object.keys(headers).filter((name) => name.startsWith('x-goog'));
    same(headers['x-goog-pubsub-ordering-key'], 'k', `the headers are ${seen.join()}`);
  }),
  unwrapped('An attribute content-type is the type of the body', UNWRAPPING, async (world) => {
    const { headers } = await pushed(
      world,
      { data: DATA, attributes: { 'content-type': 'text/csv' } },
      metadata,
    );
    same(headers['content-type'], 'text/csv');
  }),
  unwrapped('Attributes of a CloudEvent make a binary CloudEvent', UNWRAPPING, async (world) => {
    const attributes = { 'ce-id': '1', 'ce-type': 't', 'ce-source': 's', 'ce-specversion': '1.0' };
    const { headers } = await pushed(world, { data: Buffer.from('{}'), attributes }, metadata);
    for (const [name, value] of Object.entries(attributes)) same(headers[name], value);
  }),
  unwrapped('GetSubscription shows how it is unwrapped', PROTO, async (world) => {
    await pushed(world, { data: DATA }, metadata);
    const found = await world.call('GetSubscription', { subscription: world.subscription(SUB) });
    same((found['pushConfig'] as Fields)['noWrapper'], { writeMetadata: true });
  }),
  wrapped(
    'GetSubscription names the version of the envelope, though it was created without',
    PROTO,
    async (world) => {
      await pushed(world, { data: DATA });
      const found = await world.call('GetSubscription', { subscription: world.subscription(SUB) });
      const { attributes } = found['pushConfig'] as { attributes: Record<string, string> };
      assert.match(
        attributes['x-goog-version'] ?? '',
        /^v1/,
        `its attributes are ${JSON.stringify(attributes)}`,
      );
    },
  ),

  token(
    'A push carries a token that can be verified, for the account and the audience',
    PUSH_TOKENS,
    async (world) => {
      const oidcToken = { serviceAccountEmail: ACCOUNT, audience: 'https://me.example' };
      const {
        aud,
        email,
        email_verified: verified,
        iss,
      } = claims(world, await pushed(world, { data: DATA }, { push: { oidcToken } }));
      same([aud, email, verified], ['https://me.example', ACCOUNT, true]);
      assert.match(String(iss), /^(https:\/\/)?accounts\.google\.com$/);
    },
  ),
  token('The token is valid now, and for an hour at most', PUSH_TOKENS, async (world) => {
    const oidcToken = { serviceAccountEmail: ACCOUNT };
    const { iat, exp } = claims(world, await pushed(world, { data: DATA }, { push: { oidcToken } }));
    const now = world.now() / 1_000;
    assert.ok(Number(iat) <= now + 1 && Number(exp) > now && Number(exp) - Number(iat) <= 3_600);
  }),
  token('Without an audience it is the endpoint', PROTO, async (world) => {
    const oidcToken = { serviceAccountEmail: ACCOUNT };
    const got = await pushed(world, { data: DATA }, { push: { oidcToken } });
    same(claims(world, got)['aud'], got.endpoint.url);
  }),
  token('Without oidc_token there is no Authorization header', PUSH_TOKENS, async (world) => {
    same((await pushed(world, { data: DATA })).headers.authorization, undefined);
  }),
];
