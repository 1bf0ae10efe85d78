import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contextFor } from '../context.ts';
import { inbox } from '../dedup/inbox.ts';
import type { InboxHandler } from '../dedup/inbox-run.ts';
import type { MemoryTransaction } from '../dedup/inbox-memory.ts';
import { codeOf } from '../errors.ts';
import { compose, type Handler } from '../handler.ts';
import type { OutgoingMessage } from '../message.ts';
import type { Outcome } from '../outcome.ts';
import { memoryPublisher } from '../testing/memory-publisher.ts';
import { refusal } from '../testing/refusal.ts';
import { memoryGround } from '../testing/saga-ground.ts';
import { defineSaga } from './definition.ts';
import { orchestrator } from './orchestrator.ts';
import { outsideParticipant } from './outside-participant.ts';
import { done, participant } from './participant.ts';

const CHARGE = 'projects/billing/topics/charge';
const payment = defineSaga('payment', { version: 1, deadline: '1h' }).retriable('charge', {
  topic: CHARGE,
  do: () => ({}),
});
const steps = { charge: { do: async () => done() } };
const said = (outcome: Outcome): string => (outcome.kind === 'ack' ? outcome.reason : codeOf(outcome.error));

/** An orchestrator in the project `orders` and a participant in `billing`, each with a database and a publisher of its own. */
function twoProjects(replyTo: readonly string[]) {
  const serve = (
    project: string,
    handlerOf: (ground: ReturnType<typeof memoryGround>) => InboxHandler<MemoryTransaction>,
  ) => {
    const ground = memoryGround();
    const publisher = memoryPublisher();
    const { clock } = ground;
    const handler: Handler = compose(
      inbox(ground.inbox, { publisher, clock, projectId: project })(handlerOf(ground)),
      [],
    );
    let ids = 0;
    const deliver = ({ data, attributes }: OutgoingMessage): Promise<Outcome> => {
      const { deliverAt: _applied, ...rest } = attributes;
      const message = {
        id: String((ids += 1)),
        data: Buffer.from(data),
        attributes: rest,
        publishTime: new Date(clock.now()),
      };
      return ground.until(handler(message, contextFor(clock, { consumer: project })));
    };
    return { ground, publisher, deliver };
  };
  const orders = serve('orders', ({ store }) =>
    orchestrator(store, [payment], { topic: 'saga', projectId: 'orders' }),
  );
  const billing = serve('billing', ({ records }) =>
    participant(records, { replyTo, projectId: 'billing', steps }),
  );
  return { orders, billing };
}

test('an orchestrator and a participant of two projects: the command names its reply’s topic in the project of the orchestrator', async () => {
  const { orders, billing } = twoProjects(['projects/orders/topics/saga']);
  assert.equal(said(await orders.deliver(payment.start('i', {}, { topic: 'saga' }))), 'handled');
  const sent = orders.publisher.published;
  const command = sent.find(({ topic }) => topic === CHARGE);
  assert.ok(command !== undefined);
  assert.equal(command.attributes['replyTo'], 'projects/orders/topics/saga');
  // What it sends to itself goes there as well.
  assert.deepEqual(new Set(sent.map(({ topic }) => topic)), new Set([CHARGE, 'projects/orders/topics/saga']));
  assert.equal(said(await billing.deliver(command)), 'handled');
  const [reply] = billing.publisher.published;
  assert.equal(reply?.topic, 'projects/orders/topics/saga');
  assert.equal(said(await orders.deliver(reply)), 'handled');
  const { instance } = await orders.ground.store.read({ consumer: 'orders', saga: 'payment', id: 'i' });
  assert.equal(instance?.state, 'completed');
});

test('an ID on the list of a participant is a topic of its own project: a topic of that ID in another one gets no reply', async () => {
  const { orders, billing } = twoProjects(['saga']);
  await orders.deliver(payment.start('i', {}, { topic: 'saga' }));
  const command = orders.publisher.published.find(({ topic }) => topic === CHARGE);
  assert.ok(command !== undefined);
  assert.equal(said(await billing.deliver(command)), 'SAGA_REPLY_TOPIC_REFUSED');
  for (const replyTo of ['saga', 'projects/billing/topics/saga']) {
    const own: OutgoingMessage = {
      ...command,
      attributes: { ...command.attributes, replyTo, dedupId: replyTo },
    };
    assert.equal(said(await billing.deliver(own)), 'handled', replyTo);
    assert.equal(billing.publisher.published.at(-1)?.topic, 'projects/billing/topics/saga');
  }
});

test('a topic whose project is not known is refused at the start, and so is what is no topic', () => {
  const { store, records } = memoryGround();
  const unknown = { project: () => undefined };
  const orchestrate = (topic: string, more: object = {}, own = {}) =>
    orchestrator({ ...store, ...own }, [payment], { topic, ...more });
  const parts = (topic: string, own = {}) => [
    () => participant({ ...records, ...own }, { replyTo: ['projects/p/topics/t', topic], steps }),
    () => outsideParticipant({ ...records, ...own }, { replyTo: ['projects/p/topics/t', topic], steps: {} }),
  ];
  assert.throws(() => orchestrate('saga', {}, unknown), refusal('topic', /an ID together with projectId/));
  assert.throws(
    () => orchestrate('orders/saga'),
    refusal('topic', /an ID, or projects\/PROJECT\/topics\/ID$/),
  );
  for (const part of parts('saga', unknown))
    assert.throws(part, refusal('replyTo[1]', /an ID together with projectId/));
  for (const part of parts('orders/saga')) assert.throws(part, refusal('replyTo[1]'));
  orchestrate('saga', { projectId: 'orders' }, unknown);
  orchestrate('projects/orders/topics/saga', {}, unknown);
  for (const part of parts('projects/orders/topics/saga', unknown)) part();
});
