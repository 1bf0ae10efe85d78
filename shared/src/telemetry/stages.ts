/**
 * What is observed of a message on its way: the delivery as a whole, each guarantee that it passes, and a held message
 * when its turn has come. Observing adds spans, measurements and the trace to the log, and passes everything through.
 */
import { isSpanContextValid, type Span, type SpanContext, SpanKind } from '@opentelemetry/api';
import type { Clock } from '../clock.ts';
import { faultOf } from '../errors.ts';
import type { Handler } from '../handler.ts';
import { type Log, withFields } from '../log.ts';
import type { Message, OutgoingMessage } from '../message.ts';
import { type Outcome, outcomeOf } from '../outcome.ts';
import { ATTR, type Capability, count, isMeasured, record } from './instruments.ts';
import { errorType, inSpan, isTracing, outcomeAttributes, setOutcome, type SpanParts } from './spans.ts';
import { withTraceContext, remoteContext } from './trace-context.ts';

const SYSTEM = { 'messaging.system': 'gcp_pubsub' };

export type DeliveryParts = Readonly<{ consumer: string; source: string; clock: Clock; log: Log }>;

/** `work` gets a log that names the trace. Its outcome is the delivery's. */
export function observeDelivery(
  message: Message,
  { consumer, source, clock, log }: DeliveryParts,
  work: (log: Log) => Promise<Outcome>,
): Promise<Outcome> {
  const remote = remoteContext(message.attributes);
  if (!isObserved()) return work(remote === undefined ? log : logOf(remote, log));
  const operation = () => ({
    ...SYSTEM,
    'messaging.operation.name': 'process',
    'messaging.destination.subscription.name': shortName(source),
  });
  const parts = (): SpanParts => ({
    name: `process ${shortName(source)}`,
    kind: SpanKind.CONSUMER,
    attributes: {
      ...operation(),
      'messaging.operation.type': 'process',
      'messaging.message.id': message.id,
      'messaging.message.body.size': message.data.length,
      ...(message.deliveryAttempt !== undefined && {
        'messaging.gcp_pubsub.message.delivery_attempt': message.deliveryAttempt,
      }),
      [ATTR.consumer]: consumer,
    },
  });
  return inSpan(parts, remote, async (span) => {
    const began = clock.monotonic();
    const outcome = await work(logOf(contextOf(span), log));
    if (isMeasured()) {
      const failure = outcome.kind === 'ack' ? {} : { 'error.type': errorType(outcome.error) };
      record('process', clock.monotonic() - began, { ...operation(), ...failure });
    }
    recordOutcome(span, 'delivery', consumer, outcome);
    recordFault(consumer, outcome);
    return outcome;
  });
}

/** One guarantee: a span of its name, and a count of its outcomes. */
export function observeStage(
  capability: Exclude<Capability, 'delivery' | 'republish'>,
  handler: Handler,
): Handler {
  const name = capability.replace('_', ' ');
  const observed: Handler = (message, context) =>
    inSpan(
      () => ({ name, attributes: { [ATTR.consumer]: context.consumer } }),
      undefined,
      async (span) => {
        try {
          const outcome = await handler(message, context);
          recordOutcome(span, capability, context.consumer, outcome);
          return outcome;
        } catch (error) {
          recordOutcome(span, capability, context.consumer, outcomeOf(error));
          throw error;
        }
      },
    );
  return (message, context) => (isObserved() ? observed : handler)(message, context);
}

/** A held message runs in the delivery of another message: its own trace goes on, with a link to that delivery. */
export function observeHeld(message: Message, work: () => Promise<Outcome>): Promise<Outcome> {
  const attributes = { ...SYSTEM, 'messaging.message.id': message.id };
  const parts = (): SpanParts => ({ name: 'process held', kind: SpanKind.CONSUMER, attributes });
  return inSpan(parts, remoteContext(message.attributes), async (span) => {
    const outcome = await work();
    setOutcome(span, outcome);
    return outcome;
  });
}

/** A task of the republisher: the trace of its message goes on, however long that waited. */
export function observeRepublish(
  message: Message,
  log: Log,
  work: (log: Log) => Promise<Outcome>,
): Promise<Outcome> {
  const parts = (): SpanParts => ({ name: 'republish', kind: SpanKind.CONSUMER, attributes: SYSTEM });
  return inSpan(parts, remoteContext(message.attributes), async (span) => {
    const outcome = await work(logOf(contextOf(span), log));
    recordOutcome(span, 'republish', 'republisher', outcome);
    recordFault('republisher', outcome);
    return outcome;
  });
}

/** A publish, with the trace in the message's attributes. `received` is the message that it was made from. */
export function observePublish(
  outgoing: OutgoingMessage,
  received: Message,
  maxBytes: number,
  publish: (outgoing: OutgoingMessage) => Promise<string>,
): Promise<string> {
  const parts = (): SpanParts => ({
    name: `send ${shortName(outgoing.topic)}`,
    kind: SpanKind.PRODUCER,
    attributes: {
      ...SYSTEM,
      'messaging.operation.name': 'send',
      'messaging.operation.type': 'send',
      'messaging.destination.name': shortName(outgoing.topic),
    },
  });
  return inSpan(parts, undefined, async () =>
    publish(withTraceContext(outgoing, received.attributes, maxBytes)),
  );
}

function recordOutcome(span: Span, capability: Capability, consumer: string, outcome: Outcome): void {
  setOutcome(span, outcome);
  if (!isMeasured()) return;
  const attributes = { [ATTR.consumer]: consumer, [ATTR.capability]: capability };
  count('outcomes', { ...attributes, ...outcomeAttributes(outcome) });
}

/** Of a delivery or a task as a whole, so that an outcome that passes several stages counts once. */
function recordFault(consumer: string, outcome: Outcome): void {
  if (outcome.kind === 'ack') return;
  const fault = faultOf(outcome.error);
  if (fault === 'message' || fault === 'process') return;
  count('faults', {
    [ATTR.consumer]: consumer,
    [ATTR.fault]: fault,
    [ATTR.reason]: errorType(outcome.error),
  });
}

/** Whether an SDK is registered. Without one the work is called directly, as in most processes. */
const isObserved = (): boolean => isTracing() || isMeasured();

function logOf(context: SpanContext, log: Log): Log {
  const { traceId, spanId, traceFlags } = context;
  if (!isSpanContextValid(context)) return log;
  return withFields(log, { traceId, spanId, traceSampled: (traceFlags & 1) === 1 });
}

function contextOf(span: Span): SpanContext {
  try {
    return span.spanContext();
  } catch {
    return { traceId: '', spanId: '', traceFlags: 0 };
  }
}

const shortName = (name: string): string => name.slice(name.lastIndexOf('/') + 1);
