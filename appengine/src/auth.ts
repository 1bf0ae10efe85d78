/**
 * Who may hand in a task. Only what Google vouches for counts: on App Engine the header that the platform strips from
 * outside requests, elsewhere an OIDC token of the one service account, made for this audience. There is no mode
 * without a proof, and no X-CloudTasks-* header is ever one, because anybody can send those.
 *
 * App Engine: https://cloud.google.com/tasks/docs/creating-appengine-handlers#reading-headers
 * Tokens: https://cloud.google.com/tasks/docs/creating-http-target-tasks#token
 */
import { type Certificates, OAuth2Client, type TokenPayload } from 'google-auth-library';

export type Callers = Readonly<{
  /** Runs on App Engine, where X-AppEngine-QueueName can only come from a queue. */
  appEngine: boolean;
  oidc?: Readonly<{ audience: string; serviceAccount: string }>;
}>;

/** Google's keys, by key ID, as PEM. */
export type KeySource = () => Promise<Certificates>;

/** 401: no proof, or one that does not hold. 403: a proof of somebody else. 503: the keys cannot be had now. */
export type Verdict =
  | Readonly<{ allowed: true }>
  | Readonly<{ allowed: false; status: 401 | 403 | 503; reason: string }>;

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Both are Google's (https://developers.google.com/identity/openid-connect/openid-connect#validatinganidtoken). */
const ISSUERS = ['https://accounts.google.com', 'accounts.google.com'];
const KEYS_TIMEOUT_MS = 10_000;

/** Google's own keys, kept for as long as their reply allows. */
export function googleKeys(): KeySource {
  const client = new OAuth2Client({ transporterOptions: { timeout: KEYS_TIMEOUT_MS } });
  return async () => (await client.getFederatedSignonCertsAsync()).certs;
}

/** `headers` as Node gives them: names in lower case. The result never rejects. */
export function authentication(callers: Callers, keys: KeySource): (headers: Headers) => Promise<Verdict> {
  const { appEngine, oidc } = callers;
  return async (headers) => {
    const queueName = headers['x-appengine-queuename'];
    if (appEngine && typeof queueName === 'string' && queueName !== '') return { allowed: true };
    if (oidc === undefined) return refused(403, 'the request does not come from a queue of this application');
    const token = /^Bearer ([\w.~+/=-]+)$/i.exec(textOf(headers['authorization']))?.[1];
    if (token === undefined) return refused(401, 'the request has no bearer token');
    let certificates: Certificates;
    try {
      certificates = await keys();
    } catch {
      return refused(503, "Google's keys cannot be read");
    }
    return verdictOn(await payloadOf(token, certificates, oidc.audience), oidc.serviceAccount);
  };
}

/** The payload of a token that is signed, of the right issuer, audience and time; undefined for every other. */
async function payloadOf(
  token: string,
  certificates: Certificates,
  audience: string,
): Promise<TokenPayload | undefined> {
  try {
    const ticket = await new OAuth2Client().verifySignedJwtWithCertsAsync(
      token,
      certificates,
      audience,
      ISSUERS,
    );
    return ticket.getPayload();
  } catch {
    // Its error texts hold the token, which belongs into no log.
    return undefined;
  }
}

function verdictOn(payload: TokenPayload | undefined, serviceAccount: string): Verdict {
  if (payload === undefined) {
    return refused(401, 'the token is not signed by Google, for another audience, or out of its time');
  }
  // The library allows five minutes after the end; a token lives for an hour, so there is no need.
  if (payload.exp * 1_000 <= Date.now()) return refused(401, 'the token has expired');
  if (payload.email_verified !== true) return refused(403, 'the e-mail address of the token is not verified');
  if (payload.email !== serviceAccount) return refused(403, 'the token is of another account');
  return { allowed: true };
}

const textOf = (value: string | readonly string[] | undefined): string =>
  typeof value === 'string' ? value : '';

const refused = (status: 401 | 403 | 503, reason: string): Verdict => ({ allowed: false, status, reason });
