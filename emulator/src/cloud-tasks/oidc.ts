/**
 * The OIDC token of an HTTP task: what the request may ask for, and the header that an attempt carries. Every attempt
 * gets a token of its own, so that none has expired by the time a retry is made.
 */
import { invalidArgument } from '../grpc-server.ts';
import type { Identity } from '../identity.ts';
import type { Headers } from './headers.ts';

export type OidcToken = Readonly<{
  serviceAccountEmail: string;
  /** Empty: the URL of the task. */
  audience: string;
}>;

/**
 * Every service account's address ends in gserviceaccount.com: those a user makes, App Engine's and Compute Engine's
 * (https://cloud.google.com/iam/docs/service-account-types). The server signs for no other address.
 */
const SERVICE_ACCOUNT = /^[a-z0-9][a-z0-9.:-]*@(?:[a-z0-9-]+\.)+gserviceaccount\.com$/;

/** Throws INVALID_ARGUMENT when the address is missing or not that of a service account. */
export function checkedOidcToken({ serviceAccountEmail, audience }: OidcToken): OidcToken {
  if (SERVICE_ACCOUNT.test(serviceAccountEmail)) return { serviceAccountEmail, audience };
  throw invalidArgument(
    serviceAccountEmail === ''
      ? 'HttpRequest.oidcToken.serviceAccountEmail is required.'
      : `HttpRequest.oidcToken.serviceAccountEmail ${JSON.stringify(serviceAccountEmail)} is not the e-mail address of a service account, as in name@project.iam.gserviceaccount.com.`,
  );
}

/**
 * The headers with the token in place of any Authorization of the caller's: "all Authorization headers … will be
 * overridden", and "if not specified, the URI specified in target will be used" as the audience (API reference).
 */
export function withToken(headers: Headers, oidc: OidcToken, url: string, identity: Identity): Headers {
  const token = identity.token({ audience: oidc.audience || url, email: oidc.serviceAccountEmail });
  const others = Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'authorization');
  return { ...Object.fromEntries(others), Authorization: `Bearer ${token}` };
}
