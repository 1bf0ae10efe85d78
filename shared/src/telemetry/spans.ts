/**
 * Spans around work, by the API of OpenTelemetry alone. Work runs exactly once and its result is passed through,
 * whatever an SDK does before, during or after it.
 */
import {
  type Attributes,
  context as contexts,
  isSpanContextValid,
  type Link,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { codeOf, stackOf } from '../errors.ts';
import type { Outcome } from '../outcome.ts';
import { ATTR, LIBRARY, quietly } from './instruments.ts';

export type SpanParts = Readonly<{
  name: string;
  kind?: SpanKind;
  attributes?: Attributes;
}>;

const NO_SPAN = trace.wrapSpanContext({ traceId: '0'.repeat(32), spanId: '0'.repeat(16), traceFlags: 0 });

/** `parts` is called only where a tracer is registered: without an SDK a span costs next to nothing. */
export function inSpan<Value>(
  parts: () => SpanParts,
  remote: SpanContext | undefined,
  work: (span: Span) => Promise<Value>,
): Promise<Value> {
  if (isTracing()) return traced(parts, remote, work);
  return work(remote === undefined ? NO_SPAN : trace.wrapSpanContext(remote));
}

/** The API stands in with a proxy, which has no tracer behind it until an SDK is registered. */
export function isTracing(): boolean {
  try {
    const provider = trace.getTracerProvider();
    return !(provider instanceof ProxyTracerProvider) || provider.getDelegateTracer(LIBRARY) !== undefined;
  } catch {
    return false;
  }
}

async function traced<Value>(
  parts: () => SpanParts,
  remote: SpanContext | undefined,
  work: (span: Span) => Promise<Value>,
): Promise<Value> {
  let span: Span = NO_SPAN;
  let result: Promise<Value> | undefined;
  // Asynchronous also where `work` is not: what it throws must not pass for a failure of the SDK, and run it again.
  const run = (): Promise<Value> => (result ??= (async () => work(span))());
  quietly(() => {
    span = start(parts(), remote);
    void contexts.with(trace.setSpan(contexts.active(), span), run).catch(() => {});
  });
  try {
    return await run();
  } finally {
    quietly(() => span.end());
  }
}

/** What came out, on the span. An error without a code is recorded with its stack. */
export function setOutcome(span: Span, outcome: Outcome): void {
  quietly(() => {
    if (!span.isRecording()) return;
    span.setAttributes(outcomeAttributes(outcome));
    if (outcome.kind === 'ack') return;
    const type = errorType(outcome.error);
    span.setAttribute('error.type', type);
    span.setStatus({ code: SpanStatusCode.ERROR, message: type });
    if (stackOf(outcome.error) !== undefined) span.recordException(outcome.error as Error);
  });
}

export function outcomeAttributes(outcome: Outcome): Attributes {
  const reason = outcome.kind === 'ack' ? outcome.reason : errorType(outcome.error);
  return {
    [ATTR.outcome]: outcome.kind === 'deadLetter' ? 'dead_letter' : outcome.kind,
    [ATTR.reason]: reason,
  };
}

/** A code or a class name. Anything that does not look like one may hold data of the message: it is not repeated. */
export function errorType(error: unknown): string {
  const code = codeOf(error);
  return /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/.test(code) ? code : '_OTHER';
}

/** `remote` becomes the parent: the span that sent the message. What is active meanwhile becomes a link. */
function start(
  { name, kind = SpanKind.INTERNAL, attributes = {} }: SpanParts,
  remote: SpanContext | undefined,
): Span {
  const active = contexts.active();
  if (remote === undefined) return trace.getTracer(LIBRARY).startSpan(name, { kind, attributes }, active);
  const around = trace.getSpanContext(active);
  const links: Link[] = around !== undefined && isSpanContextValid(around) ? [{ context: around }] : [];
  const parent = trace.setSpanContext(active ?? ROOT_CONTEXT, remote);
  return trace.getTracer(LIBRARY).startSpan(name, { kind, attributes, links }, parent);
}
