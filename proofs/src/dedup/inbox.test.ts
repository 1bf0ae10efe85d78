import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sleep } from '../../../shared/src/clock.ts';
import { codeOf, PermanentError, storeUnavailable, TransientError } from '../../../shared/src/errors.ts';
import { compose } from '../../../shared/src/handler.ts';
import { ack, deadLetter, type Outcome } from '../../../shared/src/outcome.ts';
import type { OutgoingMessage } from '../../../shared/src/message.ts';
import { memoryPublisher, virtualClock } from '../../../shared/src/testing/index.ts';
import { inbox, type InboxOptions } from '../../../shared/src/dedup/inbox.ts';
import { memoryInbox, type MemoryTransaction, type Network } from '../../../shared/src/dedup/inbox-memory.ts';
import type { InboxHandler } from '../../../shared/src/dedup/inbox-run.ts';
import { memoryClaims } from '../../../shared/src/dedup/memory.ts';
import { relay } from '../../../shared/src/outbox/relay.ts';
import type { Publisher } from '../../../shared/src/publish/publisher.ts';
import { aContext, aMessage, memoryLog } from '../../../shared/src/testing/deliveries.ts';
import { pausable } from '../engine/pausable.ts';
import { refusal } from '../../../shared/src/testing/refusal.ts';

const said = (outcome: Outcome): string => (outcome.kind === 'ack' ? outcome.reason : codeOf(outcome.error));
const aLetter = (text: string): OutgoingMessage => ({ topic: 't', data: Buffer.from(text), attributes: {} });
const textsOf = (messages: readonly OutgoingMessage[]): string[] =>
  messages.map(({ data }) => Buffer.from(data).toString());

function world(network?: Network) {
  const clock = virtualClock();
  const store = memoryInbox({ clock, ...(network && { network }) });
  const start = (handler: InboxHandler<MemoryTransaction>, options: InboxOptions = {}) => {
    const own = pausable(clock);
    const handle = compose(inbox(store, { clock: own, ...options })(handler), []);
    const log = memoryLog();
    const deliver = (id = 'm', fields: Parameters<typeof aMessage>[1] = {}): Promise<Outcome> =>
      handle(aMessage(id, fields), aContext(own, { log }));
    return { ...own, deliver, log };
  };
  return { clock, store, start };
}

/** A network that does something else with the n-th commit. */
const commits = (...faults: readonly (Network | undefined)[]): Network => {
  let count = 0;
  return (request, send) => {
    if (request !== 'commit') return send();
    count += 1;
    return (faults[count - 1] ?? ((_request, same) => same()))(request, send);
  };
};

describe('the inbox', () => {
  test('the handler has transaction, signal and fencing token; the commit is visible afterwards alone', async () => {
    const { clock, store, start } = world();
    const { deliver } = start(async (_message, { transaction, signal, fencingToken }) => {
      transaction.set('a', 1);
      assert.deepEqual(
        [signal.aborted, BigInt(fencingToken ?? 0) > 0n, store.peek('a')],
        [false, true, undefined],
      );
      return ack('stale');
    });
    assert.deepEqual(await clock.until(deliver()), ack('stale'));
    assert.equal(store.peek('a'), 1);
  });

  test('a process that stalls past its lease commits nothing; the process that took over commits once', async () => {
    const { clock, store, start } = world();
    let first = true;
    const work: InboxHandler<MemoryTransaction> = async (_message, { transaction }) => {
      const mine = first ? 'stalled' : 'second';
      first = false;
      if (mine === 'stalled') await sleep(clock, 40_000);
      transaction.set(mine, 10);
      return ack();
    };
    const stalled = start(work);
    const robbed = stalled.deliver();
    await clock.advance(1_000);
    stalled.pause();
    await clock.advance(30_000);
    assert.equal(said(await clock.until(start(work).deliver())), 'handled');
    await clock.advance(10_000);
    stalled.resume();
    assert.equal(said(await clock.until(robbed)), 'LEASE_LOST');
    assert.deepEqual([store.peek('stalled'), store.peek('second')], [undefined, 10]);
  });

  test('a commit that no server answers is abandoned; when it arrives late it is refused', async () => {
    let arrived: unknown;
    const late: Network = async (_request, send) => {
      await sleep(clock, 20_000);
      const ended = await send();
      arrived = ended;
      return ended;
    };
    const { clock, store, start } = world(commits(late));
    let runs = 0;
    const { deliver } = start(async (_message, { transaction }) => {
      runs += 1;
      transaction.set(`run ${runs}`, 10);
      return ack();
    });
    assert.equal(said(await clock.until(deliver())), 'STORE_UNAVAILABLE');
    assert.equal(said(await clock.until(deliver())), 'handled');
    await clock.advance(20_000);
    assert.deepEqual(
      [arrived, store.peek('run 1'), store.peek('run 2'), runs],
      ['refused', undefined, 10, 2],
    );
  });

  test('a commit whose reply is lost is found by its claim: the delivery is acked and its messages leave', async () => {
    const lost: Network = async (_request, send) => {
      await send();
      throw storeUnavailable('the reply was lost');
    };
    const { clock, start } = world(commits(lost, lost));
    const publisher = memoryPublisher();
    let runs = 0;
    const { deliver } = start(async () => ack('handled', [aLetter(`run ${(runs += 1)}`)]), { publisher });
    assert.deepEqual(await clock.until(deliver()), ack());
    assert.deepEqual(textsOf(publisher.published), ['run 1']);
    assert.equal(runs, 1);
  });

  test('B04: a crash between commit and publish: no handler runs again, the messages leave after the lease', async () => {
    const { clock, start } = world();
    let runs = 0;
    const handler: InboxHandler<MemoryTransaction> = async () =>
      ack('handled', [aLetter(`run ${(runs += 1)}`)]);
    const dead = start(handler, { publisher: { publish: () => new Promise<string>(() => {}) } });
    void dead.deliver();
    await clock.advance(1);
    dead.pause();
    const publisher = memoryPublisher();
    const { deliver } = start(handler, { publisher });
    assert.equal(said(await clock.until(deliver())), 'IN_PROGRESS_ELSEWHERE');
    assert.deepEqual(await clock.until(deliver()), ack('duplicate'));
    assert.deepEqual([textsOf(publisher.published), runs], [['run 1'], 1]);
    assert.deepEqual(await clock.until(deliver()), ack('duplicate'));
    assert.equal(publisher.published.length, 1);
  });

  test('a dead letter while the store is down becomes a retry: another delivery may do the work', async () => {
    const clock = virtualClock();
    const store = memoryInbox({ clock });
    const away = { ...store, withdraw: () => Promise.reject(storeUnavailable('down')) };
    const handle = inbox(away, { clock })(async () => deadLetter(new PermanentError('BAD', 'never')));
    const outcome = await clock.until(handle(aMessage('m'), aContext(clock)));
    assert.deepEqual([outcome.kind, said(outcome)], ['retry', 'BAD']);
  });

  test('other data under a completed dedupId is a dead letter, or dropped; never a second effect', async () => {
    const { clock, start } = world();
    const first = start(async () => ack());
    await clock.until(first.deliver('0', { dedupId: 'd', text: 'A' }));
    const other = { dedupId: 'd', text: 'B' };
    assert.equal(said(await clock.until(first.deliver('1', other))), 'DEDUP_CONFLICT');
    const lenient = start(async () => assert.fail('runs'), { onConflict: 'ack' });
    assert.equal(said(await clock.until(lenient.deliver('2', other))), 'duplicate');
  });

  test('B08: two consumers do not share a message', async () => {
    const { clock, store } = world();
    const handle = inbox(store, { clock })(async () => ack());
    for (const consumer of ['bill', 'ship']) {
      assert.deepEqual(await clock.until(handle(aMessage('42'), aContext(clock, { consumer }))), ack());
    }
  });

  test('messages without a publisher, and one that no row can hold, are refused before the commit', async () => {
    const { clock, store, start } = world();
    const sends =
      (letter: OutgoingMessage): InboxHandler<MemoryTransaction> =>
      async (_message, context) => {
        context.transaction.set('done', 1);
        return ack('handled', [letter]);
      };
    const silent = await clock.until(start(sends(aLetter('x'))).deliver());
    assert.deepEqual([silent.kind, said(silent)], ['retry', 'PUBLISHER_MISSING']);
    const large = { topic: 't', data: Buffer.alloc(1_050_000), attributes: {} };
    const refused = await clock.until(start(sends(large), { publisher: memoryPublisher() }).deliver());
    assert.deepEqual(
      [refused.kind, said(refused), store.peek('done')],
      ['deadLetter', 'LIMIT_EXCEEDED', undefined],
    );
  });

  test('a return value that is no outcome, and an option that allows a second effect, are refused', async () => {
    const { clock, store, start } = world();
    const nothing = start((async () => undefined) as unknown as InboxHandler<MemoryTransaction>);
    assert.equal(said(await clock.until(nothing.deliver())), 'NO_OUTCOME');
    for (const name of ['onConflict', 'onStoreUnavailable']) {
      assert.throws(() => inbox(store, { [name]: 'process' }), refusal(name));
    }
    const claimsAlone = memoryClaims({ clock }) as unknown as typeof store;
    assert.throws(() => inbox(claimsAlone), refusal('store'));
  });
});

describe('a relay’s pass over rows that deliveries left behind', () => {
  const LEASE_MS = 30_000;
  const { signal } = new AbortController();

  /** Committed by processes that died before they published. */
  const leftBehind = async (letters: Readonly<Record<string, readonly OutgoingMessage[]>>) => {
    const { clock, store, start } = world();
    for (const [id, messages] of Object.entries(letters)) {
      const never = { publish: () => new Promise<string>(() => {}) };
      const dead = start(async () => ack('handled', messages), { publisher: never });
      void dead.deliver(id);
      await clock.advance(1);
      dead.pause();
    }
    const log = memoryLog();
    const relayed = (publisher: Publisher, pageSize = 25) =>
      relay(store.outbox, publisher, { clock, log, pageSize });
    return { clock, store, log, relayed };
  };

  test('leaves what is leased, then publishes everything in order and removes it', async () => {
    const letters = Object.fromEntries(
      Array.from({ length: 7 }, (_, n) => [`m${n}`, [aLetter(`${n}a`), aLetter(`${n}b`), aLetter(`${n}c`)]]),
    );
    const { clock, store, relayed } = await leftBehind(letters);
    const publisher = memoryPublisher();
    const first = await relayed(publisher).sweep({ signal });
    assert.deepEqual([first.done, first.failed, publisher.published.length], [0, 0, 0]);
    await clock.advance(LEASE_MS);
    const swept = await relayed(publisher, 2).sweep({ signal });
    assert.deepEqual([swept.done, swept.failed, swept.isWhole], [7, 0, true]);
    const texts = textsOf(publisher.published);
    assert.equal(texts.length, 21);
    for (let n = 0; n < 7; n += 1) {
      assert.deepEqual(
        texts.filter((text) => text.startsWith(`${n}`)),
        [`${n}a`, `${n}b`, `${n}c`],
      );
    }
    assert.deepEqual([store.rows().length, (await relayed(publisher).sweep({ signal })).due], [0, 0]);
  });

  for (const pageSize of [1, 2, 100]) {
    test(`B2: one that cannot be published delays the rest of its own message alone, pages of ${pageSize}`, async () => {
      const bad = { ...aLetter('bad'), topic: 'missing' };
      const { clock, store, log, relayed } = await leftBehind({
        x: [aLetter('x')],
        y: [aLetter('y0'), bad, aLetter('y')],
        z: [aLetter('z')],
      });
      await clock.advance(LEASE_MS);
      const published: string[] = [];
      let isMissing = true;
      const publish = async ({ topic, data }: OutgoingMessage): Promise<string> => {
        if (topic.endsWith('/missing') && isMissing) throw new PermanentError('NO_TOPIC', topic);
        published.push(Buffer.from(data).toString());
        return '1';
      };
      const relay = relayed({ publish }, pageSize);
      const swept = await relay.sweep({ signal });
      assert.deepEqual([swept.done, swept.failed], [2, 1]);
      assert.deepEqual([published.toSorted(), log.events()], [['x', 'y0', 'z'], ['outbox_failed']]);
      // It is listed, and costs no pass anything until an operator puts it back.
      const { rows } = await relay.listFailures();
      assert.deepEqual(
        rows.map(({ code }) => code),
        ['NO_TOPIC'],
      );
      await clock.advance(600_000);
      assert.deepEqual([(await relay.sweep({ signal })).due, store.rows().length], [0, 2]);
      isMissing = false;
      assert.equal(await relay.reopen(rows[0]?.id ?? ''), true);
      await relay.sweep({ signal });
      assert.deepEqual([published.slice(3), store.rows().length], [['bad', 'y'], 0]);
    });
  }

  test('lists for an operator only what can never be published, not what a publisher that is down has left', async () => {
    const { clock, log, relayed } = await leftBehind({ x: [aLetter('x')] });
    await clock.advance(LEASE_MS);
    const publish = (): Promise<string> => Promise.reject(new TransientError('PUBLISH_FAILED', 'down'));
    const { done: published, failed } = await relayed({ publish }).sweep({ signal });
    assert.deepEqual([published, failed], [0, 1]);
    assert.deepEqual(
      log.lines.map(({ level }) => level),
      ['warn'],
    );
    assert.deepEqual(log.events(), [undefined]);
  });

  test('is bounded: a deadline ends it, and the next pass goes on with what was not tried', async () => {
    const letters = Object.fromEntries(Array.from({ length: 24 }, (_, n) => [`m${n}`, [aLetter(`${n}`)]]));
    const { clock, relayed } = await leftBehind(letters);
    await clock.advance(LEASE_MS);
    const tried: string[] = [];
    const down = {
      async publish({ data }: OutgoingMessage): Promise<string> {
        tried.push(Buffer.from(data).toString());
        await sleep(clock, 1_000);
        throw new TransientError('PUBLISH_FAILED', 'down');
      },
    };
    for (let pass = 0; pass < 3; pass += 1) {
      await clock.until(relayed(down).sweep({ signal, deadline: clock.monotonic() + 500 }));
    }
    assert.deepEqual([tried.length, new Set(tried).size], [24, 24]);
  });
});

test('a duplicate of ten large messages that are being published costs a few looks without content', async () => {
  const { clock, store, start } = world();
  const large = Array.from({ length: 10 }, (_, n) => ({
    ...aLetter(`${n}`),
    data: Buffer.alloc(900_000, n),
  }));
  const handler: InboxHandler<MemoryTransaction> = async () => ack('handled', large);
  const dead = start(handler, { publisher: { publish: () => new Promise<string>(() => {}) } });
  void dead.deliver();
  await clock.advance(1);
  dead.pause();
  let looks = 0;
  let whole = 0;
  const { first, claim, behind } = store.outbox;
  Object.assign(store.outbox, {
    first: (prefix: string) => {
      looks += 1;
      return first(prefix);
    },
    claim: (...asked: Parameters<typeof claim>) => {
      whole += 1;
      return claim(...asked);
    },
    async behind(...asked: Parameters<typeof behind>) {
      const rows = await behind(...asked);
      whole += rows.length;
      return rows;
    },
  });
  const publisher = memoryPublisher();
  const { deliver } = start(handler, { publisher });
  assert.equal(said(await clock.until(deliver())), 'IN_PROGRESS_ELSEWHERE');
  assert.ok(looks <= 7, `${looks} looks`);
  assert.equal(whole, 0);
  assert.equal(said(await clock.until(deliver())), 'duplicate');
  assert.deepEqual([publisher.published.length, whole], [10, 10]);
  assert.ok(looks <= 14, `${looks} looks`);
});
