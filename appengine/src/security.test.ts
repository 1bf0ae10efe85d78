import assert from 'node:assert/strict';
import { createHmac, createSign, generateKeyPairSync } from 'node:crypto';
import { after, test } from 'node:test';
import { compose, ack, type Context, silent } from 'pubsub-guarantees';
import { deadLettering } from 'pubsub-guarantees/dead-letters';
import { delay, republish } from 'pubsub-guarantees/delay';
import { memoryPublisher, virtualClock } from 'pubsub-guarantees/testing';
import type { TaskQueue } from 'pubsub-guarantees/tasks';
import { authentication } from './auth.ts';
import { readConfig } from './config.ts';
import type { KeyReader } from './google-keys.ts';
import { startServer } from './server.ts';

const AUDIENCE = 'https://republisher.example';
const ACCOUNT = 'caller@p-1.iam.gserviceaccount.com';
const COMMON = {
  GOOGLE_CLOUD_PROJECT: 'p-1',
  ALLOWED_TOPICS: 'out',
  DEAD_LETTER_TOPIC: 'dead-letters',
  DELAY_QUEUE: 'delay-queue',
  TASKS_LOCATION: 'us-central1',
};
/** As Cloud Run starts it, with a variable that was copied from App Engine. */
const CLOUD_RUN = {
  ...COMMON,
  K_SERVICE: 'republisher',
  GAE_ENV: 'standard',
  OIDC_AUDIENCE: AUDIENCE,
  OIDC_SERVICE_ACCOUNT: ACCOUNT,
};
const APP_ENGINE = { ...COMMON, GAE_ENV: 'standard' };

const pair = () => generateKeyPairSync('rsa', { modulusLength: 2_048 });
const [google, stranger, next] = [pair(), pair(), pair()];
const pem = ({ publicKey }: typeof google) => publicKey.export({ type: 'spki', format: 'pem' }).toString();
const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const now = Math.floor(Date.now() / 1_000);

function unsigned(change: object, header: object): string {
  const claims = { iss: 'https://accounts.google.com', aud: AUDIENCE, email: ACCOUNT, email_verified: true };
  const payload = { ...claims, sub: '1', iat: now - 10, exp: now + 3_000, ...change };
  return `${encode({ alg: 'RS256', kid: 'k1', typ: 'JWT', ...header })}.${encode(payload)}`;
}
function token(change: object = {}, header: object = {}, key = google): string {
  const text = unsigned(change, header);
  return `${text}.${createSign('RSA-SHA256').update(text).sign(key.privateKey, 'base64url')}`;
}
const bearer = (value: string) => ({ Authorization: `Bearer ${value}` });
const hmac = (text: string): string =>
  `${text}.${createHmac('sha256', pem(google)).update(text).digest('base64url')}`;

const HOUR_MS = 3_600_000;

const closing: (() => Promise<void>)[] = [];
after(() => Promise.all(closing.map((close) => close())));

/** The republisher as its environment says, over real HTTP; its keys, clock, queue and broker are the test's. */
async function republisher(
  environment: Record<string, string>,
  keys: KeyReader = async () => ({ certificates: { k1: pem(google) }, maxAgeMs: HOUR_MS }),
  time: () => number = () => 0,
) {
  const { callers, allowedTopics } = readConfig(environment);
  const clock = virtualClock();
  const publisher = memoryPublisher();
  const bodies: Uint8Array[] = [];
  const queue: TaskQueue = {
    overheadBytes: 0,
    async create({ body }) {
      bodies.push(body);
      return 'created';
    },
  };
  const lines: string[] = [];
  const write = (text: string, fields?: object): void => void lines.push(text + JSON.stringify(fields));
  const log = { info: write, warn: write, error: write };
  const { port, close } = await startServer(
    {
      authenticate: authentication(callers, keys, time),
      republish: republish(
        { publisher, queue, deadLetters: deadLettering(publisher, 'dead-letters') },
        { allowedTopics, clock, log },
      ),
      log,
    },
    { port: 0, host: '127.0.0.1' },
  );
  closing.push(close);
  /** A real task's body: what the delay stage makes for `topic`. */
  const bodyFor = async (topic: string): Promise<Uint8Array> => {
    const handler = compose(async () => ack(), [delay(queue, { clock, topic })]);
    const context = { consumer: 'c', source: 's', log: silent } as unknown as Context;
    const message = { id: '7', data: Buffer.from('PAYLOAD'), publishTime: new Date(clock.now()) };
    await handler({ ...message, attributes: { delay: '1', secret: 'SECRET' } }, context);
    return bodies.pop()!;
  };
  const body = await bodyFor('projects/p-1/topics/out');
  await clock.advance(60_000);
  const post = async (headers: Record<string, string>, sent = body): Promise<number> => {
    const url = `http://127.0.0.1:${port}/republish`;
    const response = await fetch(url, { method: 'POST', headers, body: new Uint8Array(sent) });
    await response.arrayBuffer();
    return response.status;
  };
  return { post, bodyFor, published: publisher.published, lines };
}

const HEADERS = {
  'X-CloudTasks-QueueName': 'delay-queue',
  'X-CloudTasks-TaskName': 't',
  'X-CloudTasks-TaskRetryCount': '0',
};
const GAE_HEADERS = {
  'X-AppEngine-QueueName': 'delay-queue',
  'X-AppEngine-TaskName': 't',
  'X-AppEngine-Cron': 'true',
  'X-Google-Internal-SkipAdminCheck': 'true',
};

const REFUSED: readonly (readonly [what: string, status: 401 | 403, headers: Record<string, string>])[] = [
  ['nothing at all', 401, {}],
  ['forged X-CloudTasks-* headers', 401, HEADERS],
  ['forged X-AppEngine-* headers outside App Engine', 401, GAE_HEADERS],
  ['both, with a token that is none', 401, { ...HEADERS, ...GAE_HEADERS, ...bearer('a.b.c') }],
  ['another scheme', 401, { Authorization: `Basic ${Buffer.from('a:b').toString('base64')}` }],
  ['two schemes in one', 401, { Authorization: `Basic x, Bearer ${token()}` }],
  ['a wrong audience', 401, bearer(token({ aud: 'https://other.example' }))],
  ['the audience with a slash behind', 401, bearer(token({ aud: `${AUDIENCE}/` }))],
  ['an audience in a list', 401, bearer(token({ aud: [AUDIENCE] }))],
  ['no audience', 401, bearer(token({ aud: undefined }))],
  ['a wrong issuer', 401, bearer(token({ iss: 'https://accounts.google.com.example' }))],
  ['the issuer with a slash behind', 401, bearer(token({ iss: 'https://accounts.google.com/' }))],
  ['an expired token', 401, bearer(token({ iat: now - 7_200, exp: now - 3_600 }))],
  ['a token that expired a moment ago', 401, bearer(token({ iat: now - 3_000, exp: now - 1 }))],
  ['a token issued in the future', 401, bearer(token({ iat: now + 1_800, exp: now + 3_600 }))],
  ['a token that is not valid yet', 401, bearer(token({ nbf: now + 1_800 }))],
  ['a token with a nonsensical start', 401, bearer(token({ nbf: 'soon' }))],
  ['an unverified e-mail', 403, bearer(token({ email_verified: false }))],
  ['an e-mail of which nothing is said', 403, bearer(token({ email_verified: undefined }))],
  ['another account', 403, bearer(token({ email: 'other@p-1.iam.gserviceaccount.com' }))],
  ['no e-mail', 403, bearer(token({ email: undefined }))],
  ['alg none, without a signature', 401, bearer(`${unsigned({}, { alg: 'none' })}.`)],
  ['alg none, with a good signature', 401, bearer(token({}, { alg: 'none' }))],
  ['HS256 with the public key', 401, bearer(hmac(unsigned({}, { alg: 'HS256' })))],
  ['HS256 that says RS256', 401, bearer(hmac(unsigned({}, {})))],
  ['ES256 over an RSA signature', 401, bearer(token({}, { alg: 'ES256' }))],
  ['no signature', 401, bearer(`${unsigned({}, {})}.`)],
  ['no third part', 401, bearer(unsigned({}, {}))],
  ["a stranger's key under Google's key ID", 401, bearer(token({}, {}, stranger))],
  ['a key ID that Google does not publish', 401, bearer(token({}, { kid: 'k9' }, stranger))],
  ['a key ID of the prototype', 401, bearer(token({}, { kid: '__proto__' }))],
  ['no key ID', 401, bearer(token({}, { kid: undefined }))],
];

test('security: on Cloud Run each forged or wrong proof is refused over HTTP, and nothing is published', async (t) => {
  const { post, published, lines } = await republisher(CLOUD_RUN);
  for (const [what, status, headers] of REFUSED) {
    await t.test(`${what}: ${status}`, async () => {
      assert.equal(await post(headers), status);
      assert.deepEqual(published, []);
    });
  }
  // These two are good: the republisher does publish, so the refusals above are due to their tokens.
  assert.equal(await post(bearer(token())), 204);
  assert.equal(await post(bearer(token({ iss: 'accounts.google.com' }))), 204);
  assert.equal(published.length, 2);
  assert.doesNotMatch(lines.join('\n'), /SECRET|PAYLOAD|eyJ|PUBLIC KEY/);
});

test('a proof that is refused is an event of the log, a request without one is not, because any caller can send it', async () => {
  const { post, lines } = await republisher(CLOUD_RUN);
  for (const [what, , headers] of REFUSED) {
    await post(headers);
    const hasProof = headers['Authorization']?.startsWith('Bearer ') === true;
    assert.equal(lines.at(-1)?.includes('"event":"caller_refused"'), hasProof, what);
  }
  const onAppEngine = await republisher(APP_ENGINE);
  await onAppEngine.post(bearer(token()));
  assert.match(onAppEngine.lines.join('\n'), /^a caller was refused\{"status":403/);
});

test('security: on App Engine the platform’s header counts, and neither X-CloudTasks-* nor a token that was not asked for', async () => {
  const { post, published } = await republisher(APP_ENGINE);
  for (const headers of [{}, HEADERS, bearer(token()), { 'X-AppEngine-QueueName': '' }]) {
    assert.equal(await post(headers), 403, JSON.stringify(headers));
  }
  assert.deepEqual(published, []);
  assert.equal(await post(GAE_HEADERS), 204);
  assert.equal(published.length, 1);
});

test('security: a topic that is not on the list is 403 for a good caller too, and nothing is published anywhere', async () => {
  for (const [environment, proof] of [
    [CLOUD_RUN, bearer(token())],
    [APP_ENGINE, GAE_HEADERS],
  ] as const) {
    const { post, bodyFor, published, lines } = await republisher(environment);
    for (const topic of ['projects/p-1/topics/other', 'projects/p-2/topics/out']) {
      assert.equal(await post(proof, await bodyFor(topic)), 403);
    }
    assert.deepEqual(published, []);
    assert.match(lines.join('\n'), /TOPIC_NOT_ALLOWED/);
    assert.doesNotMatch(lines.join('\n'), /SECRET|PAYLOAD/);
  }
});

test('a key that Google rotates while the process runs is read when its first token comes', async () => {
  let served: Record<string, string> = { k1: pem(google) };
  let reads = 0;
  let time = 0;
  const keys: KeyReader = async () => {
    reads += 1;
    await new Promise((resolve) => setImmediate(resolve));
    return { certificates: served, maxAgeMs: HOUR_MS };
  };
  const { post, published } = await republisher(CLOUD_RUN, keys, () => time);
  assert.equal(await post(bearer(token())), 204);
  served = { k1: pem(google), k2: pem(next) };
  time = 60_000;
  const rotated = () => post(bearer(token({}, { kid: 'k2' }, next)));
  assert.deepEqual(await Promise.all([rotated(), rotated(), rotated()]), [204, 204, 204]);
  assert.equal(reads, 2);
  served = { k2: pem(next) };
  time += HOUR_MS;
  assert.equal(await post(bearer(token())), 401);
  assert.equal(await rotated(), 204);
  assert.equal(published.length, 5);
});

test('tokens of unknown keys cannot make it read the keys more than once a minute', async () => {
  let time = 0;
  let reads = 0;
  const keys: KeyReader = async () => {
    reads += 1;
    return { certificates: { k1: pem(google) }, maxAgeMs: HOUR_MS };
  };
  const authenticate = authentication(readConfig(CLOUD_RUN).callers, keys, () => time);
  const unknown = { authorization: `Bearer ${token({}, { kid: 'k9' }, stranger)}` };
  for (let n = 0; n < 20; n += 1) assert.equal((await authenticate(unknown)).allowed, false);
  assert.equal(reads, 1);
  time = 60_000;
  await authenticate(unknown);
  assert.equal(reads, 2);
});

test('while an audience or an account is changed, tasks of before and after are both taken', async () => {
  const { post, published } = await republisher({
    ...CLOUD_RUN,
    OIDC_AUDIENCE: `https://new.example,${AUDIENCE}`,
    OIDC_SERVICE_ACCOUNT: `new@p-1.iam.gserviceaccount.com,${ACCOUNT}`,
  });
  assert.equal(await post(bearer(token())), 204);
  const renewed = { aud: 'https://new.example', email: 'new@p-1.iam.gserviceaccount.com' };
  assert.equal(await post(bearer(token(renewed))), 204);
  assert.equal(await post(bearer(token({ aud: `https://new.example,${AUDIENCE}` }))), 401);
  assert.equal(published.length, 2);
});
