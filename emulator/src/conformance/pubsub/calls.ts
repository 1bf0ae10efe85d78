/** The ways to a server: the real client, unary calls by the name of their method, and streams. */
import { PubSub } from '@google-cloud/pubsub';
import {
  type Client,
  type ClientDuplexStream,
  credentials,
  makeGenericClientConstructor,
  type ServiceDefinition,
} from '@grpc/grpc-js';
import { pubsubServiceDefinitions } from '../../pubsub/protos.ts';
import type { ReceivedMessage, StreamingPullRequest, StreamingPullResponse } from '../../pubsub/wire.ts';

type Fields = Readonly<Record<string, unknown>>;
export type Answer = Readonly<Record<string, unknown>>;

export type Stream = Readonly<{
  send(request: Partial<StreamingPullRequest>): void;
  responses: StreamingPullResponse[];
  received(): readonly ReceivedMessage[];
  /** Ends our side. */
  end(): void;
  /** The status that the stream has ended with: 0 is OK. */
  ended: Promise<number>;
}>;

export type Calls = Readonly<{
  pubsub: PubSub;
  /** A unary method of Publisher, Subscriber, SchemaService or IAMPolicy. Rejects with the status as `code`. */
  call(method: string, request: Fields): Promise<Answer>;
  /** A StreamingPull, its first request sent. */
  stream(first: Partial<StreamingPullRequest>): Stream;
}>;

type Unary = (
  request: Fields,
  options: Readonly<{ deadline: number }>,
  callback: (error: Error | null, answer: Answer) => void,
) => void;
type Duplex = () => ClientDuplexStream<Partial<StreamingPullRequest>, StreamingPullResponse>;

/** Longer than any of the servers waits for a first message: an answer that does not come is a failure of the case. */
const DEADLINE_MS = 50_000;
const ANY_SIZE = { 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 };

const definitions = (): readonly ServiceDefinition[] => Object.values(pubsubServiceDefinitions());

export function connect(address: string, project: string): Calls & Readonly<{ close(): Promise<void> }> {
  // Otherwise the client looks for a machine of Google's to run on, and warns that there is none.
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  const pubsub = new PubSub({ apiEndpoint: address, projectId: project });
  const clients = new Map<ServiceDefinition, Client>();
  const methodOf = (method: string): unknown => {
    const definition = definitions().find((each) => method in each);
    if (definition === undefined) throw new Error(`no service has the method ${method}`);
    let client = clients.get(definition);
    if (client === undefined) {
      const Generic = makeGenericClientConstructor(definition, 'PubSub');
      client = new Generic(address, credentials.createInsecure(), ANY_SIZE);
      clients.set(definition, client);
    }
    const methods = client as unknown as Record<string, (...args: unknown[]) => unknown>;
    return methods[method]?.bind(client);
  };
  const open: Stream[] = [];
  return {
    pubsub,
    call: (method, request) =>
      new Promise((resolve, reject) => {
        const options = { deadline: Date.now() + DEADLINE_MS };
        (methodOf(method) as Unary)(request, options, (error, answer) =>
          error === null ? resolve(answer) : reject(error),
        );
      }),
    stream(first) {
      const duplex = (methodOf('StreamingPull') as Duplex)();
      const responses: StreamingPullResponse[] = [];
      duplex.on('data', (response: StreamingPullResponse) => responses.push(response));
      duplex.on('error', () => {});
      const ended = new Promise<number>((resolve) => duplex.on('status', ({ code }) => resolve(code)));
      const made: Stream = {
        send: (request) => void duplex.write(request),
        responses,
        received: () => responses.flatMap(({ receivedMessages = [] }) => receivedMessages),
        end: () => duplex.end(),
        ended,
      };
      duplex.write(first);
      open.push({ ...made, end: () => duplex.cancel() });
      return made;
    },
    async close() {
      for (const each of open) each.end();
      for (const client of clients.values()) client.close();
      await pubsub.close();
    },
  };
}
