import assert from 'node:assert/strict';
import test from 'node:test';
import { Schema } from '@google-cloud/pubsub';
import { deadLettering } from '../dead-letter/dead-lettering.ts';
import { delay } from '../delay/delay.ts';
import { memoryTasks } from '../tasks/memory.ts';
import { republish } from '../delay/republish.ts';
import { retryLater } from '../delay/retry-later.ts';
import { contextFor } from '../context.ts';
import { PermanentError } from '../errors.ts';
import { compose, type Context, type Handler } from '../handler.ts';
import { silent } from '../log.ts';
import type { Attributes, Message } from '../message.ts';
import { deadLetter, retry } from '../outcome.ts';
import { memoryPublisher, virtualClock } from '../testing/index.ts';
import { forward } from './forward.ts';
import { publishing } from './publishing.ts';
import { schemaOf } from './schema.ts';

const TOPIC = 'projects/p/topics/out';
/** As Pub/Sub writes it. */
const SERVICE = {
  googclient_schemaencoding: 'BINARY',
  googclient_schemaname: 'projects/p/schemas/orders',
  googclient_schemarevisionid: 'b48dd2f1',
};
const OURS = {
  sourceSchemaEncoding: 'BINARY',
  sourceSchemaName: 'projects/p/schemas/orders',
  sourceSchemaRevisionId: 'b48dd2f1',
};
const SCHEMA = { name: 'projects/p/schemas/orders', revisionId: 'b48dd2f1', encoding: 'BINARY' };

function world() {
  const clock = virtualClock();
  const tasks = memoryTasks({ clock });
  const [target, dead] = [memoryPublisher(), memoryPublisher()];
  const deadLetters = deadLettering(dead, 'dead');
  const ports = { publisher: target, queue: tasks, deadLetters };
  tasks.dispatchTo(republish(ports, { allowedTopics: [TOPIC], clock, log: silent }) as never);
  const context: Context = contextFor(clock, {
    consumer: 'c',
    source: 'projects/p/subscriptions/s',
    deadline: Infinity,
  });
  const later = delay(tasks, { clock, topic: TOPIC });
  const run = (attributes: Attributes, handler: Handler = forward(TOPIC)) => {
    const message: Message = {
      id: '1',
      data: Buffer.from([1, 2]),
      attributes,
      publishTime: new Date(clock.now()),
    };
    const stages = [deadLetters, retryLater(tasks, { clock, topic: TOPIC }), later, publishing(target)];
    return clock.until(compose(handler, stages)(message, context));
  };
  return { clock, run, target, dead };
}
const schemaIn = (attributes: Attributes = {}): Attributes =>
  Object.fromEntries(Object.entries(attributes).filter(([name]) => /schema/i.test(name)));
const many = (count: number): Attributes =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']));

test("the schema that Google's client reads of a message is the one that is read here", () => {
  assert.equal(Schema.metadataFromMessage(SERVICE).encoding, schemaOf({ attributes: SERVICE })?.encoding);
  assert.deepEqual(schemaOf({ attributes: SERVICE }), SCHEMA);
  assert.equal(schemaOf({ attributes: { tenant: 'a' } }), undefined);
  assert.equal(schemaOf({ attributes: { sourceSchemaName: 'x' } }), undefined);
});

test('a forwarded message carries its schema under names that may be published', async () => {
  const { run, target } = world();
  await run({ ...SERVICE, tenant: 'a' });
  const [out] = target.published;
  assert.deepEqual(schemaIn(out?.attributes), OURS);
  assert.deepEqual(schemaOf(out!), SCHEMA);
});

test('forwarded again it keeps its schema, and the one of a later topic takes its place', async () => {
  const { run, target } = world();
  await run({ ...OURS });
  await run({ ...OURS, ...SERVICE, googclient_schemarevisionid: 'newer' });
  assert.deepEqual(schemaOf(target.published[0]!), SCHEMA);
  assert.deepEqual(schemaOf(target.published[1]!), { ...SCHEMA, revisionId: 'newer' });
});

test('the schema goes through a delay, a pause of a handler and a dead letter', async () => {
  const { clock, run, target, dead } = world();
  await run({ ...SERVICE, delay: '60' });
  await clock.advance(61_000);
  assert.deepEqual(schemaOf(target.published[0]!), SCHEMA);
  await run(SERVICE, async () => retry(new Error('busy'), '10s'));
  await clock.advance(61_000);
  assert.deepEqual(schemaOf(target.published[1]!), SCHEMA);
  await run(SERVICE, async () => deadLetter(new PermanentError('NO', 'no')));
  assert.deepEqual(schemaOf(dead.published[0]!), SCHEMA);
});

test('without room the schema goes as a whole, before the identity, and nothing of the publisher’s', async () => {
  const { run, target } = world();
  const kept = async (count: number): Promise<string> => {
    await run({ ...many(count), ...SERVICE });
    const { attributes } = target.published.at(-1)!;
    assert.ok(Object.keys(many(count)).every((key) => attributes[key] === 'v'));
    return Object.keys(attributes)
      .filter((key) => !key.startsWith('k'))
      .toSorted()
      .join(' ');
  };
  const schema = 'sourceSchemaEncoding sourceSchemaName sourceSchemaRevisionId';
  assert.equal(await kept(95), `dedupId originPublishTime ${schema}`);
  assert.equal(await kept(96), `dedupId ${schema}`);
  assert.equal(await kept(97), 'dedupId');
  assert.equal(await kept(99), 'dedupId');
  assert.equal(await kept(100), '');
});
