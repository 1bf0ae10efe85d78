/**
 * The pull subscriber: a handler behind a subscription of Google's client for Pub/Sub. It alone acks and nacks; every
 * message that arrives is settled, whatever the handler does.
 *
 * The client extends the leases of the messages in flight, by default for 60 minutes; a crash lets them expire, and
 * they are delivered again. An ack that the service refuses is logged: the message comes again, and the
 * guarantees inside must recognise it.
 *
 * A message that failed waits here before it is given back, longer each time (pauses.ts): its lease is extended
 * meanwhile, so that no other subscriber gets it, and it takes a place of the client's flow control. Closing gives it
 * back at once.
 */
import {
  Duration as ClientDuration,
  type Message as ClientMessage,
  type Subscription,
} from '@google-cloud/pubsub';
import { type Clock, sleep, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { codeOf, ConfigError, textOf } from '../errors.ts';
import { guardedPubsub } from '../google-client.ts';
import type { Handler } from '../handler.ts';
import { type Log, consoleLog } from '../log.ts';
import type { Outcome } from '../outcome.ts';
import {
  callable,
  checkAtMost,
  checkOptions,
  clock as aClock,
  duration,
  durationFrom,
  flag,
  isObject,
  log as aLog,
  name,
  port,
  required,
  RETRY_SHAPE,
  type RetryPauses,
  type Shape,
  objectOf,
  whole,
} from '../options.ts';
import { checkTimeout } from './check-timeout.ts';
import { deliver, logOutcome } from './deliver.ts';
import { drainOnSigterm } from './drain-on-sigterm.ts';
import { type Failed, growingPauses } from './pauses.ts';
import { answer, codeOfClient, nameOf, toMessage } from './pubsub-message.ts';
import { settle } from './settle.ts';

export { subscriptionWindows } from './pubsub-windows.ts';

export type ReceiveOptions = Readonly<{
  /** Names the consuming subscriber; scopes everything that is stored for it. */
  consumer: string;
  /** The subscription. Default: its full name. */
  source?: string;
  /** Default: the machine's. */
  clock?: Clock;
  /** Gets a line for everything that is not acknowledged. Default: warnings and errors as JSON on standard error. */
  log?: Log;
  /**
   * How long a handler may take (default `60s`, at least `1ms`, at most `maxExtension`, above what a part of it needs
   * to begin).
   */
  handlerTimeout?: Duration;
  /** How many handlers run at once (default 100, at least 1). */
  concurrency?: number;
  /**
   * How long a message that failed waits before it is given back (default `100ms` to `60s`): longer with each failure
   * in a row, and at least as long as its handler asked for. Beside the subscription's own retry policy, which begins
   * when it is given back.
   */
  retry?: RetryPauses;
  /**
   * How many messages wait after a failure without keeping a handler from running (default: half of `concurrency`; at
   * least 0). Where more fail, the rest waits in the place of a handler, and the receiver is slower. The client holds
   * up to `concurrency` and this many messages.
   */
  maxWaiting?: number;
  /** How long the client goes on extending a lease (default `60m`, the client's own; at least `handlerTimeout`). */
  maxExtension?: Duration;
  /**
   * How long `close` waits for handlers that are running (default `30s`, from `0s`); then their signals are aborted.
   */
  closeTimeout?: Duration;
  /**
   * Closes on SIGTERM too, and then lets the process end unless it listens to SIGTERM itself: default true. Platforms
   * send SIGKILL soon after (Cloud Run after 10 s, Kubernetes after 30 s by default): keep `closeTimeout` below that.
   */
  drainOnSigterm?: boolean;
  /**
   * After an error that ends the stream (the subscription is gone, access is denied) it is opened again, so much
   * later (default `5s`, from `0s`).
   */
  reopenAfter?: Duration;
}>;

export type Receiver = Readonly<{
  /** Takes no more, waits for what is running, gives the rest back. May be called twice. Never rejects. */
  close(): Promise<void>;
}>;

/**
 * The listener and the options of `subscription` belong to the receiver from here on; its client stays the caller's.
 * Throws ConfigError for invalid options, and `SUBSCRIPTION_IN_USE` where another receiver listens: the client gives
 * each message to all listeners, and the first ack would settle it for those that have not done it.
 *
 * @example
 * const receiver = receive(pubsub.subscription('orders-sub'), handler, {
 *   consumer: 'billing',
 *   retry: { min: '1s', max: '5m' },
 * });
 */
export function receive(subscription: Subscription, handler: Handler, options: ReceiveOptions): Receiver {
  port(
    ['on', 'setOptions', 'close'],
    'a subscription of Google’s client, for example pubsub.subscription(name)',
  )('subscription', subscription);
  isObject('subscription.pubsub', subscription.pubsub);
  callable('handler', handler);
  checkOptions<ReceiveOptions>(options, RECEIVE_SHAPE);
  const {
    clock = systemClock(),
    log = consoleLog(),
    handlerTimeout = '60s',
    concurrency = 100,
    consumer,
    source,
  } = options;
  const { maxExtension = '60m', closeTimeout = '30s', reopenAfter = '5s', retry = {} } = options;
  const { drainOnSigterm: drains = true } = options;
  const closeTimeoutMs = toMilliseconds(closeTimeout, 'closeTimeout');
  const reopenMs = toMilliseconds(reopenAfter, 'reopenAfter');
  const maxExtensionMs = toMilliseconds(maxExtension, 'maxExtension');
  const timeoutMs = checkTimeout(handler, handlerTimeout);
  checkAtMost(
    { path: 'handlerTimeout', given: options.handlerTimeout, standard: handlerTimeout },
    { path: 'maxExtension', given: options.maxExtension, standard: maxExtension },
    'messages would come again while they are handled',
  );
  const maxWaiting = options.maxWaiting ?? Math.ceil(concurrency / 2);
  const pauses = growingPauses(retry, maxExtensionMs - timeoutMs);
  if (subscription.listenerCount('message') > 0) {
    const text = `${subscription.name} has a listener for messages; accepted: a subscription object of this receiver's own`;
    throw new ConfigError('SUBSCRIPTION_IN_USE', text);
  }

  const waiting: Arrived[] = [];
  /** Deliveries that have begun and are not answered. */
  const begun = new Set<Promise<void>>();
  let running = 0;
  let pausing = 0;
  const stop = new AbortController();
  const handlerStop = new AbortController();
  let closing: Promise<void> | undefined;

  /** Never rejects. */
  const outcomeFor = async (received: ClientMessage): Promise<Outcome> => {
    try {
      const message = toMessage(received, nameOf(subscription), clock.now());
      return await deliver(handler, message, {
        consumer,
        clock,
        log,
        handlerTimeout,
        stop: handlerStop.signal,
        isLastTry: pauses.noOutcomes(received.id) >= MOST_NO_OUTCOMES - 1,
        report: (outcome, traced) => logOutcome(message, outcome, traced),
        ...(source !== undefined && { source }),
      });
    } catch (error) {
      log.error('a delivery failed', { messageId: received.id, code: codeOf(error), error: textOf(error) });
      return { kind: 'retry', error };
    }
  };
  /** Frees the handler's place while the message waits, as long as there is one for waiting. */
  const pause = async ({ received, at }: Arrived, outcome: Failed, free: () => void): Promise<void> => {
    const pauseMs = pauses.failed(received.id, outcome, maxExtensionMs - (clock.monotonic() - at));
    if (pauses.noOutcomes(received.id) >= MOST_NO_OUTCOMES) return stopFor(received.id);
    const isAside = pausing < maxWaiting;
    if (isAside) {
      pausing += 1;
      free();
    }
    await sleep(clock, pauseMs, stop.signal);
    if (isAside) pausing -= 1;
  };
  const handle = async (arrived: Arrived): Promise<void> => {
    const { received } = arrived;
    let hasPlace = true;
    const free = (): void => {
      if (!hasPlace) return;
      hasPlace = false;
      running -= 1;
      fill();
    };
    running += 1;
    const outcome = await outcomeFor(received);
    const isDone = settle(outcome) === 'ack';
    if (isDone) pauses.forget(received.id);
    else if (closing === undefined) await pause(arrived, asFailed(outcome), free);
    await answer(received, isDone, log);
    free();
  };
  const fill = (): void => {
    while (running < concurrency) {
      const next = waiting.shift();
      if (next === undefined) return;
      const done = handle(next).finally(() => begun.delete(done));
      begun.add(done);
    }
  };
  const onMessage = (received: ClientMessage): void => {
    if (closing !== undefined) return void answer(received, false, log);
    waiting.push({ received, at: clock.monotonic() });
    fill();
  };
  /** The program is at fault and not the message: other messages would fail in the same way. */
  const stopFor = (messageId: string): void => {
    if (closing !== undefined) return;
    log.error('the handler answers nothing, the receiver stops: return an outcome, for example ack()', {
      event: 'receiver_stopped',
      code: 'NO_OUTCOME',
      subscription: nameOf(subscription),
      messageId,
      attempts: MOST_NO_OUTCOMES,
    });
    void close();
  };
  const onError = (error: unknown): void =>
    log.error('the subscription reports an error', {
      subscription: nameOf(subscription),
      code: codeOfClient(error),
      error: textOf(error),
    });
  const onClose = (): void => {
    if (closing !== undefined) return;
    void sleep(clock, reopenMs, stop.signal).then(() => {
      if (closing === undefined) subscription.open();
    });
  };

  guardedPubsub(subscription.pubsub);
  // Messages leave the client at once and wait here: the client's own close would leave them unanswered.
  subscription.setOptions({
    flowControl: { maxMessages: concurrency + maxWaiting, allowExcessMessages: true },
    // More streams would each bring as many messages.
    streamingOptions: { maxStreams: 1 },
    maxExtensionTime: ClientDuration.from({ milliseconds: maxExtensionMs }),
    batching: { maxMilliseconds: ACK_DELAY_MS },
    closeOptions: {
      behavior: 'WAIT',
      timeout: ClientDuration.from({ milliseconds: closeTimeoutMs + CLIENT_CLOSE_MS }),
    },
  });
  subscription.on('error', onError);
  subscription.on('close', onClose);
  subscription.on('message', onMessage);

  const shutDown = async (): Promise<void> => {
    stop.abort();
    for (const { received } of waiting.splice(0)) void answer(received, false, log);
    const cancel = clock.after(closeTimeoutMs, () => {
      log.warn('closing although handlers are running', { handlers: running });
      handlerStop.abort();
    });
    // Ends the stream at once, then waits until every message in flight is answered.
    await subscription.close().catch(onError);
    await Promise.all(begun);
    cancel();
    subscription.off('message', onMessage);
    subscription.off('close', onClose);
    forget();
  };
  const close = (): Promise<void> => {
    closing ??= Promise.resolve().then(shutDown);
    return closing;
  };
  const forget = drains ? drainOnSigterm(close) : (): void => {};
  return { close };
}

/** One check for each option. */
const RECEIVE_SHAPE: Shape<Required<ReceiveOptions>> = {
  consumer: required(name),
  source: name,
  clock: aClock,
  log: aLog,
  handlerTimeout: durationFrom('1ms'),
  concurrency: whole(1),
  retry: objectOf(RETRY_SHAPE),
  maxWaiting: whole(0),
  maxExtension: duration,
  closeTimeout: duration,
  drainOnSigterm: flag,
  reopenAfter: duration,
};

type Arrived = Readonly<{
  received: ClientMessage;
  /** Time of the monotonic clock. */
  at: number;
}>;

/** A handler that answers nothing this often in a row for one message will do so again. */
const MOST_NO_OUTCOMES = 3;

/** `deliver` has made a retry of an ack with messages that no stage has published. */
const asFailed = (outcome: Outcome): Failed =>
  outcome.kind === 'ack' ? { kind: 'retry', error: undefined } : outcome;

/** Short, so that an answer is not delayed; the client's default is 100 ms. */
const ACK_DELAY_MS = 10;

/** After the last handler, for the answers to leave; the client itself stops a second before its time. */
const CLIENT_CLOSE_MS = 3_000;
