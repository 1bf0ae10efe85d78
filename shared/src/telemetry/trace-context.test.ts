import assert from 'node:assert/strict';
import test from 'node:test';
import { createTraceState, ROOT_CONTEXT, trace, context } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import type { OutgoingMessage } from '../message.ts';
import { withTraceContext, remoteContext } from './trace-context.ts';

const TRACE = 'a'.repeat(32);
const SPAN = 'b'.repeat(16);
const PARENT = `00-${TRACE}-${SPAN}-01`;
const ACTIVE = { traceId: 'c'.repeat(32), spanId: 'd'.repeat(16), traceFlags: 1 };

const outgoing = (attributes: Record<string, string> = {}): OutgoingMessage => ({
  topic: 'out',
  data: Buffer.from('x'),
  attributes,
});

function active<Value>(work: () => Value, traceState?: string): Value {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const state = traceState === undefined ? {} : { traceState: createTraceState(traceState) };
  try {
    return context.with(trace.setSpanContext(ROOT_CONTEXT, { ...ACTIVE, ...state }), work);
  } finally {
    context.disable();
  }
}

test('reads W3C trace context, and of Google’s client before it, because that published last', () => {
  const expected = { traceId: TRACE, spanId: SPAN, traceFlags: 1, isRemote: true };
  assert.deepEqual(remoteContext({ traceparent: PARENT }), expected);
  assert.deepEqual(remoteContext({ googclient_traceparent: PARENT, traceparent: 'x' }), expected);
  const both = { googclient_traceparent: PARENT, traceparent: `00-${'1'.repeat(32)}-${SPAN}-00` };
  assert.equal(remoteContext(both)?.traceId, TRACE);
  assert.equal(
    remoteContext({ traceparent: PARENT, tracestate: 'a=1,b=2' })?.traceState?.serialize(),
    'a=1,b=2',
  );
});

test('what is not valid counts as absent', () => {
  const values = [
    '',
    'x',
    PARENT.toUpperCase(),
    `${PARENT}-00`,
    `ff-${TRACE}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE}-${SPAN}`,
    ` ${PARENT}`,
    `${PARENT}\n`,
  ];
  for (const traceparent of values) assert.equal(remoteContext({ traceparent }), undefined, traceparent);
  assert.equal(remoteContext({ tracestate: 'a=1' }), undefined);
  assert.notEqual(
    remoteContext({ traceparent: `01-${TRACE}-${SPAN}-03-more` }),
    undefined,
    'a later version',
  );
});

test('without a span the received context goes on, of Google’s client under the standard name', () => {
  assert.deepEqual(withTraceContext(outgoing({ a: '1' }), { googclient_traceparent: PARENT }).attributes, {
    a: '1',
    traceparent: PARENT,
  });
  const own = outgoing({ traceparent: PARENT });
  assert.equal(withTraceContext(own, own.attributes), own);
  const plain = outgoing({ a: '1' });
  assert.equal(withTraceContext(plain, {}), plain);
});

test('with a span its context replaces the received one, trace state and all', () => {
  const received = { traceparent: PARENT, tracestate: 'old=1' };
  const sent = active(() => withTraceContext(outgoing({ ...received, a: '1' }), received), 'new=2');
  const traceparent = `00-${ACTIVE.traceId}-${ACTIVE.spanId}-01`;
  assert.deepEqual(sent.attributes, { a: '1', traceparent, tracestate: 'new=2' });
  const without = active(() => withTraceContext(outgoing({ ...received, a: '1' }), received));
  assert.deepEqual(without.attributes, { a: '1', traceparent });
});

test('context that the maker of a message wrote itself stays', () => {
  const own = outgoing({ traceparent: `00-${'9'.repeat(32)}-${SPAN}-01` });
  assert.equal(
    active(() => withTraceContext(own, { traceparent: PARENT })),
    own,
  );
});

test('without room the trace is left out: attributes, size, and an overlong trace state', () => {
  const full = outgoing(Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`k${index}`, 'v'])));
  assert.equal(
    active(() => withTraceContext(full)),
    full,
  );
  const nearly = outgoing(Object.fromEntries(Array.from({ length: 99 }, (_, index) => [`k${index}`, 'v'])));
  const sent = active(() => withTraceContext(nearly), 'a=1').attributes;
  assert.deepEqual([Object.keys(sent).length, sent['tracestate']], [100, undefined]);
  const exact = outgoing({ a: '1' });
  assert.equal(
    active(() => withTraceContext(exact, {}, 3)),
    exact,
  );
});
