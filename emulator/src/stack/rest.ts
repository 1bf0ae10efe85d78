/**
 * Pub/Sub's REST form of publish, pull and acknowledge, so that `gcloud pubsub` and `curl` reach the local stack too.
 * Each request becomes the same gRPC call that a client library makes; limits and errors are the server's own.
 */
import { type ServiceError, status } from '@grpc/grpc-js';
import { type Fields, fromJson, toJson } from '../proto-json.ts';
import { invalidArgument } from '../grpc-server.ts';
import { pubsubServiceDefinitions } from '../pubsub/protos.ts';
import { type RestAnswer, restError } from '../rest-error.ts';
import { type Caller, caller } from './grpc-call.ts';

export type Rest = Readonly<{
  /** Undefined for what is none of the four methods. Never rejects. */
  handle(method: string, path: string, body: Buffer): Promise<RestAnswer | undefined>;
  close(): void;
}>;

type Route = Readonly<{
  pattern: RegExp;
  service: 'publisher' | 'subscriber';
  rpc: string;
  /** The field that the path stands for. */
  resource: string;
  request: Fields;
  reply: Fields;
}>;

const TOPIC = 'projects/[^/]+/topics/[^/:]+';
const SUBSCRIPTION = 'projects/[^/]+/subscriptions/[^/:]+';

const MESSAGE: Fields = {
  data: 'bytes',
  attributes: 'map',
  messageId: 'string',
  publishTime: 'timestamp',
  orderingKey: 'string',
};
const ROUTES: readonly Route[] = [
  {
    pattern: pathOf(TOPIC, 'publish'),
    service: 'publisher',
    rpc: 'Publish',
    resource: 'topic',
    request: { topic: 'string', messages: { list: MESSAGE } },
    reply: { messageIds: 'strings' },
  },
  {
    pattern: pathOf(SUBSCRIPTION, 'pull'),
    service: 'subscriber',
    rpc: 'Pull',
    resource: 'subscription',
    request: { subscription: 'string', maxMessages: 'int32', returnImmediately: 'bool' },
    reply: {
      receivedMessages: { list: { ackId: 'string', message: { fields: MESSAGE }, deliveryAttempt: 'int32' } },
    },
  },
  {
    pattern: pathOf(SUBSCRIPTION, 'acknowledge'),
    service: 'subscriber',
    rpc: 'Acknowledge',
    resource: 'subscription',
    request: { subscription: 'string', ackIds: 'strings' },
    reply: {},
  },
  {
    pattern: pathOf(SUBSCRIPTION, 'modifyAckDeadline'),
    service: 'subscriber',
    rpc: 'ModifyAckDeadline',
    resource: 'subscription',
    request: { subscription: 'string', ackIds: 'strings', ackDeadlineSeconds: 'int32' },
    reply: {},
  },
];

/** `address`: `host:port` of any Pub/Sub server. */
export function pubsubRest(address: string): Rest {
  let made: Record<Route['service'], Caller> | undefined;
  // Made for the first request: most stacks never have one, and reading the protos takes longer than all the rest.
  const callers = (): Record<Route['service'], Caller> => {
    if (made === undefined) {
      const { publisher, subscriber } = pubsubServiceDefinitions();
      made = { publisher: caller(address, publisher), subscriber: caller(address, subscriber) };
    }
    return made;
  };
  const close = (): void => {
    made?.publisher.close();
    made?.subscriber.close();
    made = undefined;
  };
  return {
    async handle(method, path, body) {
      const route = method === 'POST' ? ROUTES.find(({ pattern }) => pattern.test(path)) : undefined;
      if (route === undefined) return undefined;
      try {
        const name = decoded(route.pattern.exec(path)?.[1] ?? '');
        const request = { ...fromJson(route.request, parse(body)), [route.resource]: name };
        const reply = await callers()[route.service].call(route.rpc, request);
        return { status: 200, body: toJson(route.reply, reply as object, false) };
      } catch (error) {
        // A connection that was refused waits before it tries again. The next request does not wait: it may be up again.
        if ((error as Partial<ServiceError>).code === status.UNAVAILABLE) close();
        return restError(error);
      }
    },
    close,
  };
}

function pathOf(resource: string, verb: string): RegExp {
  return new RegExp(`^/v1/(${resource}):${verb}$`);
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    throw invalidArgument(`The path has a bad escape: ${name}`);
  }
}

function parse(body: Buffer): unknown {
  try {
    return body.length === 0 ? {} : JSON.parse(body.toString('utf8'));
  } catch {
    throw invalidArgument('Invalid JSON payload received.');
  }
}
