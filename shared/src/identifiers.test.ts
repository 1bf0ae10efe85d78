import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { deadLettering } from './dead-letter/dead-lettering.ts';
import { dedup } from './dedup/dedup.ts';
import { memoryClaims } from './dedup/memory.ts';
import type { DedupOptions } from './dedup/settings.ts';
import { compose, type Handler, type Middleware } from './handler.ts';
import { identifierHash } from './hash.ts';
import { jsonLog, type Log, type LogFields } from './log.ts';
import type { Message } from './message.ts';
import { orderedDelivery } from './order/in-order.ts';
import { memoryStreams } from './order/memory.ts';
import { memoryOutbox } from './outbox/memory.ts';
import { outbox } from './outbox/outbox.ts';
import { relay } from './outbox/relay.ts';
import { ack, retry } from './outcome.ts';
import { deliver, logOutcome } from './receive/deliver.ts';
import { memoryPublisher, virtualClock } from './testing/index.ts';

const SECRET = 'reset-password:ann@example.com';
const HASH = identifierHash(SECRET);

type Line = Readonly<{ severity: string; text: string }>;

/** A log of an application's own, which writes what it gets. */
function ownLog(lines: Line[]): Log {
  const at =
    (severity: string) =>
    (message: string, fields?: LogFields): void =>
      void lines.push({ severity, text: `${message} ${JSON.stringify(fields)}` });
  return { debug: at('DEBUG'), info: at('INFO'), warn: at('WARNING'), error: at('ERROR') };
}

const messageOf = (id: string, attributes: Record<string, string>, data = 'x'): Message => ({
  id,
  data: Buffer.from(data),
  attributes,
  publishTime: new Date(0),
  subscription: 'projects/p/subscriptions/s',
});

async function delivered(handler: Handler, messages: readonly Message[]): Promise<readonly Line[]> {
  const lines: Line[] = [];
  const clock = virtualClock();
  for (const message of messages) {
    await clock.until(
      deliver(handler, message, {
        consumer: 'c',
        clock,
        log: ownLog(lines),
        handlerTimeout: '60s',
        report: (outcome, log) => logOutcome(message, outcome, log),
      }),
    );
  }
  return lines;
}

const failing: Handler = async () => retry(new Error('no'));
const done: Handler = async () => ack();

function once(options: DedupOptions = {}): Middleware {
  const clock = virtualClock();
  return dedup(memoryClaims({ clock }), { clock, ...options });
}
const sameId = (data: string, id: string): Message => messageOf(id, { dedupId: SECRET }, data);
const conflict = [sameId('a', '1'), sameId('b', '2')];

const CASES: Readonly<Record<string, () => Promise<readonly Line[]>>> = {
  'a failure with a dedupId': () => delivered(compose(failing, [once()]), [sameId('a', '1')]),
  'a conflict that is dead-lettered': () =>
    delivered(compose(done, [deadLettering(memoryPublisher(), 'dead'), once()]), conflict),
  'a conflict that is acknowledged': () => delivered(compose(done, [once({ onConflict: 'ack' })]), conflict),
  'a conflict that is processed': () => delivered(compose(done, [once({ onConflict: 'process' })]), conflict),
  'a dedupId that is none': () =>
    delivered(compose(done, [once()]), [messageOf('1', { dedupId: `${SECRET}\ud800` })]),
  'a failure with a scheduleKey': () => delivered(failing, [messageOf('1', { scheduleKey: SECRET })]),
  'a sequenceKey and an ordering key': () =>
    delivered(failing, [{ ...messageOf('1', { sequence: '1', sequenceKey: SECRET }), orderingKey: SECRET }]),
  'a stream that fails': async () => {
    const clock = virtualClock();
    const streams = orderedDelivery(memoryStreams({ clock }), { clock, retry: { maxAttempts: 1 } });
    return delivered(compose(failing, [streams.middleware]), [
      messageOf('1', { sequence: '1', sequenceKey: SECRET }),
    ]);
  },
  'a row of the outbox that can never be published': async () => {
    const lines: Line[] = [];
    const clock = virtualClock();
    const store = memoryOutbox({ clock });
    const publisher = { publish: () => Promise.reject(new Error('no')) };
    const box = outbox(store, { clock });
    await store.transact(async (transaction) => {
      const slot = await box.reserve(transaction, { sequenceKey: SECRET });
      slot.add({ topic: 'out', data: Buffer.from('x'), attributes: {} });
    });
    await clock.until(
      relay(store, publisher, { clock, log: ownLog(lines) }).sweep({ signal: new AbortController().signal }),
    );
    return lines;
  },
};

for (const [name, play] of Object.entries(CASES)) {
  test(`no line above DEBUG has an identifier of the publisher, but its short hash: ${name}`, async () => {
    const lines = await play();
    const above = lines.filter(({ severity }) => severity !== 'DEBUG');
    assert.ok(above.length > 0 || name.includes('dead-lettered'), 'no line was written');
    for (const { text } of above) assert.ok(!text.includes(SECRET) && !text.includes('ann@'), text);
    if (name !== 'a dedupId that is none')
      assert.ok(
        above.some(({ text }) => text.includes(HASH)),
        JSON.stringify(above),
      );
  });
}

test('a DEBUG line has it whole', async () => {
  const lines = await delivered(failing, [messageOf('1', { dedupId: SECRET })]);
  assert.ok(lines.some(({ severity, text }) => severity === 'DEBUG' && text.includes(SECRET)));
});

test('the hash is what a shell prints for the key, and is not hashed again', () => {
  const shell = createHash('sha256').update(SECRET, 'utf8').digest('hex').slice(0, 12);
  assert.equal(HASH, `#${shell}`);
  const written: string[] = [];
  const log = jsonLog((line) => written.push(line), { debug: true });
  log.warn('x', { sequenceKey: HASH, dedupId: SECRET, other: SECRET });
  log.debug?.('x', { dedupId: SECRET });
  assert.deepEqual(
    written.map((line) => JSON.parse(line) as unknown),
    [
      { severity: 'WARNING', message: 'x', sequenceKey: HASH, dedupId: HASH, other: SECRET },
      { severity: 'DEBUG', message: 'x', dedupId: SECRET },
    ],
  );
});
