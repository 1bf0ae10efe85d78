/**
 * The Pub/Sub server: google.pubsub.v1.Publisher, Subscriber, SchemaService and policies in memory, on 127.0.0.1, for the client
 * libraries of any language (`PUBSUB_EMULATOR_HOST`).
 *
 * Delivery is at least once, as in the service. The end of the process forgets topics, subscriptions and messages that
 * were not saved; message IDs do not come again. Methods that are not implemented answer UNIMPLEMENTED, and so do options
 * that would have to be ignored. A subscription that no client uses is deleted when its expiration policy says so, after 31
 * days by default.
 */
import { status } from '@grpc/grpc-js';
import type { Clock } from '../clock.ts';
import type { Faults } from '../faults/faults.ts';
import { restartable } from '../faults/restart.ts';
import { rpcFaults } from '../faults/rpc.ts';
import { serve, StatusError, type RunningServer } from '../grpc-server.ts';
import { guardCalls } from '../iam/guard.ts';
import type { CallerNow, IamPorts } from '../iam/methods.ts';
import type { Identity } from '../identity.ts';
import { dropsAck, skipDropAck } from './dropped-acks.ts';
import { pubsubCheck } from './permissions.ts';
import { policyMethods } from './policy-methods.ts';
import { pubsubServiceDefinitions } from './protos.ts';
import { publisherMethods } from './publisher.ts';
import { createRegistry } from './registry.ts';
import { preparePubsub, savePubsub } from './saved.ts';
import { schemaMethods } from './schemas/schema-methods.ts';
import { subscriberMethods } from './subscriber.ts';

export type PubsubOptions = Readonly<{
  /** 0, the default, takes any free port. */
  port?: number;
  clock: Clock;
  /** Gets a line for each failed push, unforwardable dead letter, expired subscription and unexpected error. */
  log?: (line: string) => void;
  /** Signs the OIDC tokens of authenticated pushes; without it `push_config.oidc_token` is UNIMPLEMENTED. */
  identity?: Identity;
  /** What goes wrong on request. */
  faults?: Faults;
  /**
   * By whose rights all calls are judged, as in `serviceAccount:a@p.iam.gserviceaccount.com`; asked at each call. Without
   * it, and while it gives undefined, policies are kept and not enforced.
   */
  caller?: CallerNow;
  /** Pushes also go to addresses that are not this machine's own. Default: false, and such a push fails. */
  remoteTargets?: boolean;
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
}>;

export type RunningPubsub = RunningServer &
  Readonly<{
    stats(): PubsubStats;
    /** What a move of the clock waits for: pushes, and answers of pull clients that a move gave no time. */
    inFlight(): number;
    /** Everything that it holds as plain JSON data; the form is described in saved.ts. */
    save(): object;
    /**
     * Replaces everything that it holds, at once; `{}` is an empty server. Open calls end with UNAVAILABLE, so that
     * clients connect again, and pushes in flight are dropped. Throws an error of one line that names the place, and
     * then nothing has changed.
     */
    load(saved: unknown): void;
    /** `load` in two steps: reads it, or throws so; what it gives puts it in place, and does not fail. */
    prepare(saved: unknown): () => void;
  }>;

/** Several times what @grpc/grpc-js needs to write the trailers of the calls that end. */
const CLOSING_TURNS = 20;

/** Throws an error that names the port when it is taken. */
export async function startPubsub({
  port = 0,
  clock,
  log = () => {},
  identity,
  faults,
  caller,
  remoteTargets = false,
}: PubsubOptions): Promise<RunningPubsub> {
  const { publisher, subscriber, schemaService, iamPolicy } = pubsubServiceDefinitions();
  const registry = createRegistry({ clock, log, identity, faults, remoteTargets });
  const { policies, resource } = registry;
  const iam: IamPorts = { policies, resource, caller: caller ?? (() => undefined) };
  const disturb = faults && rpcFaults(faults, 'pubsub', skipDropAck(registry.find));
  const intercept = caller === undefined ? disturb : guardCalls(pubsubCheck(registry, iam), disturb);
  const server = await serve(
    port,
    [
      [publisher, publisherMethods(registry, log, (peer, act) => server.afterReply(peer, act))],
      [subscriber, subscriberMethods(registry, clock, log, dropsAck(faults, registry.find))],
      [schemaService, schemaMethods(registry, log)],
      [iamPolicy, policyMethods(iam, log)],
    ],
    { ...(intercept && { intercept }) },
  );
  const state = {
    save: () => savePubsub(registry),
    prepare: (saved: unknown) => preparePubsub(registry, saved),
  };
  const restarts = restartable(faults, 'pubsub', clock, server, state, log);
  const inFlight = (): number => {
    let count = 0;
    for (const { pushing, delivery } of registry.states()) count += pushing() + delivery.awaited();
    return count;
  };
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    restarts.detach();
    // Clients take UNAVAILABLE for a reason to connect again. The statuses need some turns of the loop to leave.
    registry.clear(new StatusError(status.UNAVAILABLE, 'The server is shutting down.'));
    for (let turn = 0; turn < CLOSING_TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    await server.close();
  };
  return {
    address: server.address,
    port: server.port,
    unimplemented: server.unimplemented,
    save: restarts.save,
    load: restarts.load,
    prepare: restarts.prepare,
    inFlight,
    stats() {
      const states = [...registry.states()];
      return {
        topics: [...registry.topicNames()].length,
        subscriptions: states.length,
        outstanding: states.reduce((sum, { delivery }) => sum + delivery.outstanding(), 0),
        pushing: states.reduce((sum, { pushing }) => sum + pushing(), 0),
        backlog: states.reduce((sum, { delivery }) => sum + delivery.backlog(), 0),
      };
    },
    close() {
      closing ??= close();
      return closing;
    },
  };
}
