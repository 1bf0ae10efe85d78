/**
 * Which callers may hand in a task. Only what Google vouches for counts: on App Engine the header that the platform strips
 * from outside requests, elsewhere an OIDC token of the one service account, made for this audience. There is no mode
 * without a proof, and no X-CloudTasks-* header is ever one, because any caller can send those.
 *
 * App Engine: https://cloud.google.com/tasks/docs/creating-appengine-handlers#reading-headers
 * Tokens: https://cloud.google.com/tasks/docs/creating-http-target-tasks#token
 */
import { type Certificates, OAuth2Client, type TokenPayload } from 'google-auth-library';
import { type KeyReader, keptKeys } from './google-keys.ts';

export type Callers = Readonly<{
  /**
   * Runs on App Engine, where X-AppEngine-QueueName can only come from a queue of this application: of these alone, by
   * their IDs, because a service that may make tasks in another queue of it could call the republisher.
   */
  appEngine: false | Readonly<{ queues: readonly string[] }>;
  /** Each is enough: tasks that wait in the queue keep the audience and the account that they were made with. */
  oidc?: Readonly<{ audiences: readonly string[]; serviceAccounts: readonly string[] }>;
}>;

/**
 * 401: no proof, or one that does not hold. 403: a proof of another caller. 503: the keys cannot be had now.
 * `proof`: any caller can send a request with none; one that is refused may be that of a task whose message waits.
 */
export type Verdict =
  | Readonly<{ allowed: true }>
  | Readonly<{ allowed: false; status: 401 | 403 | 503; reason: string; proof: Proof }>;
type Proof = 'none' | 'refused' | 'not judged';

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Both are Google's (https://developers.google.com/identity/openid-connect/openid-connect#validatinganidtoken). */
const ISSUERS = ['https://accounts.google.com', 'accounts.google.com'];
/** What a clock may be off, as the library has it for `iat`. */
const SKEW_MS = 300_000;

/** `headers` as Node gives them: names in lower case. The result never rejects. `monotonic` is in milliseconds. */
export function authentication(
  callers: Callers,
  keys: KeyReader,
  monotonic: () => number = () => performance.now(),
): (headers: Headers) => Promise<Verdict> {
  const { appEngine, oidc } = callers;
  const keysFor = keptKeys(keys, monotonic);
  return async (headers) => {
    const queueName = headers['x-appengine-queuename'];
    if (appEngine !== false && typeof queueName === 'string' && queueName !== '') {
      return appEngine.queues.includes(queueName)
        ? { allowed: true }
        : refused(403, `the queue ${queueName} is none of this republisher's: DELAY_QUEUES, DRAINING_QUEUES`);
    }
    if (oidc === undefined)
      return unproven(403, 'the request does not come from a queue of this application');
    const token = /^Bearer ([\w.~+/=-]+)$/i.exec(textOf(headers['authorization']))?.[1];
    if (token === undefined) return unproven(401, 'the request has no bearer token');
    const { alg, kid } = headerOf(token);
    // Google signs with nothing else; whatever a token says of itself, no other way of checking it is tried.
    if (alg !== 'RS256' || typeof kid !== 'string') {
      return refused(401, 'the token is not signed with RS256 by a named key');
    }
    let certificates: Certificates;
    try {
      certificates = await keysFor(kid);
    } catch {
      return { allowed: false, status: 503, reason: "Google's keys cannot be read", proof: 'not judged' };
    }
    return verdictOn(await payloadOf(token, certificates, oidc.audiences), oidc.serviceAccounts);
  };
}

function headerOf(token: string): Readonly<{ alg?: unknown; kid?: unknown }> {
  try {
    const header: unknown = JSON.parse(Buffer.from(token.split('.', 1)[0] ?? '', 'base64url').toString());
    return typeof header === 'object' && header !== null ? header : {};
  } catch {
    return {};
  }
}

/** The payload of a token that is signed, of the right issuer, audience and time; undefined for every other. */
async function payloadOf(
  token: string,
  certificates: Certificates,
  audiences: readonly string[],
): Promise<TokenPayload | undefined> {
  try {
    const ticket = await new OAuth2Client().verifySignedJwtWithCertsAsync(
      token,
      certificates,
      [...audiences],
      ISSUERS,
    );
    return ticket.getPayload();
  } catch {
    // Its error texts hold the token, which belongs into no log.
    return undefined;
  }
}

function verdictOn(payload: TokenPayload | undefined, serviceAccounts: readonly string[]): Verdict {
  if (payload === undefined) {
    return refused(401, 'the token is not signed by Google, for another audience, or out of its time');
  }
  // The library allows five minutes after the end; a token lives for an hour, so there is no need.
  if (payload.exp * 1_000 <= Date.now()) return refused(401, 'the token has expired');
  const { nbf } = payload as Readonly<{ nbf?: unknown }>;
  if (nbf !== undefined && !(typeof nbf === 'number' && nbf * 1_000 <= Date.now() + SKEW_MS)) {
    return refused(401, 'the token is not valid yet');
  }
  if (payload.email_verified !== true) return refused(403, 'the e-mail address of the token is not verified');
  if (payload.email === undefined || !serviceAccounts.includes(payload.email)) {
    return refused(403, 'the token is of another account');
  }
  return { allowed: true };
}

const textOf = (value: string | readonly string[] | undefined): string =>
  typeof value === 'string' ? value : '';

const refusal =
  (proof: Proof) =>
  (status: 401 | 403, reason: string): Verdict => ({ allowed: false, status, reason, proof });
const unproven = refusal('none');
const refused = refusal('refused');
