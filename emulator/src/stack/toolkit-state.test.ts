import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { startToolkit, type Toolkit } from './toolkit.ts';

let first: Toolkit;
let second: Toolkit;
const lines: string[] = [];

before(async () => {
  const log = (line: string): void => void lines.push(line);
  [first, second] = await Promise.all([startToolkit({ log }), startToolkit({ log })]);
});
after(() => Promise.all([first?.close(), second?.close()]));

async function post<Answer>(toolkit: Toolkit, path: string, body: object): Promise<Answer> {
  const url = `${toolkit.addresses.control}/v1/projects/${toolkit.addresses.project}/${path}`;
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
  assert.equal(response.status, 200, await response.clone().text());
  return (await response.json()) as Answer;
}

const publish = (toolkit: Toolkit, topic: string, ids: readonly string[]): Promise<object> =>
  post(toolkit, `topics/${topic}:publish`, {
    messages: ids.map((dedupId) => ({ data: 'AA==', attributes: { dedupId } })),
  });

type Pulled = Readonly<{ receivedMessages?: readonly { message: { attributes: Record<string, string> } }[] }>;

/** Past the longest time that a push waits for its next attempt. */
const BACKOFF_MS = 10_000;

/** A busy machine pushes later than the clock moves. */
const LOOKS = 20;

/** The keys of what has come out when everything that was to be pushed has been answered, and `least` of it is there. */
async function arrived(toolkit: Toolkit, topic: string, least = 0): Promise<readonly string[]> {
  const request = { maxMessages: 100, returnImmediately: true };
  const keys: string[] = [];
  for (let look = 0; look < LOOKS && (look === 0 || keys.length < least); look += 1) {
    await toolkit.clock.advance(BACKOFF_MS);
    const { receivedMessages = [] } = await post<Pulled>(toolkit, `subscriptions/${topic}-sub:pull`, request);
    keys.push(...receivedMessages.map(({ message }) => message.attributes['dedupId'] ?? ''));
  }
  return keys.toSorted();
}

const held = (toolkit: Toolkit) =>
  toolkit.state() as unknown as {
    pubsub: { backlog: number; topics: number };
    firestore: { documents: number };
  };

test('a reset drops what the functions work on, and whatever they still make of it', async (t) => {
  const ids = Array.from({ length: 20 }, (_, index) => `order-${index}`);
  for (const topic of ['dedup-in', 'pipeline-in']) await publish(first, topic, ids);
  await wait(30);
  const started = performance.now();
  await first.reset();
  t.diagnostic(`reset with functions at work: ${(performance.now() - started).toFixed(0)} ms`);
  assert.deepEqual(await arrived(first, 'dedup-out'), []);
  assert.deepEqual(await arrived(first, 'pipeline-out'), []);
  const { pubsub, firestore } = held(first);
  // Since then the relay of the outbox has noted how far it has looked.
  assert.deepEqual([pubsub.backlog, pubsub.topics, firestore.documents], [0, 10, 1]);
  await publish(first, 'dedup-in', ['order-1']);
  assert.deepEqual(await arrived(first, 'dedup-out', 1), ['order-1'], 'not remembered from before');
});

test('a reset at rest takes milliseconds', async (t) => {
  await first.reset();
  const started = performance.now();
  await first.reset();
  t.diagnostic(`reset at rest: ${(performance.now() - started).toFixed(1)} ms`);
});

test('what one toolkit has saved goes through the functions of the other', async () => {
  await first.functions.kill();
  await publish(first, 'dedup-in', ['saved']);
  const saved: unknown = JSON.parse(JSON.stringify(first.save()));
  await second.load(saved);
  assert.deepEqual(await arrived(second, 'dedup-out', 1), ['saved']);
  await first.functions.start();
  assert.deepEqual(await arrived(first, 'dedup-out', 1), ['saved'], 'its own message is its own');
  await second.reset();
  assert.equal(held(second).pubsub.topics, 10);
});
