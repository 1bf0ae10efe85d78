/**
 * Choreography over a store of traces: orders, stock and payment react to each other's events, with every message in the
 * test's hands.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { contextFor } from '../context.ts';
import { inbox } from '../dedup/inbox.ts';
import { compose, type Handler } from '../handler.ts';
import type { OutgoingMessage } from '../message.ts';
import { ack } from '../outcome.ts';
import type { Publisher } from '../publish/publisher.ts';
import type { Ground } from '../testing/saga-ground.ts';
import { correlated, type CorrelatedHandler } from './correlated.ts';
import { sagaTraces, type TraceNode } from './traces.ts';

const event = (topic: string): OutgoingMessage => ({ topic, data: Buffer.from('{}'), attributes: {} });

export function choreographyContract<Tx>(name: string, start: () => Promise<Ground<Tx>>): void {
  describe(`choreography, ${name}`, () => {
    let ground: Ground<Tx>;
    before(async () => {
      ground = await start();
    });
    after(() => ground.close());

    const scene = () => {
      const posted: OutgoingMessage[] = [];
      const publisher: Publisher = {
        async publish(message) {
          posted.push(message);
          return String(posted.length);
        },
      };
      const serving = (handler: CorrelatedHandler<Tx>): Handler => {
        const own = correlated({ traces: ground.traces, records: ground.records })(handler);
        return compose(inbox(ground.inbox, { publisher, clock: ground.clock })(own), []);
      };
      const add = async (transaction: Tx, id: string, amount: number): Promise<void> =>
        ground.set(transaction, `stock/${id}`, (await ground.get(transaction, `stock/${id}`)) + amount);
      const handlers: Readonly<Record<string, Handler>> = {
        'order-placed': serving(async (_message, { transaction, correlation }) => {
          const reserve = await correlation.step('reserve');
          if (reserve.state !== 'new') return ack();
          await add(transaction, correlation.id, 1);
          reserve.done();
          return ack('handled', [event('stock-reserved')]);
        }),
        'order-cancelled': serving(async (_message, { transaction, correlation }) => {
          const reserve = await correlation.step('reserve');
          if (reserve.state === 'new') reserve.cancelled();
          if (reserve.state === 'done') {
            await add(transaction, correlation.id, -1);
            reserve.undone();
          }
          correlation.end('compensated');
          return ack();
        }),
        'stock-reserved': serving(async (_message, { correlation }) => {
          correlation.end('completed');
          return ack('handled', [event('paid')]);
        }),
      };
      const deliver = async (message: OutgoingMessage): Promise<string> => {
        const topic = message.topic.split('/').at(-1) ?? '';
        const received = {
          id: randomUUID(),
          data: Buffer.from(message.data),
          attributes: message.attributes,
          publishTime: new Date(ground.now()),
        };
        const consumer = topic === 'stock-reserved' ? 'payment' : 'stock';
        const handler = handlers[topic];
        assert.ok(handler, topic);
        const outcome = await ground.until(handler(received, contextFor(ground.clock, { consumer })));
        return outcome.kind === 'ack' ? outcome.reason : String((outcome.error as Error).message);
      };
      const id = `order-${randomUUID()}`;
      const placed: OutgoingMessage = { ...event('order-placed'), attributes: { dedupId: id } };
      const cancelled: OutgoingMessage = {
        ...event('order-cancelled'),
        attributes: { dedupId: `cancel ${id}`, correlationId: id, causationId: id },
      };
      const stock = (): Promise<number> => ground.read(`stock/${id}`);
      return { posted, deliver, id, placed, cancelled, stock, traces: sagaTraces(ground.traces) };
    };
    const shape = ({ consumer, sent, caused }: TraceNode): unknown => [
      consumer,
      sent,
      caused.map((node) => shape(node)),
    ];

    test('what a handler publishes names its action and its cause', async () => {
      const { deliver, placed, posted, id } = scene();
      assert.equal(await deliver(placed), 'handled');
      const [reserved] = posted;
      const { correlationId, causationId, dedupId } = reserved?.attributes ?? {};
      assert.deepEqual([correlationId, causationId], [id, id]);
      assert.ok(reserved && dedupId);
      await deliver(reserved);
      assert.deepEqual(
        [posted[1]?.attributes['correlationId'], posted[1]?.attributes['causationId']],
        [id, dedupId],
      );
    });

    test('what was handled is a tree, and a copy is in it once', async () => {
      const { deliver, placed, posted, id, traces } = scene();
      await deliver(placed);
      assert.equal(await deliver(placed), 'duplicate');
      const open = await traces.of(id);
      assert.deepEqual(
        [open?.end, open?.messages.map(shape)],
        [undefined, [['stock', ['stock-reserved'], []]]],
      );
      await deliver(posted[0] as OutgoingMessage);
      const view = await traces.of(id);
      assert.deepEqual(view?.messages.map(shape), [
        ['stock', ['stock-reserved'], [['payment', ['paid'], []]]],
      ]);
      assert.equal(view?.end, 'completed');
      assert.ok(view.beganAt && view.endedAt && view.endedAt >= view.beganAt);
      assert.equal(await traces.of('no such action'), undefined);
    });

    test('S4: a compensating event that overtakes its event leaves a tombstone', async () => {
      const { deliver, placed, cancelled, posted, id, stock, traces } = scene();
      await deliver(cancelled);
      assert.equal(await deliver(placed), 'handled');
      assert.deepEqual([await stock(), posted], [0, []]);
      assert.equal((await traces.of(id))?.end, 'compensated');
    });

    test('S3: a compensating event takes back what was done, once', async () => {
      const { deliver, placed, cancelled, stock } = scene();
      await deliver(placed);
      assert.equal(await stock(), 1);
      await deliver(cancelled);
      await deliver({ ...cancelled, attributes: { ...cancelled.attributes, dedupId: randomUUID() } });
      await deliver({
        ...placed,
        attributes: { dedupId: randomUUID(), correlationId: cancelled.attributes['correlationId'] ?? '' },
      });
      assert.equal(await stock(), 0);
    });

    test('an action without an end is found by its age, and one with an end is not', async () => {
      const stuck = scene();
      const whole = scene();
      const { traces } = stuck;
      for (const { deliver, placed } of [stuck, whole]) await deliver(placed);
      await whole.deliver(whole.posted[0] as OutgoingMessage);
      const openIds = async (): Promise<readonly string[]> => {
        const found: string[] = [];
        let pageToken: string | undefined;
        do {
          const page = await traces.open({
            olderThan: '0s',
            pageSize: 1,
            ...(pageToken !== undefined && { pageToken }),
          });
          found.push(...page.open.map(({ correlationId }) => correlationId));
          pageToken = page.nextPageToken;
        } while (pageToken !== undefined);
        return found;
      };
      const found = await openIds();
      assert.equal(new Set(found).size, found.length);
      assert.deepEqual([found.includes(stuck.id), found.includes(whole.id)], [true, false]);
      assert.deepEqual((await traces.open({ olderThan: '1h' })).open, []);
    });

    test('a handler that fails leaves no trace, and nothing begins by it', async () => {
      const id = randomUUID();
      const own = correlated({ traces: ground.traces })(async () => {
        throw new Error('down');
      });
      const handler = compose(inbox(ground.inbox, { clock: ground.clock })(own), []);
      const message = { id, data: Buffer.from(''), attributes: { dedupId: id }, publishTime: new Date() };
      const outcome = await ground.until(handler(message, contextFor(ground.clock, { consumer: 'stock' })));
      assert.equal(outcome.kind, 'retry');
      assert.equal(await sagaTraces(ground.traces).of(id), undefined);
    });
  });
}
