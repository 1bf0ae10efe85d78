/**
 * The rules of sagas, each as its interleaving, with the real orchestrator and participants over the stores under test.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { compose } from '../handler.ts';
import { defineSaga } from './definition.ts';
import { isParked, problemsOf } from './instance.ts';
import { orchestrator } from './orchestrator.ts';
import { outsideParticipant } from './outside-participant.ts';
import { done } from './participant.ts';
import { publishing } from '../publish/publishing.ts';
import type { Ground } from '../testing/saga-ground.ts';
import { stage } from '../testing/saga-stage.ts';

type Order = Readonly<{ id: string }>;

const body = ({ id }: Order) => ({ id });
const own = (topic: string) =>
  ({ topic, do: body, undo: body, replyTimeout: '10s', maxAttempts: 2 }) as const;

/** credit → stock → charge (pivot) → ship. */
const order = defineSaga<Order>('order', { version: 1, deadline: '30m' })
  .compensable('credit', own('credit'))
  .compensable('stock', own('stock'))
  .pivot('charge', { topic: 'charge', do: body, replyTimeout: '1m', maxAttempts: 2 })
  .retriable('ship', { topic: 'ship', do: body, replyTimeout: '1m' });

/** first, then a, b and c side by side. */
const groups = defineSaga<Order>('groups', { version: 1 })
  .compensable('first', own('first'))
  .compensableGroup({ a: own('a'), b: own('b'), c: own('c') });

export function sagaRules<Tx>(name: string, start: () => Promise<Ground<Tx>>): void {
  describe(`the rules of sagas, ${name}`, () => {
    let ground: Ground<Tx>;
    before(async () => {
      ground = await start();
    });
    after(() => ground.close());

    /** An order up to where `do step #1` waits. */
    const upTo = async (step: string) => {
      const id = randomUUID();
      const play = stage(ground, [order]);
      play.start(order, id);
      while (!play.waiting().includes(`do ${step} #1`)) await play.deliver(play.waiting()[0] ?? 'nothing');
      return { id, play, state: async () => (await play.instance('order', id)).state };
    };
    const effects = async (play: Awaited<ReturnType<typeof upTo>>['play'], id: string) =>
      Promise.all(['credit', 'stock', 'charge', 'ship'].map((step) => play.effect(step, id)));

    test('a saga is completed with each effect once, or compensated with none', async () => {
      const one = await upTo('credit');
      await one.play.flow();
      assert.deepEqual([await one.state(), await effects(one.play, one.id)], ['completed', [1, 1, 1, 1]]);
      const other = await upTo('charge');
      other.play.refusing.add('charge');
      await other.play.flow();
      assert.deepEqual(
        [await other.state(), await effects(other.play, other.id)],
        ['compensated', [0, 0, 0, 0]],
      );
    });

    test('S1: a commit that is refused publishes nothing and changes nothing', async () => {
      const { id, play } = await upTo('credit');
      await play.deliver('do credit #1');
      const inner = orchestrator(ground.store, [order], { topic: 'saga' });
      const dies = play.inInbox(async (message, context) => {
        await inner(message, context);
        throw new Error('died before its commit');
      });
      const reply = play.find('credit done');
      const ticks = play.posted.length;
      const outcome = await ground.until(
        dies(
          { ...reply, data: Buffer.from(reply.data), id: '1', publishTime: new Date() },
          play.context(play.consumer),
        ),
      );
      assert.equal(outcome.kind, 'retry');
      assert.equal(play.posted.length, ticks);
      assert.equal((await play.instance('order', id)).steps['credit']?.status, 'doing');
      await play.flow();
      assert.deepEqual(await effects(play, id), [1, 1, 1, 1]);
    });

    test('S2, S2b: the next attempt of a step that is done is answered again, and does nothing', async () => {
      const { id, play } = await upTo('credit');
      await play.deliver('do credit #1');
      const lost = play.lose('credit done');
      await play.tickUntilSent();
      assert.deepEqual(play.waiting(), ['do credit #2']);
      await play.deliver('do credit #2');
      const again = play.find('credit done');
      assert.deepEqual(again.data, lost.data, 'the stored reply');
      assert.notEqual(again.attributes['dedupId'], lost.attributes['dedupId']);
      await play.flow();
      assert.deepEqual(await effects(play, id), [1, 1, 1, 1]);
    });

    test('S3: a step whose reply is lost is undone like one that is done', async () => {
      const { id, play, state } = await upTo('stock');
      await play.deliver('do stock #1');
      play.lose('stock done');
      await play.tickUntilSent();
      await play.deliver('do stock #2');
      play.lose('stock done');
      await play.tickUntilSent();
      assert.deepEqual(play.waiting(), ['undo stock #1']);
      await play.flow();
      assert.deepEqual([await state(), await effects(play, id)], ['compensated', [0, 0, 0, 0]]);
    });

    test('S4: an undo that overtakes its do leaves a tombstone, and the late do has no effect', async () => {
      const { id, play, state } = await upTo('stock');
      const late = play.lose('do stock #1');
      await play.tickUntilSent();
      const later = play.lose('do stock #2');
      await play.tickUntilSent();
      await play.deliver('undo stock #1');
      assert.equal(await play.copy(late), 'handled');
      assert.equal(await play.copy(later), 'handled');
      assert.deepEqual(play.waiting(), ['stock undone', 'stock cancelled', 'stock cancelled']);
      await play.flow();
      assert.deepEqual([await state(), await effects(play, id)], ['compensated', [0, 0, 0, 0]]);
    });

    test('S5: the tick that is being handled sets the next timer, with an arm of its own', async () => {
      const { play } = await upTo('credit');
      play.lose('do credit #1');
      await play.tickUntilSent();
      const arms = play.posted.filter(({ attributes }) => attributes['sagaArm'] !== undefined);
      assert.equal(arms.length, 1);
      await play.flow();
      assert.ok(play.delivered().includes('ship done'));
    });

    test('S5b: a tick that finds nothing due asks for the next one', async () => {
      const { id, play } = await upTo('credit');
      await ground.pass(1_000);
      await play.deliver('do credit #1');
      await play.deliver('credit done');
      play.lose('do stock #1');
      assert.equal(await play.tick(), 'handled');
      assert.deepEqual(play.waiting(), []);
      await play.tickUntilSent();
      assert.deepEqual(play.waiting(), ['do stock #2']);
      await play.flow();
      assert.deepEqual(await effects(play, id), [1, 1, 1, 1]);
    });

    test('S6: a late tick of another arm is stale, and times out nothing', async () => {
      const { id, play } = await upTo('credit');
      play.lose('do credit #1');
      const [first] = play.posted;
      assert.ok(first);
      await play.tickUntilSent();
      assert.equal(await play.copy(first), 'duplicate');
      assert.equal(await play.copy(first, { dedupId: randomUUID() }), 'stale');
      await play.flow();
      assert.deepEqual(await effects(play, id), [1, 1, 1, 1]);
    });

    test('S7: the sweep goes on where a tick was lost', async () => {
      const { id, play } = await upTo('credit');
      play.lose('do credit #1');
      play.lose('tick 1');
      assert.deepEqual(await play.sweep(), { due: 0, done: 0, failed: 0, isWhole: true });
      await ground.pass(140_000);
      assert.deepEqual(await play.sweep(), { due: 1, done: 1, failed: 0, isWhole: true });
      assert.equal(await play.deliver('tick sweep'), 'handled');
      await play.flow();
      assert.deepEqual(await effects(play, id), [1, 1, 1, 1]);
    });

    test('S8: a reply that comes twice, or late, is acknowledged as stale', async () => {
      const { id, play, state } = await upTo('credit');
      await play.deliver('do credit #1');
      const reply = play.find('credit done');
      await play.deliver('credit done');
      assert.equal(await play.copy(reply), 'duplicate');
      assert.equal(await play.copy(reply, { dedupId: randomUUID() }), 'stale');
      assert.equal(await play.copy(reply, { dedupId: randomUUID(), sagaStep: 'ship' }), 'stale');
      await play.flow();
      assert.deepEqual([await state(), await effects(play, id)], ['completed', [1, 1, 1, 1]]);
      assert.equal(await play.copy(reply, { dedupId: randomUUID() }), 'stale', 'it has ended');
    });

    test('S9: a pivot in doubt that never came is withdrawn, and its late do has no effect', async () => {
      const { id, play, state } = await upTo('charge');
      const late = play.lose('do charge #1');
      await play.tickUntilSent();
      play.lose('do charge #2');
      await play.tickUntilSent();
      assert.deepEqual(play.waiting(), ['withdraw charge #1']);
      await play.deliver('withdraw charge #1');
      assert.equal(await play.copy(late), 'handled');
      await play.flow();
      assert.deepEqual([await state(), await effects(play, id)], ['compensated', [0, 0, 0, 0]]);
    });

    test('S9: a pivot in doubt that is done is found to be done, and the saga goes on', async () => {
      const { id, play, state } = await upTo('charge');
      await play.deliver('do charge #1');
      play.lose('charge done');
      assert.equal((await ask(play, id)).answer, 'asked');
      await play.flow();
      assert.deepEqual([await state(), await effects(play, id)], ['completed', [1, 1, 1, 1]]);
    });

    test('S10: after the pivot deadline and cancel have no effect, and ship is repeated', async () => {
      const { id, play, state } = await upTo('ship');
      play.lose('do ship #1');
      assert.equal((await ask(play, id)).answer, 'tooLate');
      await ground.pass(31 * 60_000);
      await play.tickUntilSent();
      assert.equal((await play.instance('order', id)).late, true);
      await play.flow();
      assert.deepEqual([await state(), await effects(play, id)], ['completed', [1, 1, 1, 1]]);
    });

    test('S11: groups are undone from the last to the first, each as a whole', async () => {
      const id = randomUUID();
      const play = stage(ground, [groups]);
      play.refusing.add('a');
      play.start(groups, id);
      await play.deliver('start');
      await play.deliver('do first #1');
      await play.deliver('first done');
      await play.deliver('do b #1');
      await play.deliver('b done');
      await play.deliver('do a #1');
      const c = play.lose('do c #1');
      await play.deliver('a refused');
      assert.deepEqual(play.waiting(), ['undo b #1', 'undo c #1']);
      await play.deliver('undo b #1');
      await play.deliver('b undone');
      assert.deepEqual(play.waiting(), ['undo c #1'], 'first waits for c');
      await play.deliver('undo c #1');
      await play.copy(c);
      await play.flow();
      assert.equal((await play.instance('groups', id)).state, 'compensated');
      for (const step of ['first', 'a', 'b', 'c']) assert.equal(await play.effect(step, id), 0, step);
    });

    test('S12: an undo whose messages are lost is sent again until it is answered', async () => {
      const { id, play, state } = await upTo('charge');
      play.refusing.add('charge');
      await play.deliver('do charge #1');
      await play.deliver('charge refused');
      play.lose('undo stock #1');
      await play.tickUntilSent();
      await play.deliver('undo stock #2');
      play.lose('stock undone');
      await play.tickUntilSent();
      assert.deepEqual(play.waiting(), ['undo stock #3']);
      await play.flow();
      assert.deepEqual([await state(), await effects(play, id)], ['compensated', [0, 0, 0, 0]]);
    });

    test('S13: a refusal of a compensable step is given again, although it would be accepted by now', async () => {
      const { id, play, state } = await upTo('stock');
      play.refusing.add('stock');
      await play.deliver('do stock #1');
      play.lose('stock refused');
      play.refusing.delete('stock');
      await play.tickUntilSent();
      await play.deliver('do stock #2');
      await play.flow();
      assert.deepEqual([await state(), await effects(play, id)], ['compensated', [0, 0, 0, 0]]);
    });

    test('S13: a refusal of a retriable step or an undo parks the instance, until it is accepted', async () => {
      const { id, play, state } = await upTo('ship');
      play.refusing.add('ship');
      await play.flow();
      assert.deepEqual(problemsOf(await play.instance('order', id)), ['ship: REFUSED NO']);
      const { sagas: parked } = await ground.until(play.sagas.list({ parked: true }));
      assert.ok(parked.some((one) => one.id === id));
      play.refusing.delete('ship');
      await play.tickUntilSent();
      await play.flow();
      assert.deepEqual([await state(), await effects(play, id)], ['completed', [1, 1, 1, 1]]);
    });

    test('S14: a call that was made by a process that died is made again by its key, and never undone unseen', async () => {
      const { play, state } = await upTo('charge');
      const charged = new Map<string, number>();
      let isDying = true;
      const charge = outsideParticipant(ground.records, {
        replyTo: ['saga'],
        steps: {
          charge: {
            async call(_body, { saga }) {
              charged.set(saga.key, 1);
              if (isDying) throw new Error('died before its record');
              return done({ receipt: 1 });
            },
          },
        },
      });
      play.handlers.set('charge', compose(charge, [publishing(play.publisher)]));
      assert.match(await play.deliver('do charge #1'), /^retry/);
      await play.tickUntilSent();
      play.lose('do charge #2');
      await play.tickUntilSent();
      assert.match(await play.copy(play.find('withdraw charge #1')), /^retry/, 'nothing is known yet');
      isDying = false;
      await play.flow();
      assert.deepEqual([await state(), charged.size], ['completed', 1]);
    });

    test('S15: a process that does not know the version answers retry, and writes nothing', async () => {
      const { id, play } = await upTo('credit');
      await play.deliver('do credit #1');
      const newer = defineSaga<Order>('order', { version: 2 }).retriable('other', {
        topic: 'other',
        do: body,
      });
      const old = stage(ground, [newer], play.consumer);
      const reply = play.find('credit done');
      const before = await play.instance('order', id);
      assert.equal(await old.copy(reply), 'retry SAGA_VERSION_UNKNOWN');
      assert.deepEqual([await play.instance('order', id), old.waiting()], [before, []]);
      await play.flow();
      assert.deepEqual(await effects(play, id), [1, 1, 1, 1], 'it goes on under its own plan');
    });

    test('S16: cancel says what is certain, and the same each time', async () => {
      const { id, play, state } = await upTo('stock');
      const call = randomUUID();
      assert.deepEqual(await ask(play, id, call), { call, answer: 'cancelling' });
      await play.flow();
      assert.equal(await state(), 'compensated');
      assert.deepEqual(await ask(play, id, call), { call, answer: 'cancelling' });
      assert.deepEqual(await effects(play, id), [0, 0, 0, 0]);
      assert.equal((await ask(play, randomUUID())).answer, 'unknown');
    });

    test('S17: a start that comes twice starts once, and with other data is a dead letter', async () => {
      const { id, play } = await upTo('credit');
      const again = { ...order.start(id, { id }, { topic: 'saga' }) };
      assert.equal(await play.copy(again), 'duplicate');
      assert.equal(await play.copy(again, { dedupId: randomUUID() }), 'stale');
      const other = { ...again, data: Buffer.from('{"id":"other"}') };
      assert.equal(await play.copy(other, { dedupId: randomUUID() }), 'deadLetter SAGA_ID_CONFLICT');
      await play.flow();
      assert.deepEqual(await effects(play, id), [1, 1, 1, 1]);
    });

    test('S17: two replies of a group that arrive together are both counted', async () => {
      const id = randomUUID();
      const play = stage(ground, [groups]);
      play.start(groups, id);
      for (const one of ['start', 'do first #1', 'first done', 'do a #1', 'do b #1', 'do c #1'])
        await play.deliver(one);
      const answers = await play.race('a done', 'b done', 'c done');
      assert.deepEqual(answers, ['handled', 'handled', 'handled']);
      assert.equal((await play.instance('groups', id)).state, 'completed');
    });

    test('S18: where the record of a done step is lost, the saga is parked and never silently wrong', async () => {
      const { id, play, state } = await upTo('charge');
      play.refusing.add('charge');
      await ground.forget({ consumer: 'stock', saga: 'order', id, step: 'stock' });
      await play.flow();
      const parked = await play.instance('order', id);
      assert.deepEqual([parked.state, problemsOf(parked)], ['compensating', ['stock: RECORD_MISSING']]);
      assert.equal(await play.effect('stock', id), 1, 'what stands is not called undone');
      const settle = { outcome: 'undone', reason: 'taken back by hand' } as const;
      const settled = play.sagas.settle('order', id, 'stock', settle);
      await handleNext(play);
      assert.equal((await ground.until(settled)).answer, 'settled');
      await play.flow();
      assert.deepEqual([await state(), isParked(await play.instance('order', id))], ['compensated', false]);
    });

    test('S19: the tick of a saga that has ended is acknowledged, and arms nothing', async () => {
      const { id, play } = await upTo('credit');
      await play.flow();
      const before = await play.instance('order', id);
      assert.equal(await play.tick(), 'stale');
      assert.deepEqual([await play.instance('order', id), play.posted.length], [before, 0]);
    });

    test('S20: the sweep goes on for a timer that is late, whose tick is stale then', async () => {
      const { play } = await upTo('credit');
      play.lose('do credit #1');
      const late = play.lose('tick 1');
      await ground.pass(140_000);
      await play.sweep();
      await play.deliver('tick sweep');
      assert.equal(await play.copy(late), 'stale');
      assert.deepEqual(play.waiting(), ['do credit #2']);
    });

    /** An operator's cancel, with the orchestrator at work. */
    const ask = async (play: Awaited<ReturnType<typeof upTo>>['play'], id: string, call?: string) => {
      const asked = play.sagas.cancel('order', id, call === undefined ? {} : { call });
      await handleNext(play, 'cancel');
      return ground.until(asked);
    };
    /** What an operator has just published, if anything. */
    const handleNext = async (
      play: Awaited<ReturnType<typeof upTo>>['play'],
      named?: string,
    ): Promise<void> => {
      for (let turn = 0; turn < 1_000 && !play.waiting().some((one) => one === (named ?? one)); turn += 1)
        await new Promise((resolve) => setImmediate(resolve));
      const next = play.waiting().find((one) => one === (named ?? one));
      if (next !== undefined) await play.deliver(next);
    };
  });
}
