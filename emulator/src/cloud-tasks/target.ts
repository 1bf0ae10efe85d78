/**
 * Where a task goes: reads the HTTP or App Engine request of a new task, with defaults filled in.
 * Throws INVALID_ARGUMENT for what the service refuses and UNIMPLEMENTED for what this server cannot do.
 */
import { invalidArgument, StatusError, unimplemented } from '../grpc-server.ts';
import { status } from '@grpc/grpc-js';
import { storedHeaders, type Headers } from './headers.ts';
import type { AppEngineRequestMessage, HttpRequestMessage, Routing, TaskMessage } from './messages.ts';
import { checkedOidcToken, type OidcToken } from './oidc.ts';

type Common = Readonly<{ method: string; headers: Headers; body: Buffer }>;
type HttpTarget = Common & Readonly<{ kind: 'http'; url: string; oidc: OidcToken | undefined }>;
export type AppEngineTarget = Common &
  Readonly<{
    kind: 'appEngine';
    relativeUri: string;
    /** That of the queue where it overrides, otherwise the task's own. */
    routing: Routing;
    /** What the request asked for. */
    ownRouting: Routing;
  }>;
export type Target = HttpTarget | AppEngineTarget;

/** API reference: HttpRequest.url (after encoding) and AppEngineHttpRequest.relative_uri. */
const MAX_URI_CHARACTERS = 2083;

const METHODS = new Set(['POST', 'GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']);
/** Methods that may have a body, by kind of target (API reference, `body`). */
const HTTP_BODY = new Set(['POST', 'PUT', 'PATCH']);
const APP_ENGINE_BODY = new Set(['POST', 'PUT']);

export type TargetRules = Readonly<{
  /** Whether there is an App Engine to send to. */
  appEngine: boolean;
  /** Whether there is a key to sign OIDC tokens with. */
  oidcTokens: boolean;
  /** The queue's app_engine_routing_override. */
  routingOverride: Routing | undefined;
}>;

export function parseTarget(task: TaskMessage, rules: TargetRules): Target {
  if (task.httpRequest != null) return parseHttp(task.httpRequest, rules);
  if (task.appEngineHttpRequest != null) return parseAppEngine(task.appEngineHttpRequest, rules);
  throw invalidArgument('The task needs a target: set httpRequest or appEngineHttpRequest.');
}

function parseHttp(request: HttpRequestMessage, rules: TargetRules): HttpTarget {
  const oidc = parseAuthorization(request, rules);
  const method = methodOf(request.httpMethod);
  checkBody(method, request.body, HTTP_BODY);
  return {
    kind: 'http',
    url: checkedUrl(request.url),
    method,
    headers: storedHeaders('http', request.headers, request.body.length),
    body: request.body,
    oidc,
  };
}

function parseAuthorization(request: HttpRequestMessage, rules: TargetRules): OidcToken | undefined {
  if (request.authorizationHeader === 'oauthToken') {
    throw unimplemented(
      'HttpRequest.oauthToken: only Google can issue an access token to its APIs. Leave it out, or use oidcToken.',
    );
  }
  if (request.oidcToken == null) return undefined;
  if (rules.oidcTokens) return checkedOidcToken(request.oidcToken);
  throw unimplemented(
    'HttpRequest.oidcToken: this server was started without an identity and does not sign tokens. Leave it out, or use an App Engine target.',
  );
}

function checkedUrl(url: string): string {
  if (url === '') throw invalidArgument('HttpRequest.url is required.');
  if (!/^https?:\/\//.test(url)) {
    throw invalidArgument("HttpTarget.url must start with 'http://' or 'https://'.");
  }
  const parsed = URL.parse(url);
  if (parsed === null) throw invalidArgument(`HttpRequest.url ${JSON.stringify(url)} is not a valid URL.`);
  if (parsed.username !== '' || parsed.password !== '') {
    throw unimplemented('HttpRequest.url with a user name or password: put it into an Authorization header.');
  }
  if (parsed.href.length > MAX_URI_CHARACTERS) {
    throw invalidArgument(
      `HttpRequest.url has ${parsed.href.length} characters after encoding: at most ${MAX_URI_CHARACTERS} are accepted.`,
    );
  }
  return url;
}

function parseAppEngine(request: AppEngineRequestMessage, rules: TargetRules): AppEngineTarget {
  if (!rules.appEngine) {
    throw new StatusError(
      status.FAILED_PRECONDITION,
      'AppEngineHttpRequest: this server was started without an App Engine application.',
    );
  }
  const method = methodOf(request.httpMethod);
  checkBody(method, request.body, APP_ENGINE_BODY);
  const ownRouting = filledIn(request.appEngineRouting);
  return {
    kind: 'appEngine',
    relativeUri: checkedRelativeUri(request.relativeUri),
    method,
    headers: storedHeaders('appEngine', request.headers, request.body.length),
    body: request.body,
    routing: filledIn(rules.routingOverride ?? ownRouting),
    ownRouting,
  };
}

/**
 * The target with another override of its queue, which counts "no matter what the setting is for the task-level routing"
 * (API reference, Queue.app_engine_routing_override).
 */
export function rerouted(target: Target, override: Routing | undefined): Target {
  return target.kind === 'http' ? target : { ...target, routing: filledIn(override ?? target.ownRouting) };
}

const filledIn = (routing: Partial<Routing> | null | undefined): Routing => ({
  service: routing?.service ?? '',
  version: routing?.version ?? '',
  instance: routing?.instance ?? '',
});

function checkedRelativeUri(uri: string): string {
  if (uri === '') return '/';
  if (!uri.startsWith('/')) {
    throw invalidArgument(`AppEngineHttpRequest.relativeUri ${JSON.stringify(uri)} must begin with "/".`);
  }
  if (!/^[^\s\p{Cc}]+$/u.test(uri)) {
    throw invalidArgument(
      `AppEngineHttpRequest.relativeUri ${JSON.stringify(uri)} must not contain spaces or control characters.`,
    );
  }
  if (uri.length > MAX_URI_CHARACTERS) {
    throw invalidArgument(
      `AppEngineHttpRequest.relativeUri has ${uri.length} characters: at most ${MAX_URI_CHARACTERS} are accepted.`,
    );
  }
  return uri;
}

function methodOf(method: string): string {
  if (method === 'HTTP_METHOD_UNSPECIFIED') return 'POST';
  if (METHODS.has(method)) return method;
  throw invalidArgument(
    `The HTTP method ${JSON.stringify(method)} is not one of ${[...METHODS].join(', ')}.`,
  );
}

function checkBody(method: string, body: Buffer, allowed: ReadonlySet<string>): void {
  if (body.length === 0 || allowed.has(method)) return;
  throw invalidArgument(
    `A body is allowed with the HTTP methods ${[...allowed].join(', ')} only, not with ${method}.`,
  );
}
