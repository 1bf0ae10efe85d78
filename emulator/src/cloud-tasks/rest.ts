/**
 * The REST form of google.cloud.tasks.v2, for clients with `fallback: true`, `gcloud tasks` and `curl`. A request becomes
 * the same call that gRPC makes; limits and errors are the methods' own, and nothing here keeps any state.
 */
import { type ServiceDefinition, status } from '@grpc/grpc-js';
import { invalidArgument, notFound, StatusError, unimplemented } from '../grpc-server.ts';
import { methodOf, type Unimplemented } from '../unimplemented.ts';
import type { RpcCall } from './grpc-service.ts';
import { fromJson, toJson, type Fields } from '../proto-json.ts';
import { type RestAnswer, restError } from '../rest-error.ts';
import { MESSAGES } from './rest-messages.ts';
import { routesOf, type Route } from './rest-routes.ts';

/** `query` without its question mark. Undefined where the path is none of Cloud Tasks'. Never rejects. */
export type RestHandler = (
  method: string,
  path: string,
  query: string,
  body: Buffer,
) => Promise<RestAnswer | undefined>;

const OURS = /^\/v2\/projects\/[^/]+\/locations\/[^/]+\/queues(?:$|\/)/;

/**
 * Parameters of every Google API (https://cloud.google.com/apis/docs/system-parameters) that change nothing of an
 * answer here: they name the caller, or the layout. `fields` and `callback` would, and are refused as unknown.
 */
const WITHOUT_EFFECT = new Set(['access_token', 'key', 'oauth_token', 'prettyPrint', 'quotaUser', 'xgafv']);

export function cloudTasksRest(
  definition: ServiceDefinition,
  call: RpcCall,
  missing: Unimplemented,
): RestHandler {
  const routeOf = routesOf(definition);
  return async (method, path, query, body) => {
    if (!OURS.test(path)) return undefined;
    let route: Route | undefined;
    try {
      route = routeOf(method, path);
      if (route === undefined) throw notFound(`Method not found: ${method} ${path}`);
      const shape = MESSAGES[route.rpc];
      if (shape === undefined) throw unimplemented(`The server does not implement the method ${route.rpc}.`);
      const { alt, fields } = readQuery(query, shape.request);
      const request = requestOf(route, fields, body);
      const reply = await call(route.rpc, fromJson(shape.request, request));
      return { status: 200, body: toJson(shape.reply, reply, alt.enumsAsInts) };
    } catch (error) {
      if (route !== undefined && error instanceof StatusError && error.code === status.UNIMPLEMENTED) {
        missing.count(methodOf(definition[route.rpc]?.path ?? route.rpc));
      }
      return restError(error);
    }
  };
}

type Query = Readonly<{ alt: { enumsAsInts: boolean }; fields: Readonly<Record<string, unknown>> }>;

/** The fields of the request that the query gives, and the form that it wants the answer in. */
function readQuery(query: string, known: Fields): Query {
  const fields: Record<string, unknown> = {};
  let alt = { enumsAsInts: false };
  for (const [name, value] of new URLSearchParams(query)) {
    const parameter = name.replace(/^\$/, '');
    if (parameter === 'alt') {
      alt = readAlt(value);
    } else if (!WITHOUT_EFFECT.has(parameter)) {
      const kind = Object.hasOwn(known, name) ? known[name] : undefined;
      if (kind === undefined || (typeof kind !== 'string' && !('values' in kind))) {
        throw invalidArgument(
          `Invalid JSON payload received. Unknown name ${JSON.stringify(name)}: Cannot bind query parameter. Field '${name}' could not be found in request message.`,
        );
      }
      // An enum's number is a string here.
      fields[name] = typeof kind !== 'string' && /^\d+$/.test(value) ? Number(value) : value;
    }
  }
  return { alt, fields };
}

/** `json`, or as Google's own clients ask: `json;enum-encoding=int`. */
function readAlt(value: string): { enumsAsInts: boolean } {
  const [form, encoding] = value.split(';');
  if (form === 'json' && encoding === undefined) return { enumsAsInts: false };
  if (form === 'json' && encoding === 'enum-encoding=int') return { enumsAsInts: true };
  throw invalidArgument(
    `The parameter alt is ${JSON.stringify(value)}; accepted are json and json;enum-encoding=int.`,
  );
}

/** The path has the last word: it names what the request is about. */
function requestOf(route: Route, query: Query['fields'], body: Buffer): object {
  const json = readBody(body);
  if (json !== undefined && route.body === undefined) {
    throw invalidArgument(`The method ${route.rpc} takes no body.`);
  }
  const given = route.body === '*' ? json : json === undefined ? undefined : { [route.body ?? '']: json };
  if (given !== undefined && (typeof given !== 'object' || given === null || Array.isArray(given))) {
    throw invalidArgument('Invalid JSON payload received. The root must be an object.');
  }
  const request: Record<string, unknown> = { ...query, ...given };
  const [field = '', inner] = route.pathField.split('.');
  if (inner === undefined) return { ...request, [field]: route.name };
  const outer = request[field] ?? {};
  // What is not an object is refused with its path when it is read.
  return typeof outer === 'object' ? { ...request, [field]: { ...outer, [inner]: route.name } } : request;
}

/** Undefined when there is none: Google's client sends `""` with a DELETE. */
function readBody(body: Buffer): unknown {
  const text = body.toString('utf8').trim();
  if (text === '' || text === '""') return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw invalidArgument(`Invalid JSON payload received. ${String(error)}`);
  }
}
