/**
 * One delivery: makes the context, runs the handler, and ends at the deadline whatever the handler does. What a
 * handler does after the deadline may be repeated: its signal is aborted, its late answer is logged and ignored.
 */
import type { Clock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { codeOf, ConfigError, textOf, TransientError } from '../errors.ts';
import { compose, type Context, type Handler } from '../handler.ts';
import type { Log } from '../log.ts';
import type { Message } from '../message.ts';
import { type Outcome, retry } from '../outcome.ts';
import { isPublished } from './settle.ts';

export type DeliverOptions = Readonly<{
  /** Names the consuming function or subscriber; scopes everything that is stored for it. */
  consumer: string;
  /** The subscription. Default: as delivered. */
  source?: string;
  clock: Clock;
  log: Log;
  /** How long a handler may take. Keep it below the subscription's ack deadline (at most 600 s for push). */
  timeout: Duration;
  /** Ends the delivery before its deadline: whoever called is going away. */
  stop?: AbortSignal;
}>;

/** Never rejects. */
export async function deliver(handler: Handler, message: Message, options: DeliverOptions): Promise<Outcome> {
  const { clock, consumer, log } = options;
  const source = options.source ?? message.subscription;
  if (source === undefined) return retry(unknownSource(message));

  const timeoutMs = toMilliseconds(options.timeout, 'timeout');
  const controller = new AbortController();
  const context: Context = {
    consumer,
    source,
    now: () => clock.now(),
    deadline: clock.monotonic() + timeoutMs,
    signal: controller.signal,
    log,
  };
  return new Promise((resolve) => {
    let over = false;
    const end = (error: TransientError): void => {
      if (over) return;
      over = true;
      release();
      controller.abort(error);
      resolve(retry(error));
    };
    const onStop = (): void => end(new TransientError('DELIVERY_STOPPED', 'the receiver is closing'));
    const cancel = clock.after(timeoutMs, () => {
      end(new TransientError('HANDLER_TIMEOUT', `the handler took longer than ${options.timeout}`));
    });
    const release = (): void => {
      cancel();
      options.stop?.removeEventListener('abort', onStop);
    };
    options.stop?.addEventListener('abort', onStop);
    void compose(handler, [])(message, context).then((outcome) => {
      release();
      if (over) log.warn('a handler answered after its deadline', outcomeFields(message, outcome));
      const isLeftOver = outcome.kind === 'ack' && !isPublished(outcome);
      resolve(isLeftOver ? retry(unpublished()) : outcome);
    });
  });
}

/** For a log line about an outcome: never a payload. */
export function outcomeFields(message: Message, outcome: Outcome): Record<string, string> {
  return {
    messageId: message.id,
    outcome: outcome.kind,
    ...(outcome.kind === 'ack'
      ? { reason: outcome.reason }
      : { code: codeOf(outcome.error), error: textOf(outcome.error) }),
  };
}

/**
 * The message is fine and the set-up is not: it is delivered again until somebody has configured the source. Without
 * one, equal message IDs of two topics would be taken for one message.
 */
const unknownSource = (message: Message): ConfigError =>
  new ConfigError(
    'SOURCE_UNKNOWN',
    `message ${message.id} came without a subscription, and no source is configured; set the source`,
  );

/** Acknowledged, what the handler wanted published would be lost without a word. */
const unpublished = (): ConfigError =>
  new ConfigError(
    'UNPUBLISHED',
    'the outcome holds messages that nobody has published; put the publishing middleware around the handler',
  );
