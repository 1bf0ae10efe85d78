/** OIDC tokens of HTTP tasks. */
import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { createTask, openQueue, refused, section, type TasksCase } from '../section.ts';
import { HTTP_REQUEST, HTTP_TOKEN } from '../sources.ts';
import type { TasksWorld } from '../world.ts';

const of = section('OIDC tokens');
const EMAIL = 'caller@demo-project.iam.gserviceaccount.com';
const DAY_MS = 86_400_000;

type Claims = Readonly<Record<string, unknown>>;

/** The claims of every token that arrived, each verified by the public key. */
function claims({ target, identity }: TasksWorld): Claims[] {
  const [jwk] = identity.jwks().keys;
  const key = createPublicKey({ key: jwk ?? {}, format: 'jwk' });
  return target.received.map(({ headers }) => {
    const [, head = '', payload = '', signature = ''] =
      /^Bearer ([^.]+)\.([^.]+)\.([^.]+)$/.exec(headers.authorization ?? '') ?? [];
    const signed = verify(
      'RSA-SHA256',
      Buffer.from(`${head}.${payload}`),
      key,
      Buffer.from(signature, 'base64url'),
    );
    assert.ok(signed, `the header is ${headers.authorization}`);
    return JSON.parse(Buffer.from(payload, 'base64url').toString()) as Claims;
  });
}

async function dispatched(world: TasksWorld, request: object): Promise<void> {
  await openQueue(world);
  await createTask(world, { httpRequest: { url: `${world.target.url}/task?a=b`, ...request } });
  await world.pass(0);
}

export const tokenCases: readonly TasksCase[] = [
  of('sends a signed token of the service account', HTTP_TOKEN, async (world) => {
    await dispatched(world, { oidcToken: { serviceAccountEmail: EMAIL } });
    const [{ email, email_verified, iss } = {}] = claims(world);
    assert.deepEqual([email, email_verified, iss], [EMAIL, true, 'https://accounts.google.com']);
  }),
  of('the audience is the URL of the task by default', HTTP_REQUEST, async (world) => {
    await dispatched(world, { oidcToken: { serviceAccountEmail: EMAIL } });
    assert.equal(claims(world)[0]?.['aud'], `${world.target.url}/task?a=b`);
  }),
  of('the audience is that which was asked for', HTTP_REQUEST, async (world) => {
    await dispatched(world, {
      oidcToken: { serviceAccountEmail: EMAIL, audience: 'https://service.example' },
    });
    assert.equal(claims(world)[0]?.['aud'], 'https://service.example');
  }),
  of('takes the place of an Authorization header of the caller', HTTP_REQUEST, async (world) => {
    await dispatched(world, {
      headers: { aUTHORIZATION: 'Bearer mine' },
      oidcToken: { serviceAccountEmail: EMAIL },
    });
    assert.equal(claims(world)[0]?.['email'], EMAIL);
  }),
  of(
    'sends an Authorization header of the caller where no token is asked for',
    HTTP_REQUEST,
    async (world) => {
      await dispatched(world, { headers: { Authorization: 'Bearer mine' } });
      assert.equal(world.target.received[0]?.headers.authorization, 'Bearer mine');
    },
  ),
  of('every attempt has a token of its own, which has not expired', HTTP_TOKEN, async (world) => {
    await openQueue(world, {
      retryConfig: { minBackoff: { seconds: '3600' }, maxBackoff: { seconds: '3600' } },
    });
    world.target.answer.with = (n) => (n < 3 ? 500 : 200);
    await createTask(world, {
      httpRequest: { url: world.target.url, oidcToken: { serviceAccountEmail: EMAIL } },
    });
    await world.pass(DAY_MS);
    const tokens = claims(world);
    assert.equal(tokens.length, 4);
    for (const [n, { iat, exp }] of tokens.entries()) {
      const at = Math.floor((world.target.received[n]?.atMs ?? 0) / 1_000);
      assert.ok(
        Number(iat) <= at && Number(exp) > at,
        `token ${n} holds from ${String(iat)} to ${String(exp)}, sent at ${at}`,
      );
    }
  }),
  of('refuses a token without a service account', HTTP_REQUEST, async (world) => {
    await refused(
      dispatched(world, { oidcToken: { audience: 'https://service.example' } }),
      'INVALID_ARGUMENT',
    );
  }),
  of('refuses an address that is no service account', HTTP_REQUEST, async (world) => {
    await refused(
      dispatched(world, { oidcToken: { serviceAccountEmail: 'me@example.com' } }),
      'INVALID_ARGUMENT',
    );
  }),
];
