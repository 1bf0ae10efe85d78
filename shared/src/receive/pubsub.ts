/**
 * The pull door: a handler behind a subscription of Google's client for Pub/Sub. It alone acks and nacks; every
 * message that arrives is settled, whatever the handler does.
 *
 * The client extends the leases of the messages in hand, by default for 60 minutes; a crash lets them expire, and
 * they are delivered again. An ack that the service refuses is logged: the message comes again, and it is for the
 * guarantees behind this door to recognise it.
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
import { checkDoor, checkTimeout } from './check-door.ts';
import { deliver, logOutcome } from './deliver.ts';
import { drainOnSigterm } from './drain-on-sigterm.ts';
import { answer, codeOfClient, nameOf, toMessage } from './pubsub-message.ts';
import { settle } from './settle.ts';

export { subscriptionWindows } from './pubsub-windows.ts';

export type ReceiveOptions = Readonly<{
  consumer: string;
  /** The subscription. Default: its full name. */
  source?: string;
  clock?: Clock;
  /** Gets a line for everything that is not acknowledged. Default: warnings and errors as JSON on standard error. */
  log?: Log;
  /** How long a handler may take. */
  timeout?: Duration;
  /** How many handlers run at once. */
  concurrency?: number;
  /** How long the client goes on extending a lease; at least `timeout`. The client's own default is 60 minutes. */
  maxExtension?: Duration;
  /** How long `close` waits for handlers that are running; then their signals are aborted. */
  closeTimeout?: Duration;
  /**
   * Closes on SIGTERM too, and then lets the process end unless it listens to SIGTERM itself: default true. Platforms
   * send SIGKILL soon after (Cloud Run after 10 s, Kubernetes after 30 s by default): keep `closeTimeout` below that.
   */
  drainOnSigterm?: boolean;
  /** After an error that ends the stream (the subscription is gone, access is denied) it is opened again. */
  reopenAfter?: Duration;
}>;

export type Receiver = Readonly<{
  /** Takes no more, waits for what is running, gives the rest back. May be called twice. Never rejects. */
  close(): Promise<void>;
}>;

/**
 * The listener and the options of `subscription` are this door's from here on; its client stays the caller's. Throws
 * ConfigError for invalid options, and `SUBSCRIPTION_IN_USE` where somebody else listens: the client gives each message to
 * all listeners, and the first ack would settle it for those that have not done it.
 */
export function receive(subscription: Subscription, handler: Handler, options: ReceiveOptions): Receiver {
  const {
    clock = systemClock(),
    log = consoleLog(),
    timeout = '60s',
    concurrency = 100,
    consumer,
    source,
  } = options;
  const { maxExtension = '60m', closeTimeout = '30s', reopenAfter = '5s' } = options;
  const { drainOnSigterm: drains = true } = options;
  const closeTimeoutMs = toMilliseconds(closeTimeout, 'closeTimeout');
  const reopenMs = toMilliseconds(reopenAfter, 'reopenAfter');
  const maxExtensionMs = toMilliseconds(maxExtension, 'maxExtension');
  checkDoor(handler, options);
  check(concurrency, checkTimeout(handler, timeout), maxExtensionMs);
  if (subscription.listenerCount('message') > 0) {
    const text = `${subscription.name} has a listener for messages; accepted: a subscription object of this receiver's own`;
    throw new ConfigError('SUBSCRIPTION_IN_USE', text);
  }

  const waiting: ClientMessage[] = [];
  const running = new Set<Promise<void>>();
  const stop = new AbortController();
  const giveUp = new AbortController();
  let closing: Promise<void> | undefined;

  const handle = async (received: ClientMessage): Promise<void> => {
    try {
      const message = toMessage(received, nameOf(subscription));
      const outcome = await deliver(handler, message, {
        consumer,
        clock,
        log,
        timeout,
        stop: giveUp.signal,
        report: (outcome, traced) => logOutcome(message, outcome, traced),
        ...(source !== undefined && { source }),
      });
      await answer(received, settle(outcome) === 'ack', log);
    } catch (error) {
      log.error('a delivery failed', { messageId: received.id, code: codeOf(error), error: textOf(error) });
      await answer(received, false, log);
    }
  };
  const fill = (): void => {
    while (running.size < concurrency) {
      const next = waiting.shift();
      if (next === undefined) return;
      const done = handle(next).finally(() => {
        running.delete(done);
        fill();
      });
      running.add(done);
    }
  };
  const onMessage = (received: ClientMessage): void => {
    if (closing !== undefined) return void answer(received, false, log);
    waiting.push(received);
    fill();
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
  // What arrives is dispensed at once and waits here: the client's own close would leave it behind unanswered.
  subscription.setOptions({
    flowControl: { maxMessages: concurrency, allowExcessMessages: true },
    // More streams would each bring `concurrency` messages.
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
    for (const received of waiting.splice(0)) void answer(received, false, log);
    const cancel = clock.after(closeTimeoutMs, () => {
      log.warn('closing although handlers are running', { handlers: running.size });
      giveUp.abort();
    });
    // Ends the stream at once, then waits until every message in hand is answered.
    await subscription.close().catch(onError);
    await Promise.all(running);
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

/** Short, so that an answer is not long on its way; the client's default is 100 ms. */
const ACK_DELAY_MS = 10;

/** After the last handler, for the answers to leave; the client itself gives up a second before its time. */
const CLIENT_CLOSE_MS = 3_000;

function check(concurrency: number, timeoutMs: number, maxExtensionMs: number): void {
  if (!Number.isInteger(concurrency) || concurrency < 1) {
    throw new ConfigError(
      'INVALID_CONCURRENCY',
      `concurrency is ${concurrency}; accepted: a whole number from 1`,
    );
  }
  if (maxExtensionMs < timeoutMs) {
    throw new ConfigError(
      'INVALID_EXTENSION',
      `maxExtension is ${maxExtensionMs} ms; accepted: at least timeout (${timeoutMs} ms), or messages come again while they are handled`,
    );
  }
}
