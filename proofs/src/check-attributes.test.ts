import assert from 'node:assert/strict';
import test from 'node:test';
import { checkAttributes, type CheckAttributesOptions } from '../../shared/src/check-attributes.ts';
import { codeOf, textOf } from '../../shared/src/errors.ts';
import type { Context } from '../../shared/src/handler.ts';
import { silent } from '../../shared/src/log.ts';
import type { Message } from '../../shared/src/message.ts';
import { ack, type Outcome } from '../../shared/src/outcome.ts';
import { registerSdk } from './telemetry/sdk.ts';
import { virtualClock } from '../../shared/src/testing/index.ts';
import { refusal } from '../../shared/src/testing/refusal.ts';

function world(options: Partial<CheckAttributesOptions> = {}) {
  const clock = virtualClock();
  const warned: unknown[] = [];
  const passed: Message[] = [];
  const context = {
    consumer: 'c',
    log: { ...silent, warn: (_: string, fields?: object) => void warned.push(fields) },
  } as unknown as Context;
  const handler = checkAttributes({ clock, applied: [], ...options })(async (message) => {
    passed.push(message);
    return ack();
  });
  const deliver = (attributes: Record<string, string>): Promise<Outcome> =>
    handler({ id: '1', data: Buffer.alloc(0), attributes, publishTime: new Date(clock.now()) }, context);
  const names = (): unknown[] => warned.map((fields) => (fields as { attribute: unknown }).attribute);
  return { clock, deliver, passed, names };
}
const MISSPELT = [
  'dedupID',
  'DEDUPID',
  'Delay',
  'dedup-id',
  'dedup_id',
  'deliver.at',
  'schedule key',
  'Cancel',
];

test('a misspelt attribute is passed on as it is, with a warning that names it', async () => {
  for (const name of MISSPELT) {
    const { deliver, passed, names } = world({ applied: ['later', 'inOrder'] });
    assert.deepEqual(await deliver({ [name]: 'x' }), ack());
    assert.deepEqual([passed[0]?.attributes, names()], [{ [name]: 'x' }, [name]]);
  }
});

test('attributes of the contract, and the publisher’s own, are not mentioned', async () => {
  const { deliver, names } = world({ applied: ['later', 'inOrder'] });
  await deliver({ dedupId: 'a', delay: '5', tenant: 'x', relay: '1', deduplicationId: 'y', sequences: '1' });
  await deliver({ sequence: '1', sequenceKey: 'k', sequenceEpoch: 'e', 'ce-id': '1' });
  await deliver({ scheduleKey: 'k', cancel: 'true', deliverAt: '2030-01-01T00:00:00Z' });
  assert.deepEqual(names(), []);
});

test('an option that no stage applies is passed on with a warning, one that was applied before is not mentioned', async () => {
  const { deliver, passed, names } = world();
  for (const attributes of [
    { delay: '60' },
    { deliverAt: '2030-01-01T00:00:00Z' },
    { sequence: '1', sequenceKey: 'k' },
    { sequence: '2', sequenceKey: 'k', fencingToken: '9' },
    { delay: '0' },
  ]) {
    await deliver(attributes);
    assert.deepEqual(passed.at(-1)?.attributes, attributes);
  }
  assert.deepEqual(names(), ['delay', 'deliverAt', 'sequence']);
});

test('a message without a sequence is mentioned where every message should have one', async () => {
  const { deliver, names } = world({ applied: ['inOrder'], expectsSequence: true });
  await deliver({ sequence: '1' });
  await deliver({ tenant: 'a' });
  assert.deepEqual(names(), ['sequence']);
});

test('there is one warning a minute for each name, however many messages come', async () => {
  const { clock, deliver, names } = world();
  for (let second = 0; second < 119; second += 1) {
    await deliver({ dedupID: 'x', Delay: '1' });
    await clock.advance(1_000);
  }
  assert.deepEqual(names(), ['dedupID', 'Delay', 'dedupID', 'Delay']);
});

test('each is counted, by the attribute that was meant and never by the name that was written', async (t) => {
  const sdk = registerSdk();
  t.after(() => sdk.close());
  const { deliver } = world({ applied: ['inOrder'], expectsSequence: true });
  for (const attributes of [{ dedupID: 'x' }, { 'dedup-id': 'x', delay: '5' }]) await deliver(attributes);
  const points = await sdk.points('pubsub_guarantees.attributes.suspicious');
  const counted = points.map(({ attributes, value }) => [
    attributes['pubsub_guarantees.reason'],
    attributes['pubsub_guarantees.answer'],
    value,
  ]);
  assert.deepEqual(counted, [
    ['dedupId', 'misspelled', 2],
    ['sequence', 'missing', 2],
    ['delay', 'not_applied', 1],
  ]);
});

test('strict: such messages are dead letters that name the attribute, and nothing else is', async () => {
  const { deliver, passed, names } = world({ strict: true, expectsSequence: true, applied: ['inOrder'] });
  for (const [attributes, text] of [
    [{ dedupID: 'x', sequence: '1' }, /dedupID.*accepted: dedupId/],
    [{ delay: '60', sequence: '1' }, /attribute delay asks/],
    [{ tenant: 'a' }, /attribute sequence is missing/],
  ] as const) {
    const outcome = await deliver(attributes);
    assert.ok(outcome.kind === 'deadLetter');
    assert.equal(codeOf(outcome.error), 'ATTRIBUTE_REFUSED');
    assert.match(textOf(outcome.error), text);
  }
  assert.deepEqual(await deliver({ sequence: '1', tenant: 'a' }), ack());
  assert.deepEqual([passed.length, names()], [1, []]);
});

test('a sequence that is expected and not applied is refused at the start: each message would be suspicious', () => {
  assert.throws(
    () => checkAttributes({ applied: ['later'], expectsSequence: true }),
    refusal(
      'expectsSequence',
      /^expectsSequence is true and applied \["later"\]; accepted: applied with inOrder/,
    ),
  );
});
