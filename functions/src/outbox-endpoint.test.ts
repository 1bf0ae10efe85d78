import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Log, PermanentError, silent, TransientError } from 'pubsub-guarantees';
import type { Tailed } from 'pubsub-guarantees/outbox';
import { answerCreated } from './outbox-endpoint.ts';

const REQUEST = { headers: {}, rawBody: Buffer.from('event') };

async function answered(created: () => Promise<Tailed>) {
  const lines: string[] = [];
  const log: Log = {
    ...silent,
    error: (text, fields) => void lines.push(`${text}: ${String(fields?.['event'])}`),
    warn: (text) => void lines.push(text),
  };
  const { status, body } = await answerCreated(REQUEST, created, log);
  return { status, body: JSON.parse(body) as unknown, lines };
}

test('an event is acknowledged once its row is published, or is another’s to publish', async () => {
  for (const outcome of ['sent', 'left'] as const) {
    assert.deepEqual(await answered(async () => outcome), { status: 200, body: { outcome }, lines: [] });
  }
});

test('an event whose row could not be published, or not be read, is delivered again', async () => {
  assert.equal((await answered(async () => 'failed')).status, 503);
  const down = await answered(() => Promise.reject(new TransientError('STORE_UNAVAILABLE', 'down')));
  assert.deepEqual([down.status, down.lines.length], [503, 1]);
});

test('an event that can never be used is refused, with a line that names it', async () => {
  const refused = await answered(() => Promise.reject(new PermanentError('EVENT_REFUSED', 'no event')));
  assert.deepEqual(refused, {
    status: 400,
    body: { error: 'no event' },
    lines: ['refused an event: outbox_event_refused'],
  });
});
