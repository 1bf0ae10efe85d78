import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '../message.ts';
import { memoryPayloads } from '../payload/memory.ts';
import { virtualClock } from '../testing/virtual-clock.ts';
import { load, encodeTask, type TaskEncoding, offload, loadTask } from './claim-check.ts';
import { type Delayed, decodeDelayed, encodeDelayed, taskFor } from './task-body.ts';

const START = Date.UTC(2030, 0, 1);
const queue = { overheadBytes: 100 };
const TRACE = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` };

const delayedOf = (data: Buffer, attributes: Record<string, string> = { dedupId: 'd' }): Delayed => ({
  key: 'k',
  topic: 'projects/p/topics/out',
  dueTimeMs: START + 60_000,
  scheduleTimeMs: START + 60_000,
  attempt: 0,
  hop: 0,
  message: { id: '7', data, attributes, orderingKey: 'o', publishTime: new Date(START) },
});
const withTrace = (delayed: Delayed): Delayed => ({
  ...delayed,
  message: { ...delayed.message, attributes: { ...delayed.message.attributes, ...TRACE } },
});
const payloadStore = () => memoryPayloads({ clock: virtualClock(START) });
const encoding = (change: Partial<TaskEncoding> = {}): TaskEncoding => ({
  queue,
  maxTaskBytes: 2_000,
  ...change,
});

test('what fits is carried by the task as before, and nothing is stored', async () => {
  const payloads = payloadStore();
  const delayed = delayedOf(Buffer.alloc(1_000, 0xff));
  assert.deepEqual(await encodeTask(delayed, encoding({ payloads })), taskFor(delayed));
  assert.equal(payloads.calls(), 0);
});

test('the cap is exact: one byte more goes to the payload store, or is refused without one', async () => {
  const payloads = payloadStore();
  const bytes = encodeDelayed(delayedOf(Buffer.alloc(1_000))).length + queue.overheadBytes;
  const atCap = encoding({ payloads, maxTaskBytes: bytes });
  assert.equal((await offload(delayedOf(Buffer.alloc(1_000)), atCap)).payload, undefined);
  assert.notEqual((await offload(delayedOf(Buffer.alloc(1_001)), atCap)).payload, undefined);
  const noRoom = encoding({ maxTaskBytes: bytes });
  await assert.rejects(encodeTask(delayedOf(Buffer.alloc(1_001)), noRoom), {
    name: 'PermanentError',
    code: 'TASK_TOO_LARGE',
    message: `the delayed message needs a task of ${bytes + 1} bytes; accepted: at most ${bytes} bytes`,
  });
});

test('what fits without its trace goes without it, and is not stored', async () => {
  const payloads = payloadStore();
  const plain = delayedOf(Buffer.alloc(1_000));
  const maxTaskBytes = encodeDelayed(plain).length + queue.overheadBytes;
  const options = encoding({ payloads, maxTaskBytes, plain: plain.message });
  assert.deepEqual(await encodeTask(withTrace(plain), options), taskFor(plain));
  assert.equal(payloads.calls(), 0);
});

test('a payload comes back whole: every byte, attribute and key, with the trace of the delivery that made the task', async () => {
  const payloads = payloadStore();
  const data = Buffer.alloc(50_000, Buffer.from([0x00, 0xff, 0xfe, 0x80, 0xc3, 0x28]));
  const plain = delayedOf(data, {
    dedupId: 'd',
    name: 'Łódź 日本 🚀',
    traceparent: 'older',
    tracestate: 's=1',
  });
  const task = await encodeTask(withTrace(plain), encoding({ payloads, plain: plain.message }));
  assert.ok(task.body.length + queue.overheadBytes <= 2_000);
  const { payload: _payload, message, ...rest } = await loadTask(task.body, payloads);
  const { message: given, ...others } = plain;
  assert.deepEqual(rest, others);
  const attributes = { ...plain.message.attributes, ...TRACE };
  assert.deepEqual(message, { ...given, attributes });
  assert.equal(payloads.stored(), 1);
});

test('two deliveries of one message come to one payload, whatever their traces', async () => {
  const payloads = payloadStore();
  const plain = delayedOf(Buffer.alloc(50_000));
  const options = encoding({ payloads, plain: plain.message });
  const first = await encodeTask(plain, options);
  const second = await encodeTask(withTrace(plain), options);
  assert.equal(second.name, first.name);
  assert.deepEqual(decodeDelayed(second.body).payload, decodeDelayed(first.body).payload);
  assert.equal(payloads.stored(), 1);
});

test('messages of equal content, attempts and generations never share a payload; hops do, without a second put', async () => {
  const payloads = payloadStore();
  const one = delayedOf(Buffer.alloc(50_000));
  const options = encoding({ payloads });
  const ready = await offload(one, options);
  const ids = [ready.payload?.id];
  for (const change of [{ key: 'l' }, { attempt: 1 }, { entry: { id: 'e', generation: 'g' } }]) {
    ids.push((await offload({ ...one, ...change }, options)).payload?.id);
  }
  assert.equal(new Set(ids).size, 4);
  const calls = payloads.calls();
  const hop = { ...decodeDelayed((await encodeTask(ready, options)).body), hop: 1 };
  assert.deepEqual((await loadTask(taskFor(hop).body, payloads)).message, one.message);
  assert.equal(payloads.calls(), calls + 1);
});

test('a task that is too large even with a payload is refused', async () => {
  const delayed = delayedOf(Buffer.alloc(50_000), { dedupId: 'd'.repeat(1_000) });
  const options = encoding({ payloads: payloadStore(), maxTaskBytes: 500 });
  await assert.rejects(encodeTask(delayed, options), { code: 'TASK_TOO_LARGE' });
});

test('a payload store that is down is transient, and so is none at all', async () => {
  const payloads = payloadStore();
  payloads.failOn(1, 'refused');
  const options = encoding({ payloads });
  const delayed = delayedOf(Buffer.alloc(50_000));
  await assert.rejects(encodeTask(delayed, options), { name: 'TransientError', code: 'STORE_UNAVAILABLE' });
  const ready = await offload(delayed, options);
  await assert.rejects(load(ready, undefined), { name: 'TransientError', code: 'PAYLOAD_STORE_MISSING' });
});

test('the trace is left out where the message has no room for it', async () => {
  const payloads = payloadStore();
  const attributes = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`key${n}`, 'v']));
  const plain = delayedOf(Buffer.alloc(50_000), attributes);
  const message: Message = { ...plain.message, attributes: { ...TRACE, dedupId: 'd' } };
  const options = encoding({ payloads, plain: plain.message });
  const task = await encodeTask({ ...plain, message }, options);
  assert.deepEqual((await loadTask(task.body, payloads)).message.attributes, attributes);
});
