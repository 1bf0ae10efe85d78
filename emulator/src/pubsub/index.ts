/**
 * The Pub/Sub server: google.pubsub.v1.Publisher and Subscriber in memory, on 127.0.0.1, for the client
 * libraries of any language (`PUBSUB_EMULATOR_HOST`).
 *
 * Delivery is at least once, as in the service. A restart forgets topics, subscriptions and messages; message
 * IDs do not come again. Methods that are not implemented answer UNIMPLEMENTED, and so do options that would
 * have to be ignored.
 */
import { status } from '@grpc/grpc-js';
import type { Clock } from '../clock.ts';
import { serve, StatusError, type RunningServer } from '../grpc-server.ts';
import type { Identity } from '../identity.ts';
import { complete } from './methods.ts';
import { pubsubServiceDefinitions } from './protos.ts';
import { publisherMethods } from './publisher.ts';
import { createRegistry } from './registry.ts';
import { subscriberMethods } from './subscriber.ts';

export type PubsubOptions = Readonly<{
  /** 0, the default, takes any free port. */
  port?: number;
  clock: Clock;
  /** Gets a line for each failed push, unforwardable dead letter and unexpected error. */
  log?: (line: string) => void;
  /** Signs the OIDC tokens of authenticated pushes; without it `push_config.oidc_token` is UNIMPLEMENTED. */
  identity?: Identity;
}>;

type PubsubStats = Readonly<{
  topics: number;
  subscriptions: number;
  /** Delivered, pushes in flight included, and neither acknowledged nor back. */
  outstanding: number;
  /** Pushes that are not answered yet. */
  pushing: number;
  /** Waiting for delivery, backing off included. */
  backlog: number;
  /** Calls of known services answered UNIMPLEMENTED because the method is missing. */
  unimplemented: number;
}>;

export type RunningPubsub = RunningServer & Readonly<{ stats(): PubsubStats }>;

/** Several times what @grpc/grpc-js needs to write the trailers of the calls that end. */
const CLOSING_TURNS = 20;

/** Throws an error that names the port when it is taken. */
export async function startPubsub({
  port = 0,
  clock,
  log = () => {},
  identity,
}: PubsubOptions): Promise<RunningPubsub> {
  const { publisher, subscriber } = pubsubServiceDefinitions();
  const registry = createRegistry(clock, log, identity);
  let missing = 0;
  const count = (): void => {
    missing += 1;
  };
  const server = await serve(port, [
    [publisher, complete(publisher, publisherMethods(registry, log), count)],
    [subscriber, complete(subscriber, subscriberMethods(registry, clock, log), count)],
  ]);
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    // Clients take UNAVAILABLE for a reason to connect again. The statuses need some turns of the loop to leave.
    registry.close(new StatusError(status.UNAVAILABLE, 'The server is shutting down.'));
    for (let turn = 0; turn < CLOSING_TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    await server.close();
  };
  return {
    address: server.address,
    port: server.port,
    stats() {
      const states = [...registry.states()];
      return {
        topics: [...registry.topicNames()].length,
        subscriptions: states.length,
        outstanding: states.reduce((sum, { delivery }) => sum + delivery.outstanding(), 0),
        pushing: states.reduce((sum, state) => sum + state.pushing(), 0),
        backlog: states.reduce((sum, { delivery }) => sum + delivery.backlog(), 0),
        unimplemented: missing,
      };
    },
    close() {
      closing ??= close();
      return closing;
    },
  };
}
