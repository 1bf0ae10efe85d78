/**
 * One StreamingPull call: sends what the subscription delivers to it, within the outstanding messages and bytes
 * that its client allows, and takes acknowledgements and new deadlines on the same stream.
 *
 * When the stream ends its deliveries stay leased until their deadlines: the client may still acknowledge them
 * by unary calls, as the client libraries do while they close.
 */
import type { ServerDuplexStream } from '@grpc/grpc-js';
import { invalidArgument } from '../grpc-server.ts';
import { assertDeadline, assertStreamDeadline } from './ack-deadline.ts';
import { assertAckIds } from './ack-ids.ts';
import type { DropsAck } from './dropped-acks.ts';
import { received, type Consumer } from './lease.ts';
import { assertPullable, MAX_MESSAGES, MAX_RESPONSE_BYTES } from './pull.ts';
import type { Registry } from './registry.ts';
import { leaveCall, type SubscriptionState } from './subscription-state.ts';
import type { Confirmation, StreamingPullRequest, StreamingPullResponse, Subscription } from './wire.ts';

export type StreamingPullCall = ServerDuplexStream<StreamingPullRequest, StreamingPullResponse>;

/** A long backlog goes to the streams in portions, so that several clients share it. */
const TURN = 100;

type Stream = Readonly<{ next: (request: StreamingPullRequest) => void; leave: () => void }>;

export function streamingPull(registry: Registry, call: StreamingPullCall, dropsAck: DropsAck): void {
  let stream: Stream | undefined;
  let over = false;
  const leave = (): void => {
    over = true;
    stream?.leave();
  };
  const abort = (error: Error): void => {
    leave();
    // @grpc/grpc-js sends the status that an emitted error carries.
    call.emit('error', error);
  };
  call.on('data', (request: StreamingPullRequest) => {
    if (over) return;
    try {
      if (stream === undefined) stream = open(registry, call, request, abort, dropsAck);
      else stream.next(request);
    } catch (error) {
      abort(error instanceof Error ? error : new Error(String(error)));
    }
  });
  call.on('end', () => {
    if (over) return;
    leave();
    call.end();
  });
  call.on('cancelled', leave);
  // A reset connection is reported here as well; what was delivered comes back at its deadline.
  call.on('error', leave);
}

function open(
  registry: Registry,
  call: StreamingPullCall,
  first: StreamingPullRequest,
  abort: (error: Error) => void,
  dropsAck: DropsAck,
): Stream {
  const state = registry.subscription(first.subscription);
  assertPullable(state.config());
  assertStreamDeadline(first.streamAckDeadlineSeconds);
  let ackDeadlineSeconds = first.streamAckDeadlineSeconds;
  const maxMessages = limit(first.maxOutstandingMessages);
  const maxBytes = limit(first.maxOutstandingBytes);
  const keepsAlive = Number(first.protocolVersion) >= 1;
  let messages = 0;
  let bytes = 0;
  let congested = false;

  const consumer: Consumer = {
    kind: 'stream',
    ackDeadlineSeconds: () => ackDeadlineSeconds,
    room: () =>
      congested || messages >= maxMessages || (messages > 0 && bytes >= maxBytes)
        ? undefined
        : {
            messages: Math.min(maxMessages - messages, MAX_MESSAGES),
            bytes: Math.min(maxBytes - bytes, MAX_RESPONSE_BYTES),
            // Larger than one response is not larger than what the client allows.
            oversize: messages === 0 || maxBytes - bytes > MAX_RESPONSE_BYTES,
            oneOfAKey: false,
            turn: TURN,
          },
    deliver(leases) {
      for (const { entry } of leases) {
        messages += 1;
        bytes += entry.bytes;
      }
      // Both may be changed while the stream is open; clients go by the last values they received.
      congested = !call.write({
        receivedMessages: leases.map(received),
        subscriptionProperties: properties(state.config()),
      });
    },
    released({ entry }) {
      messages -= 1;
      bytes -= entry.bytes;
    },
  };
  call.on('drain', () => {
    congested = false;
    state.delivery.dispatch();
  });
  const confirm = (response: StreamingPullResponse): void => {
    call.write(response);
  };
  call.write({ subscriptionProperties: properties(state.config()) });
  state.open.set(consumer, abort);
  settle(state, first, confirm, dropsAck);
  state.delivery.join(consumer);
  return {
    next(request: StreamingPullRequest): void {
      if (request.subscription !== '' && request.subscription !== first.subscription) {
        throw invalidArgument('subscription must be set in the first request of a stream only');
      }
      for (const field of ['maxOutstandingMessages', 'maxOutstandingBytes', 'protocolVersion'] as const) {
        if (Number(request[field]) !== 0)
          throw invalidArgument(`${field} can only be set in the first request of a stream`);
      }
      if (request.streamAckDeadlineSeconds !== 0) {
        assertStreamDeadline(request.streamAckDeadlineSeconds);
        ackDeadlineSeconds = request.streamAckDeadlineSeconds;
      }
      settle(state, request, confirm, dropsAck);
      // Clients of protocol version 1 take a stream for dead that does not answer their keep-alive requests.
      if (keepsAlive) call.write({});
    },
    leave(): void {
      leaveCall(state, consumer);
    },
  };
}

const properties = (config: Subscription): Required<StreamingPullResponse>['subscriptionProperties'] => ({
  exactlyOnceDeliveryEnabled: config.enableExactlyOnceDelivery,
  messageOrderingEnabled: config.enableMessageOrdering,
});

function settle(
  { delivery, config }: SubscriptionState,
  request: StreamingPullRequest,
  confirm: (response: StreamingPullResponse) => void,
  dropsAck: DropsAck,
): void {
  const { enableExactlyOnceDelivery: exactlyOnce, name } = config();
  const { ackIds, modifyDeadlineAckIds, modifyDeadlineSeconds } = request;
  if (modifyDeadlineAckIds.length !== modifyDeadlineSeconds.length) {
    throw invalidArgument('modify_deadline_ack_ids and modify_deadline_seconds must be of one length');
  }
  if (ackIds.length > 0) assertAckIds(ackIds, exactlyOnce);
  if (modifyDeadlineAckIds.length > 0) assertAckIds(modifyDeadlineAckIds, exactlyOnce);
  modifyDeadlineSeconds.forEach(assertDeadline);
  if (ackIds.length > 0 && !dropsAck('Acknowledge', name)) {
    const invalidAckIds = delivery.acknowledge(ackIds);
    if (exactlyOnce) confirm({ acknowledgeConfirmation: outcome(ackIds, invalidAckIds) });
  }
  if (modifyDeadlineAckIds.length > 0 && dropsAck('ModifyAckDeadline', name)) return;
  if (modifyDeadlineAckIds.length === 0) return;
  const invalidAckIds = delivery.modifyAckDeadlines(
    new Map(modifyDeadlineAckIds.map((id, index) => [id, modifyDeadlineSeconds[index] ?? 0])),
  );
  if (exactlyOnce) confirm({ modifyAckDeadlineConfirmation: outcome(modifyDeadlineAckIds, invalidAckIds) });
}

function outcome(all: readonly string[], invalidAckIds: readonly string[]): Confirmation {
  const invalid = new Set(invalidAckIds);
  return { ackIds: all.filter((id) => !invalid.has(id)), invalidAckIds };
}

/** 0 and less mean no limit. */
const limit = (value: string): number => (Number(value) > 0 ? Number(value) : Infinity);
