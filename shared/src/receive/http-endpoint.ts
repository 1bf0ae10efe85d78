/**
 * The HTTP endpoint: a delivery by push or Eventarc in, a status out. 2xx acknowledges, everything else asks for
 * another delivery (https://cloud.google.com/pubsub/docs/push#receive_push).
 *
 * A delivery that cannot be read is published to the dead letters as it came, and only then acknowledged. A request
 * that is no delivery is refused with 400 and changes nothing: had it been one, Pub/Sub would still have the message.
 */
import type { Duration } from '../duration.ts';
import { composeDeadLetter, legalAttributes } from '../dead-letter/compose-dead-letter.ts';
import { codeOf, PermanentError, refused, textOf } from '../errors.ts';
import { type Clock, systemClock } from '../clock.ts';
import type { Handler } from '../handler.ts';
import { consoleLog, type Log } from '../log.ts';
import type { Attributes, Message } from '../message.ts';
import type { Outcome } from '../outcome.ts';
import type { Publisher } from '../publish/publisher.ts';
import { checkTimeout } from './check-timeout.ts';
import { deliver, logOutcome, outcomeFields } from './deliver.ts';
import {
  callable,
  checkOptions,
  clock as aClock,
  durationFrom,
  log as aLog,
  name,
  publisher as aPublisher,
  required,
  signal,
  text,
} from '../options.ts';
import { headersOf, type HttpRequest } from './http-request.ts';
import { readPush } from './push.ts';
import { settle } from './settle.ts';
import { headerAttributes } from './unwrapped.ts';

export type { HttpRequest } from './http-request.ts';

export type HttpResponse = Readonly<{ status: number; body: string }>;

type DeadLetters = Readonly<{ publisher: Publisher; topic: string }>;

export type HttpEndpointOptions = Readonly<{
  /** Names the consuming function or subscriber; scopes everything that is stored for it. */
  consumer: string;
  /** The subscription. Default: as delivered. */
  source?: string;
  /** Default: the machine's. */
  clock?: Clock;
  /** Default: warnings and errors as JSON lines on standard error. */
  log?: Log;
  /**
   * How long a handler may take (at least `1ms`, above what a part of it needs to begin); below the subscription's
   * ack deadline and the platform's request timeout.
   */
  handlerTimeout: Duration;
  /** Publishes deliveries that cannot be read. Without it they are refused with 503, so that Pub/Sub keeps them. */
  publisher?: Publisher;
  /**
   * Where `publisher` publishes them: an ID in its project, or `projects/…/topics/…`. Given together with
   * `publisher`, or without it not at all.
   */
  deadLetterTopic?: string;
  /**
   * Aborted when the process has to end: a delivery that is not done then is answered 503, and its signal aborted
   * (default: never).
   */
  stop?: AbortSignal;
}>;

/**
 * A handler that returns no outcome is answered 503 each time, with a warning of code `NO_OUTCOME`: the subscription's retry
 * policy spaces the deliveries, and its dead-letter policy ends them.
 *
 * Throws ConfigError for a handler, a consumer or a source that is none, and for a `handlerTimeout` that is not a duration or too short for a part of the handler.
 *
 * @example
 * const endpoint = httpEndpoint(handler, {
 *   consumer: 'billing',
 *   handlerTimeout: '60s',
 *   publisher,
 *   deadLetterTopic: 'dead-letters',
 * });
 * const { status } = await endpoint(request);
 */
export function httpEndpoint(
  handler: Handler,
  options: HttpEndpointOptions,
): (request: HttpRequest) => Promise<HttpResponse> {
  callable('handler', handler);
  checkOptions<HttpEndpointOptions>(options, {
    consumer: required(name),
    source: name,
    clock: aClock,
    log: aLog,
    handlerTimeout: required(durationFrom('1ms')),
    stop: signal,
    publisher: aPublisher,
    deadLetterTopic: text,
  });
  const { clock = systemClock(), log = consoleLog() } = options;
  checkTimeout(handler, options.handlerTimeout);
  const { publisher, deadLetterTopic, ...rest } = options;
  const deadLetters = deadLettersOf(publisher, deadLetterTopic);
  const delivery = { ...rest, clock, log };

  return async (request) => {
    if (request.method !== 'POST') {
      log.warn('refused a request', { status: 405, method: request.method });
      return json(405, { error: `method ${request.method}; accepted: POST` });
    }
    let message: Message;
    try {
      message = readPush(request, clock.now());
    } catch (error) {
      return await unreadable(request, error, { ...delivery, deadLetters });
    }
    const report = (outcome: Outcome, traced: Log): void => logOutcome(message, outcome, traced);
    const outcome = await deliver(handler, message, { ...delivery, report });
    if (settle(outcome) === 'nack') {
      const fields = outcomeFields(message, outcome);
      return json(503, { error: `${fields['code']}: ${fields['error']}`, messageId: message.id });
    }
    return { status: 204, body: '' };
  };
}

function deadLettersOf(publisher?: Publisher, topic?: string): DeadLetters | undefined {
  if (publisher !== undefined && topic !== undefined) return { publisher, topic };
  if (publisher === undefined && topic === undefined) return undefined;
  if (topic === undefined) throw refused('deadLetterTopic', topic, 'a topic, with publisher');
  throw refused('publisher', publisher, `a publisher, with deadLetterTopic ("${topic}")`);
}

type Unread = Readonly<{ deadLetters: DeadLetters | undefined; log: Log; consumer: string; source?: string }>;

async function unreadable(
  request: HttpRequest,
  error: unknown,
  { deadLetters, log, consumer, source }: Unread,
): Promise<HttpResponse> {
  const [code, reason] = [codeOf(error), textOf(error)];
  if (!(error instanceof PermanentError) || code === 'NOT_FROM_PUBSUB') {
    log.warn('refused a request that is no delivery', { status: 400, code, error: reason });
    return json(400, { error: reason });
  }
  if (deadLetters === undefined) {
    log.error('a delivery cannot be read, and no dead-letter topic is configured', { code, error: reason });
    return json(503, { error: `${reason}; no dead-letter topic is configured` });
  }
  try {
    const { data, attributes } = asReceived(request);
    const letter = composeDeadLetter({
      topic: deadLetters.topic,
      data,
      attributes,
      error,
      from: { consumer, source },
    });
    const messageId = await deadLetters.publisher.publish(letter.message);
    log.warn('dead-lettered a delivery that cannot be read', {
      code,
      error: reason,
      deadLetterId: messageId,
    });
    return json(200, { deadLetterReason: code, deadLetterError: reason, deadLetterId: messageId });
  } catch (failure) {
    log.error('the dead letter of a delivery that cannot be read was not published', {
      code: codeOf(failure),
      error: textOf(failure),
      deadLetterError: reason,
    });
    return json(503, { error: `${reason}; its dead letter was not published: ${textOf(failure)}` });
  }
}

/** The body, and of the headers what may belong to the message: `ce-` headers and an unwrapped push's attributes. */
function asReceived(request: HttpRequest): { data: Uint8Array; attributes: Attributes } {
  const headers = headersOf(request);
  const contentType = headers.get('content-type');
  const attributes = { ...headerAttributes(headers), ...(contentType !== undefined && { contentType }) };
  return { data: request.rawBody, attributes: legalAttributes(attributes) };
}

const json = (status: number, body: Readonly<Record<string, string>>): HttpResponse => ({
  status,
  body: JSON.stringify(body),
});
