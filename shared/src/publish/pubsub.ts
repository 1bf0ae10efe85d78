/**
 * The publishing port over Google's client for Pub/Sub.
 *
 * It makes its requests with the client's generated `v1.PublisherClient` and not with `Topic.publishMessage`, which
 * rewrites `{{projectId}}` inside attributes, writes into the caller's objects, fails every message of a request for
 * one that is refused, and lets the requests of an ordering key grow beyond what the service takes.
 *
 * A publish whose answer is lost is sent again by the client: the topic then has the message twice, under one
 * `dedupId`.
 */
import { PubSub, v1 } from '@google-cloud/pubsub';
import { type Clock, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { TransientError } from '../errors.ts';
import { guardedStart } from '../google-client.ts';
import { checkOutgoing, LIMITS, type OutgoingMessage } from '../message.ts';
import { batching } from './batching.ts';
import { publishError } from './pubsub-errors.ts';
import type { Publisher } from './publisher.ts';
import {
  address,
  checkBelow,
  checkOptions,
  clock as aClock,
  duration,
  durationFrom,
  hostAndPort,
  port,
  required,
  text,
  whole,
} from '../options.ts';

export type PubsubPublisherOptions = Readonly<{
  /**
   * How long one publish may take with all its repeats (default `10s`, at least `1ms`); then it rejects with a
   * TransientError.
   */
  publishTimeout?: Duration;
  /** How long the first message of a request waits for others (default `0ms`, below `publishTimeout`). */
  batchDelay?: Duration;
  /**
   * The most messages of a request (default 100, 1 to 1,000: https://cloud.google.com/pubsub/quotas#resource_limits).
   */
  batchMessages?: number;
  /**
   * The limit on data and attributes of a message together, in bytes (default 10,000,000, Pub/Sub's own; at least 1).
   */
  maxBytes?: number;
  /** Default: the machine's. */
  clock?: Clock;
}>;

export type PubsubPublisher = Publisher &
  Readonly<{
    /** Resolves when every publish has been answered. What is published after it is refused. May be called twice. */
    close(): Promise<void>;
  }>;

/** The two types of the client's own packages differ in how they spell an absent option. */
type ClientOptions = ConstructorParameters<typeof v1.PublisherClient>[0];

const aPubsub = port(['getClientConfig', 'topic'], 'a client for Pub/Sub, for example new PubSub()');

/** A request of several messages ends here; a larger message goes alone. */
const REQUEST_BYTES = 1_000_000;

/**
 * `client` stays the caller's: it gives the project, the endpoint and the credentials, and is not closed here.
 *
 * @example
 * const publisher = pubsubPublisher(new PubSub(), { batchDelay: '5ms' });
 * process.once('SIGTERM', () => void publisher.close());
 */
export function pubsubPublisher(client: PubSub, options: PubsubPublisherOptions = {}): PubsubPublisher {
  aPubsub('client', client);
  checkOptions<PubsubPublisherOptions>(options, {
    publishTimeout: durationFrom('1ms'),
    batchDelay: duration,
    batchMessages: whole(1, 1_000),
    maxBytes: whole(1),
    clock: aClock,
  });
  const {
    publishTimeout = '10s',
    batchDelay = '0ms',
    batchMessages = 100,
    maxBytes = LIMITS.messageBytes,
    clock = systemClock(),
  } = options;
  checkBelow(
    { path: 'batchDelay', given: options.batchDelay, standard: batchDelay },
    { path: 'publishTimeout', given: options.publishTimeout, standard: publishTimeout },
    'a message would wait for others until its publish is over',
  );
  const timeoutMs = toMilliseconds(publishTimeout, 'publishTimeout');
  let connection: Promise<v1.PublisherClient> | undefined;
  let closing: Promise<void> | undefined;

  const connect = (): Promise<v1.PublisherClient> => {
    connection ??= client
      .getClientConfig()
      .then((config) => guardedStart(new v1.PublisherClient(config as ClientOptions)));
    // No credentials now need not mean none later.
    connection.catch(() => {
      connection = undefined;
    });
    return connection;
  };

  const send = async (messages: readonly OutgoingMessage[]): Promise<readonly string[]> => {
    const topic = messages[0]?.topic ?? '';
    try {
      const publisher = await connect();
      const name = topic.includes('/') ? topic : `projects/${client.projectId}/topics/${topic}`;
      const [response] = await publisher.publish(
        { topic: name, messages: messages.map(toWire) },
        callOptions,
      );
      return response.messageIds ?? [];
    } catch (error) {
      throw publishError(error, topic);
    }
  };
  const callOptions = {
    timeout: timeoutMs,
    retry: {
      // Short pauses: what does not come back soon is delivered again anyway.
      backoffSettings: {
        initialRetryDelayMillis: 50,
        retryDelayMultiplier: 2,
        maxRetryDelayMillis: 1_000,
        initialRpcTimeoutMillis: timeoutMs,
        rpcTimeoutMultiplier: 1,
        maxRpcTimeoutMillis: timeoutMs,
        totalTimeoutMillis: timeoutMs,
      },
    },
  };
  const batches = batching(send, {
    clock,
    timeoutMs,
    delayMs: toMilliseconds(batchDelay, 'batchDelay'),
    maxMessages: batchMessages,
    maxBytes: REQUEST_BYTES,
  });

  return {
    async publish(message) {
      if (closing !== undefined) throw new TransientError('PUBLISHER_CLOSED', 'the publisher is closed');
      checkOutgoing(message, maxBytes);
      return batches.publish(copyOf(message));
    },
    close() {
      closing ??= batches.idle().then(async () => {
        const publisher = await connection?.catch(() => undefined);
        await publisher?.close();
      });
      return closing;
    },
  };
}

/**
 * A client for production, or for an emulator at `emulatorHost` (`127.0.0.1:8085`, `[::1]:8085`). Google's client reads
 * `PUBSUB_EMULATOR_HOST` by itself and takes an IPv6 address apart at its first colon; this one does not. The caller
 * closes it.
 *
 * @example
 * const client = pubsubClient({ projectId: 'p', emulatorHost: process.env.PUBSUB_EMULATOR_HOST });
 */
export function pubsubClient(
  options: Readonly<{ projectId: string; emulatorHost?: string | undefined }>,
): PubSub {
  checkOptions<typeof options>(options, { projectId: required(text), emulatorHost: address });
  const { projectId, emulatorHost } = options;
  if (emulatorHost === undefined) return new PubSub({ projectId });
  const { host, port } = hostAndPort('emulatorHost', emulatorHost);
  const client = new PubSub({ projectId, apiEndpoint: emulatorHost, emulatorMode: true });
  client.options.servicePath = host;
  client.options.port = port;
  return client;
}

/** The caller may go on and change its objects while the message waits. An empty ordering key means none. */
function copyOf(message: OutgoingMessage): OutgoingMessage {
  const { topic, data, orderingKey } = message;
  const attributes = { ...message.attributes };
  return { topic, data: Buffer.from(data), attributes, ...(orderingKey && { orderingKey }) };
}

/** A message of attributes alone goes without data. */
function toWire({ data, attributes, orderingKey }: OutgoingMessage): {
  data?: Uint8Array;
  attributes: Record<string, string>;
  orderingKey?: string;
} {
  return {
    ...(data.length > 0 && { data }),
    attributes,
    ...(orderingKey !== undefined && { orderingKey }),
  };
}
