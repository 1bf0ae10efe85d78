/**
 * One unary Pull: answers at once with what is ready, otherwise waits a little for a first message.
 * A call that is cancelled takes nothing with it: while it waits it leaves the queue, and what is handed to it
 * after it was cancelled goes back as if it had never been delivered.
 */
import { status } from '@grpc/grpc-js';
import type { Clock } from '../clock.ts';
import { invalidArgument, StatusError } from '../grpc-server.ts';
import { received, type Consumer } from './lease.ts';
import type { Registry } from './registry.ts';
import { leaveCall } from './subscription-state.ts';
import type { ReceivedMessage, Subscription } from './wire.ts';

export type PullRequest = Readonly<{ subscription: string; returnImmediately: boolean; maxMessages: number }>;
export type PullResponse = Readonly<{ receivedMessages: readonly ReceivedMessage[] }>;
export type PullCall = Readonly<{
  request: PullRequest;
  cancelled(): boolean;
  onCancelled(act: () => void): void;
}>;

/** Short, so that a loop over an empty subscription stays lively; the service does not promise a length. */
const LONG_POLL_MS = 1000;
/** The service's own ceiling: larger numbers are accepted and answered with fewer. */
export const MAX_MESSAGES = 1000;
/**
 * Of data and attributes, one larger message aside. A gRPC client takes 4 MiB unless configured otherwise, and Google's
 * clients configure theirs only for the real service; the rest is for IDs, times and the framing of attributes.
 */
export const MAX_RESPONSE_BYTES = 3_000_000;

export function pull(registry: Registry, clock: Clock, call: PullCall): Promise<PullResponse> {
  const { subscription, returnImmediately, maxMessages } = call.request;
  const state = registry.subscription(subscription);
  assertPullable(state.config());
  if (maxMessages <= 0) throw invalidArgument(`max_messages must be positive: ${maxMessages}`);
  return new Promise((resolve, reject) => {
    let over = false;
    const finish = (): void => {
      over = true;
      stopWaiting();
      leaveCall(state, consumer);
    };
    const consumer: Consumer = {
      kind: 'pull',
      ackDeadlineSeconds: () => state.config().ackDeadlineSeconds,
      room: () =>
        over
          ? undefined
          : {
              messages: Math.min(maxMessages, MAX_MESSAGES),
              bytes: MAX_RESPONSE_BYTES,
              oversize: true,
              oneOfAKey: false,
              turn: MAX_MESSAGES,
            },
      deliver(leases) {
        finish();
        if (call.cancelled()) state.delivery.takeBack(leases);
        resolve({ receivedMessages: leases.map(received) });
      },
      released() {},
    };
    // A client waits in real time, also while the clock is frozen.
    const stopWaiting = (clock.moves?.real ?? clock).after(LONG_POLL_MS, () => {
      finish();
      resolve({ receivedMessages: [] });
    });
    state.open.set(consumer, (error) => {
      finish();
      reject(error);
    });
    call.onCancelled(() => {
      if (!over) finish();
      resolve({ receivedMessages: [] });
    });
    state.delivery.join(consumer);
    if (returnImmediately && !over) {
      finish();
      resolve({ receivedMessages: [] });
    }
  });
}

/** Throws FAILED_PRECONDITION for a push subscription and a detached one. */
export function assertPullable(config: Subscription): void {
  assertAttached(config);
  if (config.pushConfig !== null) throw notPullable();
}

/** Throws FAILED_PRECONDITION for a detached subscription. */
export function assertAttached({ detached }: Subscription): void {
  if (detached) throw isDetached();
}

export const isDetached = (): StatusError =>
  new StatusError(status.FAILED_PRECONDITION, 'The subscription is detached from its topic.');

export const notPullable = (): StatusError =>
  new StatusError(status.FAILED_PRECONDITION, 'This method is not supported for this subscription type.');
