/**
 * The push consumer of a subscription: one HTTP request for each delivery. A success status in time is the
 * acknowledgement; everything else, a broken connection included, is a nack. A request that outlives its
 * ack deadline is aborted. Of one ordering key one message is in flight.
 *
 * A failed message backs off by itself. An endpoint that fails again and again also gets fewer requests at a
 * time, and in the end one in a while, so that a long backlog does not hammer an endpoint that is down.
 */
import { type Agent, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Cancel, Clock } from '../clock.ts';
import type { Faults } from '../faults/faults.ts';
import { type Abort, outgoing } from '../faults/outgoing.ts';
import type { Identity } from '../identity.ts';
import { remoteTarget } from '../loopback.ts';
import { sendingAgents } from '../sending-agents.ts';
import type { Delivery } from './delivery.ts';
import type { Consumer, Lease } from './lease.ts';
import { pushRequest, type PushRequest } from './push-request.ts';
import { pushToken } from './push-token.ts';
import type { PushConfig, Subscription } from './wire.ts';

export type Push = Readonly<{
  /** Requests that are not answered yet. */
  inFlight(): number;
  /** Starts no more requests; those in flight still settle their messages. */
  stop(): void;
  /** Drops the requests in flight as well, without settling anything. */
  abort(): void;
}>;

/** https://cloud.google.com/pubsub/docs/push#receive_push */
const SUCCESS = new Set([102, 200, 201, 202, 204]);
const MAX_IN_FLIGHT = 256;
/** Failures in a row after which an endpoint counts as down, and how often it is tried then. */
const DOWN_AFTER = 20;
const DOWN_GAP_MS = 100;

export type PushPorts = Readonly<{
  clock: Clock;
  delivery: Delivery;
  /** Called for each push that was acknowledged. */
  pushed: () => void;
  log: (line: string) => void;
  identity: Identity | undefined;
  faults: Faults | undefined;
  /** Whether the endpoint may be on another machine. */
  remoteTargets: boolean;
}>;

export function startPush(ports: PushPorts, subscription: () => Subscription, config: PushConfig): Push {
  const { clock, delivery, pushed, log, identity, faults, remoteTargets } = ports;
  const token = pushToken(clock, config, identity);
  const url = new URL(config.pushEndpoint);
  const refused = remoteTargets ? undefined : remoteTarget(url);
  const agent = sendingAgents(remoteTargets)[url.protocol === 'https:' ? 'https:' : 'http:'];
  const inFlight = new Map<Lease, Abort>();
  const requests = outgoing<Answer>({
    faults,
    clock,
    service: 'pubsub',
    method: 'push',
    answered: (status) => ({ success: SUCCESS.has(status), why: `status ${status}` }),
    broken: (why) => ({ success: false, why }),
    copyLimitMs: () => subscription().ackDeadlineSeconds * 1000,
  });
  let window = MAX_IN_FLIGHT;
  let failuresInARow = 0;
  let pause: Cancel | undefined;
  let stopped = false;

  const succeeded = (): void => {
    pushed();
    failuresInARow = 0;
    window = Math.min(window + 8, MAX_IN_FLIGHT);
    pause?.();
    pause = undefined;
  };
  const failed = (lease: Lease, why: string): void => {
    log(`push of ${lease.entry.message.messageId} to ${config.pushEndpoint} failed: ${why}`);
    failuresInARow += 1;
    window = Math.max(1, Math.floor(window * 0.75));
    if (failuresInARow < DOWN_AFTER || stopped) return;
    pause ??= clock.after(DOWN_GAP_MS, () => {
      pause = undefined;
      delivery.dispatch();
    });
  };
  const send = (lease: Lease): void => {
    const settle = ({ success, why }: Answer): void => {
      if (!inFlight.has(lease)) return;
      // Before the message is settled, because settling delivers the next one.
      inFlight.delete(lease);
      if (success) succeeded();
      else failed(lease, why);
      if (success) delivery.acknowledge([lease.ackId]);
      else delivery.modifyAckDeadlines(new Map([[lease.ackId, 0]]));
      closeWhenDone();
    };
    const { body, headers, left } = pushRequest(lease, config, subscription().name);
    const { message, failures } = lease.entry;
    if (failures === 0) for (const what of left) log(`push of ${message.messageId}: ${what}`);
    // Last, so that no attribute of a message can take its place.
    const request = { body, headers: { ...headers, ...token() } };
    const sent = requests.send(
      subscription().name,
      (done) => (refused === undefined ? post(url, agent, request, done) : unsent(refused, done)),
      settle,
    );
    inFlight.set(lease, sent);
  };
  const closeWhenDone = (): void => {
    if (stopped && inFlight.size === 0) agent.destroy();
  };

  const consumer: Consumer = {
    kind: 'push',
    ackDeadlineSeconds: () => subscription().ackDeadlineSeconds,
    room: () =>
      pause === undefined && inFlight.size < window
        ? {
            messages: window - inFlight.size,
            bytes: Infinity,
            oversize: true,
            oneOfAKey: true,
            turn: Infinity,
          }
        : undefined,
    deliver: (leases) => leases.forEach(send),
    released(lease, end) {
      const abort = inFlight.get(lease);
      if (abort === undefined) return;
      inFlight.delete(lease);
      abort();
      if (end === 'failed') failed(lease, `no answer within ${subscription().ackDeadlineSeconds} s`);
      closeWhenDone();
    },
  };
  const stop = (): void => {
    stopped = true;
    pause?.();
    pause = undefined;
    delivery.leave(consumer);
    closeWhenDone();
  };
  // Joining delivers at once, so it comes last.
  delivery.join(consumer);
  return {
    inFlight: () => inFlight.size + requests.beyond(),
    stop,
    abort() {
      stop();
      const aborts = [...inFlight.values()];
      inFlight.clear();
      for (const abort of aborts) abort();
      requests.close();
      agent.destroy();
    },
  };
}

type Answer = Readonly<{ success: boolean; why: string }>;

/** Neither settles before this returns, as `outgoing` wants it. */
function unsent(why: string, settle: (answer: Answer) => void): Abort {
  queueMicrotask(() => settle({ success: false, why }));
  return () => undefined;
}

/** Calls `settle` at least once, whatever happens to the request. */
function post(
  url: URL,
  agent: Agent,
  { body, headers }: Pick<PushRequest, 'body' | 'headers'>,
  settle: (answer: Answer) => void,
): Abort {
  const start = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const request = start(url, { method: 'POST', agent, headers });
  // 102 Processing comes as an interim answer; the service counts it as an acknowledgement.
  request.on('information', ({ statusCode }) => {
    if (SUCCESS.has(statusCode)) settle({ success: true, why: '' });
  });
  request.on('response', (response) => {
    const { statusCode = 0 } = response;
    response.on('end', () => settle({ success: SUCCESS.has(statusCode), why: `status ${statusCode}` }));
    response.on('error', (error) => settle({ success: false, why: error.message }));
    response.on('close', () => settle({ success: false, why: 'the answer broke off' }));
    response.resume();
  });
  request.on('error', (error) => settle({ success: false, why: error.message }));
  request.end(body);
  return () => void request.destroy();
}
