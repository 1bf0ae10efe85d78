/**
 * Pub/Sub's REST form of publish, pull and acknowledge, so that `gcloud pubsub` and `curl` reach the local stack too.
 * Each request becomes the same gRPC call that a client library makes; limits and errors are the server's own.
 */
import { type ServiceError, status } from '@grpc/grpc-js';
import { pubsubServiceDefinitions } from '../pubsub/protos.ts';
import { type Caller, caller } from './grpc-call.ts';

export type Rest = Readonly<{
  /** Undefined where the path is none of these. */
  handle(method: string, path: string, body: Buffer): Promise<Answer | undefined>;
  close(): void;
}>;
export type Answer = Readonly<{ status: number; body: unknown }>;

type Route = Readonly<{
  pattern: RegExp;
  service: 'publisher' | 'subscriber';
  rpc: string;
  /** The field that the path stands for. */
  resource: string;
}>;

const SUBSCRIPTION = 'projects/[^/]+/subscriptions/[^/:]+';
const ROUTES: readonly Route[] = [
  route('projects/[^/]+/topics/[^/:]+', 'publish', 'publisher', 'Publish', 'topic'),
  route(SUBSCRIPTION, 'pull', 'subscriber', 'Pull', 'subscription'),
  route(SUBSCRIPTION, 'acknowledge', 'subscriber', 'Acknowledge', 'subscription'),
  route(SUBSCRIPTION, 'modifyAckDeadline', 'subscriber', 'ModifyAckDeadline', 'subscription'),
];

/** The HTTP statuses that Google maps these to (https://cloud.google.com/apis/design/errors#handling_errors). */
const HTTP_STATUS: Readonly<Record<number, number>> = {
  [status.INVALID_ARGUMENT]: 400,
  [status.FAILED_PRECONDITION]: 400,
  [status.NOT_FOUND]: 404,
  [status.ALREADY_EXISTS]: 409,
  [status.RESOURCE_EXHAUSTED]: 429,
  [status.UNIMPLEMENTED]: 501,
  [status.UNAVAILABLE]: 503,
  [status.DEADLINE_EXCEEDED]: 504,
};

export function pubsubRest(pubsubPort: number): Rest {
  const definitions = pubsubServiceDefinitions();
  const callers: Record<Route['service'], Caller> = {
    publisher: caller(pubsubPort, definitions.publisher),
    subscriber: caller(pubsubPort, definitions.subscriber),
  };
  return {
    async handle(method, path, body) {
      for (const { pattern, service, rpc, resource } of ROUTES) {
        const name = pattern.exec(path)?.[1];
        if (name === undefined) continue;
        if (method !== 'POST') return failure(405, 'METHOD_NOT_ALLOWED', `method ${method}; accepted: POST`);
        try {
          const fields = parse(body);
          const reply = await callers[service].call(rpc, { ...fields, [resource]: decodeURIComponent(name) });
          return { status: 200, body: toJson(reply) };
        } catch (error) {
          return answerOf(error);
        }
      }
      return undefined;
    },
    close() {
      callers.publisher.close();
      callers.subscriber.close();
    },
  };
}

function route(
  resourcePattern: string,
  verb: string,
  service: Route['service'],
  rpc: string,
  resource: string,
): Route {
  return { pattern: new RegExp(`^/v1/(${resourcePattern}):${verb}$`), service, rpc, resource };
}

class BodyError extends Error {}

/** Bytes fields are base64 in JSON; the gRPC side takes them as they are. */
function parse(body: Buffer): object {
  let fields: unknown;
  try {
    fields = body.length === 0 ? {} : JSON.parse(body.toString('utf8'));
  } catch {
    throw new BodyError('the body is not JSON');
  }
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields))
    throw new BodyError('the body is not a JSON object');
  if (!('messages' in fields)) return fields;
  if (!Array.isArray(fields.messages)) throw new BodyError('messages is not a list');
  return { ...fields, messages: fields.messages.map(messageFrom) };
}

function messageFrom(message: unknown, index: number): object {
  if (typeof message !== 'object' || message === null)
    throw new BodyError(`messages[${index}] is not an object`);
  if (!('data' in message)) return message;
  const { data } = message;
  if (typeof data !== 'string' || !/^[A-Za-z0-9+/_-]*={0,2}$/.test(data)) {
    throw new BodyError(`messages[${index}].data is not base64`);
  }
  return { ...message, data: Buffer.from(data, 'base64') };
}

type Timestamp = Readonly<{ seconds: string | number; nanos: number }>;

/** A reply as proto3 JSON: bytes in base64, times in RFC 3339, nothing that is unset. */
function toJson(value: unknown): unknown {
  if (Buffer.isBuffer(value)) return value.toString('base64');
  if (Array.isArray(value)) return value.map(toJson);
  if (typeof value !== 'object' || value === null) return value;
  if ('seconds' in value && 'nanos' in value) return rfc3339(value as Timestamp);
  const entries = Object.entries(value).filter(
    ([, field]) =>
      field !== null && field !== '' && field !== 0 && !(Buffer.isBuffer(field) && field.length === 0),
  );
  return Object.fromEntries(entries.map(([key, field]) => [key, toJson(field)]));
}

function rfc3339({ seconds, nanos }: Timestamp): string {
  const whole = new Date(Number(seconds) * 1_000).toISOString().slice(0, 19);
  return nanos === 0
    ? `${whole}Z`
    : `${whole}.${String(nanos)
        .padStart(9, '0')
        .replace(/(000)+$/, '')}Z`;
}

function answerOf(error: unknown): Answer {
  if (error instanceof BodyError) return failure(400, 'INVALID_ARGUMENT', error.message);
  const { code = status.INTERNAL, details } = error as Partial<ServiceError>;
  return failure(HTTP_STATUS[code] ?? 500, status[code] ?? 'INTERNAL', details ?? String(error));
}

function failure(code: number, name: string, message: string): Answer {
  return { status: code, body: { error: { code, message, status: name } } };
}
