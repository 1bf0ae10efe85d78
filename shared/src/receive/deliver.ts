/**
 * One delivery: makes the context, runs the handler, and ends at the deadline whatever the handler does. What a
 * handler does after the deadline may be repeated: its signal is aborted, its late answer is logged and ignored.
 */
import { contextFor } from '../context.ts';
import { type Clock, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { codeOf, ConfigError, faultOf, stackOf, textOf, TransientError } from '../errors.ts';
import { compose, type Handler } from '../handler.ts';
import { type Log, type LogFields, withoutIdentifiers, consoleLog } from '../log.ts';
import { ATTRIBUTE } from '../attributes.ts';
import type { Message } from '../message.ts';
import { type Outcome, retry } from '../outcome.ts';
import { observeDelivery } from '../telemetry/stages.ts';
import { checkTimeout } from './check-timeout.ts';
import { isPublished } from './settle.ts';
import {
  callable,
  checkOptions,
  clock as aClock,
  durationFrom,
  flag,
  isObject,
  log as aLog,
  name,
  required,
  type Shape,
  signal,
} from '../options.ts';

export type DeliverOptions = Readonly<{
  /** Names the consuming function or subscriber; scopes everything that is stored for it. */
  consumer: string;
  /** The subscription. Default: as delivered. */
  source?: string;
  /** Default: the machine's. */
  clock?: Clock;
  /** Default: warnings and errors as JSON lines on standard error. */
  log?: Log;
  /**
   * How long a handler may take (at least `1ms`, above what a part of it needs to begin). Keep it below the
   * subscription's ack deadline (at most 600 s for push).
   */
  handlerTimeout: Duration;
  /** Ends the delivery before its deadline: the process that received the message is about to end (default: never). */
  stop?: AbortSignal;
  /** Whether the message is dead-lettered if its handler returns no outcome once more (default: false). */
  isLastTry?: boolean;
  /**
   * Called once with the outcome, before `deliver` resolves; the log names the trace of the delivery (default:
   * nothing is called).
   */
  report?: (outcome: Outcome, log: Log) => void;
}>;

/** One check for each option. */
const SHAPE: Shape<Required<DeliverOptions>> = {
  consumer: required(name),
  source: name,
  clock: aClock,
  log: aLog,
  handlerTimeout: required(durationFrom('1ms')),
  stop: signal,
  isLastTry: flag,
  report: callable,
};

/**
 * Rejects with ConfigError for wrong arguments alone: whatever the handler does is an outcome.
 *
 * @example
 * const outcome = await deliver(handler, message, { consumer: 'billing', handlerTimeout: '60s' });
 * if (settle(outcome) === 'ack') log.info('done', { messageId: message.id });
 */
export async function deliver(handler: Handler, message: Message, options: DeliverOptions): Promise<Outcome> {
  callable('handler', handler);
  isObject('message', message);
  checkOptions<DeliverOptions>(options, SHAPE);
  checkTimeout(handler, options.handlerTimeout);
  const {
    consumer,
    source = message.subscription,
    clock = systemClock(),
    log: given = consoleLog(),
  } = options;
  const parts = { consumer, source: source ?? 'unknown', clock, log: withoutIdentifiers(given) };
  return observeDelivery(message, parts, async (log) => {
    if (message.assumedPublishTime !== undefined) {
      log.warn('the publish time is not usable: the time of arrival counts', {
        event: 'publish_time_assumed',
        messageId: message.id,
        publishTime: message.assumedPublishTime,
      });
    }
    const outcome =
      source === undefined
        ? retry(unknownSource(message))
        : await run(handler, message, source, { ...options, clock, log });
    callReport(options, outcome, log);
    return outcome;
  });
}

/** An error in the log is no reason for another delivery. */
function callReport({ report }: DeliverOptions, outcome: Outcome, log: Log): void {
  try {
    report?.(outcome, log);
  } catch {
    // No log is left for it.
  }
}

type Run = DeliverOptions & Readonly<{ clock: Clock; log: Log }>;

function run(handler: Handler, message: Message, source: string, options: Run): Promise<Outcome> {
  const { clock, consumer, log } = options;
  const timeoutMs = toMilliseconds(options.handlerTimeout, 'handlerTimeout');
  const controller = new AbortController();
  const context = contextFor(clock, {
    consumer,
    source,
    deadline: clock.monotonic() + timeoutMs,
    signal: controller.signal,
    log,
    ...(options.isLastTry === true && { isLastTry: true }),
  });
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
      end(new TransientError('HANDLER_TIMEOUT', `the handler took longer than ${options.handlerTimeout}`));
    });
    const release = (): void => {
      cancel();
      options.stop?.removeEventListener('abort', onStop);
    };
    // An event of an earlier outcome is not logged again.
    if (options.stop?.aborted === true) return onStop();
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
    ...(outcome.kind === 'ack' ? { reason: outcome.reason } : failureFields(outcome.error)),
  };
}

function failureFields(error: unknown): Record<string, string> {
  const stack = stackOf(error);
  return { code: codeOf(error), error: textOf(error), ...(stack !== undefined && { stack_trace: stack }) };
}

/**
 * The one line of a delivery. Successful deliveries are logged at debug level: metrics count them, and a burst of
 * duplicates must not become a burst of lines. An error without a code is logged with its stack, so that Error
 * Reporting shows where it came from.
 */
export function logOutcome(message: Message, outcome: Outcome, log: Log): void {
  const fields: LogFields = { ...outcomeFields(message, outcome), ...identifiersOf(message) };
  if (outcome.kind === 'ack') return log.debug?.('done', fields);
  // Only a DEBUG line has whole identifiers: it shows to which message the hashes of the next line belong.
  log.debug?.('not done', { messageId: message.id, ...identifiersOf(message) });
  const isDone = outcome.kind === 'deadLetter' && outcome.published === true;
  const text = isDone ? 'dead-lettered' : 'not done: asked for another delivery';
  const fault = faultOf(outcome.error);
  // An operator has to correct it, and until then each of these lines is a message that waits.
  if (fault === 'deployment') log.error(text, { event: 'deployment_fault', ...fields });
  else if (fields['stack_trace'] !== undefined) log.error(text, fields);
  else log.warn(text, fields);
}

/** The publisher's identifiers of the message. */
function identifiersOf({ attributes, orderingKey }: Message): LogFields {
  const { dedupId, scheduleKey, sequenceKey } = ATTRIBUTE;
  const names = [dedupId, scheduleKey, sequenceKey].filter((name) => attributes[name] !== undefined);
  return {
    ...Object.fromEntries(names.map((name) => [name, attributes[name]])),
    ...(orderingKey !== undefined && { orderingKey }),
  };
}

/**
 * The deployment is at fault and not the message, which is delivered again until the source is configured. Without a
 * source, equal message IDs of two topics would count as one message.
 */
const unknownSource = (message: Message): ConfigError =>
  new ConfigError(
    'SOURCE_UNKNOWN',
    `message ${message.id} came without a subscription, and no source is configured; set the source`,
  );

/** Acknowledged, what the handler wanted published would be lost silently. */
const unpublished = (): ConfigError =>
  new ConfigError(
    'NOT_PUBLISHED',
    'the outcome holds messages that no stage has published; put the publishing middleware around the handler',
  );
