/**
 * What in-order delivery does over every stream store: shuffled streams, poison, gaps, and an operator. Consumers are
 * named at random, so a store may be shared and need not be empty.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import { contextFor } from '../context.ts';
import { type Clock, sleep, systemClock } from '../clock.ts';
import { PermanentError } from '../errors.ts';
import { compose, type Context, type Handler } from '../handler.ts';
import type { Message } from '../message.ts';
import { ack, deadLetter } from '../outcome.ts';
import type { OpenedStreams } from './contract.ts';
import { orderedDelivery } from './in-order.ts';
import type { StreamRef } from './stream-store.ts';

const SOURCE = 'projects/p/subscriptions/s';

export function deliveryContract(name: string, open: () => Promise<OpenedStreams>): void {
  suite(`in-order delivery over the stream store: ${name}`, () => {
    const clock = systemClock();
    let opened: OpenedStreams;
    before(async () => {
      opened = await open();
    });
    after(() => opened.close());
    const store = (): OpenedStreams['store'] => opened.store;

    const numbers = async (ref: StreamRef, from: number): Promise<number[]> =>
      (await store().held(ref, from, 100)).map(({ number }) => number);

    test('poison blocks its stream and a gap is passed, and a resumed stream goes on in order', async () => {
      const consumer = randomUUID();
      const ran: string[] = [];
      let isBad = true;
      const handler: Handler = async (message) => {
        ran.push(message.attributes.sequence ?? '');
        return isBad ? deadLetter(new PermanentError('BAD', 'never')) : ack();
      };
      const options = { clock, lease: '2s', onGap: 'skip', gap: { timeout: '1s' } } as const;
      const streams = orderedDelivery(store(), options);
      const deliver = compose(handler, [streams.middleware]);
      const sweep = streams.sweep(handler);
      const ref = { consumer, source: SOURCE, key: 'k' };
      const context = contextOf(clock, consumer);
      for (const number of [1, 2, 5])
        assert.equal((await deliver(messageAs('k', number), context)).kind, 'ack');
      await sweep(context);
      const { inspect, resume } = streams;
      const blocked = await inspect(ref);
      assert.deepEqual(
        [blocked?.status, blocked?.poison?.code, blocked?.held, ran],
        ['blocked', 'BAD', 3, ['1']],
      );
      isBad = false;
      assert.equal(await resume(ref), true);
      const enough = clock.monotonic() + 20_000;
      while ((await inspect(ref))?.last !== 5 && clock.monotonic() < enough) {
        await sweep(context);
        await sleep(clock, 200);
      }
      assert.deepEqual(ran, ['1', '1', '2', '5']);
      const { state } = await store().read(ref);
      assert.deepEqual(
        [state?.skipped, state?.blocked, state?.readyAt, state?.held],
        [[{ from: 3, to: 4 }], null, null, 0],
      );
      const late = await deliver(messageAs('k', 3), context);
      assert.equal(late.kind, 'deadLetter');
    });

    test('three processes run shuffled and repeated messages of three streams in order', async () => {
      const consumer = randomUUID();
      const keys = ['x', 'y', 'z'];
      const ran = new Map<string, number[]>(keys.map((key) => [key, []]));
      const handler: Handler = async (message) => {
        ran.get(message.attributes.sequenceKey ?? '')?.push(Number(message.attributes.sequence));
        await sleep(clock, 1);
        return ack();
      };
      const options = { clock, lease: '2s', retry: { min: '100ms' } } as const;
      const processes = [1, 2, 3].map(() => orderedDelivery(store(), options));
      const chains = processes.map(({ middleware }) => compose(handler, [middleware]));
      const all = Array.from({ length: 12 }, (_, index) =>
        keys.map((key) => [key, ((index * 7) % 12) + 1] as const),
      );
      const enough = clock.monotonic() + 30_000;
      const deliver = async (key: string, number: number): Promise<void> => {
        for (let attempt = 0; clock.monotonic() < enough; attempt += 1) {
          const chain = chains[(number + attempt) % 3];
          const outcome = await chain?.(messageAs(key, number), contextOf(clock, consumer));
          if (outcome?.kind === 'ack') return;
          await sleep(clock, 100);
        }
        assert.fail(`${key} ${number} was never acknowledged`);
      };
      await Promise.all(all.flat().map(([key, number]) => deliver(key, number)));
      await Promise.all(keys.map((key) => deliver(key, 3)));
      const sweep = processes[0]?.sweep(handler);
      // A stream is left to the sweep where a server abandoned a call of its worker.
      while ([...ran.values()].some((numbers) => numbers.length < 12) && clock.monotonic() < enough) {
        await sweep?.(contextOf(clock, consumer));
        await sleep(clock, 100);
      }
      for (const key of keys) {
        const inTurn = Array.from({ length: 12 }, (_, index) => index + 1);
        const firsts = [...new Set(ran.get(key))];
        assert.deepEqual(firsts, inTurn, key);
        const { state } = await store().read({ consumer, source: SOURCE, key });
        assert.deepEqual([state?.last, state?.lease, state?.readyAt], [12, null, null]);
        assert.deepEqual(await numbers({ consumer, source: SOURCE, key }, 1), []);
      }
    });
  });
}

const messageAs = (key: string, number: number): Message => ({
  id: `${key}${number}`,
  data: Buffer.from(`${number}`),
  attributes: { sequence: String(number), sequenceKey: key },
  publishTime: new Date(0),
});

const contextOf = (clock: Clock, consumer: string): Context =>
  contextFor(clock, { consumer, source: SOURCE });
