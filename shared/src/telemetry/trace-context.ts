/**
 * Trace context in message attributes: read from what arrives, written to what leaves.
 *
 * Google's clients write `googclient_traceparent`, which no program may forward; all others write the attributes of
 * W3C Trace Context, and so does this library, whatever propagator the process uses. It is the first thing to be left
 * out where a message has no room, so it never decides whether a message can be published.
 */
import { createTraceState, isSpanContextValid, type SpanContext, trace } from '@opentelemetry/api';
import { ATTRIBUTE } from '../attributes.ts';
import { type Attributes, byteLength, hasRoom, LIMITS, type OutgoingMessage } from '../message.ts';

/** https://github.com/googleapis/nodejs-pubsub (`modernAttributeName`): put on by the client that published last. */
const GOOGLE_CLIENT = 'googclient_traceparent';

/** https://www.w3.org/TR/trace-context/#traceparent-header; a later version may have more fields at the end. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** The span that published the message. What is not valid counts as absent: a trace is never worth a refusal. */
export function remoteContext(attributes: Attributes): SpanContext | undefined {
  const google = parse(attributes[GOOGLE_CLIENT]);
  if (google !== undefined) return google;
  const context = parse(attributes[ATTRIBUTE.traceparent]);
  const state = attributes[ATTRIBUTE.tracestate];
  if (context === undefined || state === undefined || state === '') return context;
  return { ...context, traceState: createTraceState(state) };
}

/**
 * `outgoing` with the active span as its trace context; with that of `received`, the message it was made from, where
 * nothing traces. Context that the maker of the message wrote itself stays. Unchanged where there is no room.
 */
export function withTraceContext(
  outgoing: OutgoingMessage,
  received: Attributes = {},
  maxBytes: number = LIMITS.messageBytes,
): OutgoingMessage {
  const written = outgoing.attributes[ATTRIBUTE.traceparent];
  const isOwn = written !== undefined && written !== received[ATTRIBUTE.traceparent];
  if (isOwn) return outgoing;
  const active = activeContext();
  if (active === undefined && written !== undefined) return outgoing;
  const context = active ?? remoteContext(received);
  if (context === undefined) return outgoing;
  const { [ATTRIBUTE.tracestate]: _replaced, ...others } = outgoing.attributes;
  const plain = { ...others, [ATTRIBUTE.traceparent]: format(context) };
  const state = context.traceState?.serialize() ?? '';
  const isStateKept = state !== '' && byteLength(state) <= LIMITS.attributeValueBytes;
  const candidates = [...(isStateKept ? [{ ...plain, [ATTRIBUTE.tracestate]: state }] : []), plain];
  const roomy = candidates
    .map((attributes) => ({ ...outgoing, attributes }))
    .find((candidate) => hasRoom(candidate, maxBytes));
  return roomy ?? outgoing;
}

function activeContext(): SpanContext | undefined {
  try {
    const context = trace.getActiveSpan()?.spanContext();
    return context !== undefined && isSpanContextValid(context) ? context : undefined;
  } catch {
    return undefined;
  }
}

function parse(value: string | undefined): SpanContext | undefined {
  const match = value === undefined ? null : TRACEPARENT.exec(value);
  if (match === null) return undefined;
  const [, version, traceId = '', spanId = '', flags = '00', rest] = match;
  if (version === '00' && rest !== undefined) return undefined;
  // Only the first bit is defined (sampled).
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
  return isSpanContextValid(context) ? context : undefined;
}

const format = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-${(traceFlags & 1) === 1 ? '01' : '00'}`;
