import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sleep } from '../../../shared/src/clock.ts';
import { codeOf } from '../../../shared/src/errors.ts';
import { compose, type Handler } from '../../../shared/src/handler.ts';
import { ack, type Outcome, retry } from '../../../shared/src/outcome.ts';
import { virtualClock } from '../../../shared/src/testing/index.ts';
import { dedup } from '../../../shared/src/dedup/dedup.ts';
import { type ClaimDocuments, documentClaims } from '../../../shared/src/dedup/document-claims.ts';
import { aContext, aMessage, memoryLog } from '../../../shared/src/testing/deliveries.ts';
import type { NetworkFault } from '../engine/faults.ts';
import { pausable } from '../engine/pausable.ts';
import { type Call, faultyDocuments, gate } from './fixture.ts';
import { memoryDocuments } from '../../../shared/src/dedup/memory.ts';
import type { DedupOptions } from '../../../shared/src/dedup/settings.ts';

/** Processes over one store, on one time. */
function world() {
  const clock = virtualClock();
  const documents = memoryDocuments({ clock });
  /** A process with a clock of its own that can be paused, and faults of its own. */
  const start = (
    handler: Handler,
    options: Partial<DedupOptions> & {
      plan?: (call: Call) => NetworkFault | undefined;
      wrap?: (documents: ClaimDocuments) => ClaimDocuments;
    } = {},
  ) => {
    const { plan = () => undefined, wrap = (same) => same, ...rest } = options;
    const own = pausable(clock);
    const faulty = faultyDocuments(wrap(documents), own, plan);
    let runs = 0;
    const counted: Handler = (message, context) => {
      runs += 1;
      return handler(message, context);
    };
    const deliver = compose(counted, [dedup(documentClaims(faulty, own, 5_000), { clock: own, ...rest })]);
    return { ...own, deliver, calls: faulty.calls, runs: () => runs };
  };
  return { clock, start };
}

const done: Handler = async () => ack();
const codeIn = (outcome: Outcome): string =>
  outcome.kind === 'ack' ? outcome.reason : codeOf(outcome.error);

describe('the rules of once', () => {
  test('O1: a claim that arrives late with other data makes no delivery a conflict', async () => {
    const { clock, start } = world();
    const first = start(async () => {
      await sleep(clock, 10_000);
      return retry(new Error('failed'));
    });
    const m0 = aMessage('0', { dedupId: 'd', text: 'A' });
    const failing = first.deliver(m0, aContext(clock));
    const late: NetworkFault = { kind: 'late copy', byMs: 20_000 };
    const other = start(done, { waitBudget: '1s', plan: (call) => (call.number === 1 ? late : undefined) });
    const m1 = await clock.until(other.deliver(aMessage('1', { dedupId: 'd', text: 'B' }), aContext(clock)));
    assert.equal(codeIn(m1), 'IN_PROGRESS_ELSEWHERE');
    await clock.until(failing);
    await clock.advance(11_000);
    const again = start(done);
    assert.equal(codeIn(await clock.until(again.deliver(m0, aContext(clock)))), 'IN_PROGRESS_ELSEWHERE');
    assert.equal(codeIn(await clock.until(again.deliver(m0, aContext(clock)))), 'handled');
    assert.equal(again.runs(), 1);
  });

  test('O2: an adopted renewal counts from its own sending, not from that of the one which found it', async () => {
    const { clock, start } = world();
    let abortedAt = 0;
    let renewals = 0;
    const { deliver } = start(
      async (_message, { signal }) => {
        signal.addEventListener('abort', () => (abortedAt = clock.monotonic()));
        await sleep(clock, 55_000, signal);
        return retry(new Error('aborted'));
      },
      {
        plan: ({ detail }) => {
          if (detail !== 'renewal') return undefined;
          renewals += 1;
          if (renewals === 1) return { kind: 'reply lost' };
          const isOneThrough = clock.monotonic() >= 23_000 && clock.monotonic() < 24_000;
          return isOneThrough ? undefined : { kind: 'refused' };
        },
      },
    );
    const outcome = await clock.until(deliver(aMessage('1'), aContext(clock)));
    // Renewal 1 was sent at 10 s; the one that found it at 23 s.
    assert.equal(abortedAt, 40_000);
    assert.equal(codeIn(outcome), 'LEASE_LOST');
  });

  test('O3: a claim whose answer comes after its lease starts no handler', async () => {
    const { clock, start } = world();
    const { opened, open } = gate();
    const stalled = start(done, {
      wrap: (inner) => ({
        ...inner,
        create: async (key, write) => {
          const written = await inner.create(key, write);
          await opened;
          return written;
        },
      }),
    });
    const outcome = stalled.deliver(aMessage('1'), aContext(clock, { deadline: 600_000 }));
    await clock.advance(0);
    stalled.pause();
    await clock.advance(70_000);
    const other = start(done);
    assert.deepEqual(await other.deliver(aMessage('1'), aContext(clock)), ack());
    await clock.advance(70_000);
    // The reply is handled before the timers of the time that has passed.
    open();
    await clock.advance(0);
    stalled.resume();
    assert.equal(codeIn(await outcome), 'LEASE_LOST');
    assert.equal(stalled.runs(), 0);
    assert.deepEqual(await other.deliver(aMessage('1'), aContext(clock)), ack('duplicate'));
  });

  test('an expired claim is left to a delivery with time for the handler, by the first claim and by every poll', async () => {
    for (const [leaseLeftMs, deliveryMs] of [
      [0, 4_999],
      [6_000, 9_000],
    ] as const) {
      const { clock, start } = world();
      const dead = start(() => new Promise(() => {}));
      void dead.deliver(aMessage('1'), aContext(clock));
      await clock.advance(500);
      dead.pause();
      await clock.advance(29_500 - leaseLeftMs);
      const { deliver, calls, runs } = start(done);
      const deadline = clock.monotonic() + deliveryMs;
      const outcome = await clock.until(deliver(aMessage('1'), aContext(clock, { deadline })));
      assert.equal(codeIn(outcome), 'IN_PROGRESS_ELSEWHERE');
      assert.ok(!calls.includes('update claim'), calls.join(', '));
      await clock.advance(leaseLeftMs);
      assert.deepEqual([await deliver(aMessage('1'), aContext(clock)), runs()], [ack(), 1]);
    }
  });

  test('O4: a completion whose reply was lost is found to be one’s own', async () => {
    const { clock, start } = world();
    const log = memoryLog();
    const { deliver, runs } = start(done, {
      plan: ({ detail }) => (detail === 'done' ? { kind: 'repeated' } : undefined),
    });
    assert.deepEqual(await deliver(aMessage('1'), aContext(clock, { log })), ack());
    assert.deepEqual(log.events(), [], 'it was not taken for stolen');
    assert.deepEqual(await deliver(aMessage('1'), aContext(clock)), ack('duplicate'));
    assert.equal(runs(), 1);
  });

  test('O6: a completion of unknown outcome is not released, and the message not run again', async () => {
    const { clock, start } = world();
    let isDown = false;
    const { deliver, runs, calls } = start(done, {
      plan: ({ detail }) => {
        if (isDown) return { kind: 'refused' };
        isDown = detail === 'done';
        return isDown ? { kind: 'reply lost' } : undefined;
      },
    });
    assert.equal(codeIn(await clock.until(deliver(aMessage('1'), aContext(clock)))), 'STORE_UNAVAILABLE');
    assert.ok(!calls.includes('remove'));
    const other = start(done);
    assert.deepEqual(await other.deliver(aMessage('1'), aContext(clock)), ack('duplicate'));
    assert.deepEqual([runs(), other.runs()], [1, 0]);
  });

  test('a handler that finished after its claim was taken acks, and the other’s record stays', async () => {
    const { clock, start } = world();
    const log = memoryLog();
    // It ignores its signal, and no renewal arrives.
    const deaf = start(
      async () => {
        await sleep(clock, 40_000);
        return ack();
      },
      { plan: ({ detail }) => (detail === 'renewal' ? { kind: 'refused' } : undefined) },
    );
    const first = deaf.deliver(aMessage('1'), aContext(clock, { log }));
    await clock.advance(30_000);
    const other = start(async () => {
      await sleep(clock, 20_000);
      return retry(new Error('failed'));
    });
    const second = other.deliver(aMessage('1'), aContext(clock));
    assert.deepEqual(await clock.until(first), ack());
    assert.ok(log.events().includes('dedup_stolen'));
    const next = start(done, { waitBudget: '1s' });
    assert.equal(
      codeIn(await clock.until(next.deliver(aMessage('1'), aContext(clock)))),
      'IN_PROGRESS_ELSEWHERE',
    );
    assert.equal((await clock.until(second)).kind, 'retry');
  });

  test('a completion is sent when the renewal in flight has been answered, and not beside it', async () => {
    const { clock, start } = world();
    const slow: NetworkFault = { kind: 'none', beforeMs: 4_000 };
    const { deliver, calls } = start(
      async () => {
        await sleep(clock, 11_000);
        return ack();
      },
      { plan: ({ detail }) => (detail === 'renewal' ? slow : undefined) },
    );
    assert.deepEqual(await clock.until(deliver(aMessage('1'), aContext(clock))), ack());
    assert.equal(clock.monotonic(), 14_000);
    assert.deepEqual(calls, ['create claim', 'update renewal', 'update done']);
  });

  test('a claim that is on its way when the wait ends is waited for, and not left behind', async () => {
    const { clock, start } = world();
    const holder = start(async () => {
      await sleep(clock, 1_000);
      return retry(new Error('failed'));
    });
    const first = holder.deliver(aMessage('1'), aContext(clock));
    const slow: NetworkFault = { kind: 'none', beforeMs: 1_000 };
    // Polls at 250 ms, 750 ms and 1,750 ms; the wait ends at 2 s.
    const { deliver } = start(done, {
      waitBudget: '2s',
      plan: ({ method }) => (method === 'create' && clock.monotonic() > 1_500 ? slow : undefined),
    });
    const outcomes = await clock.until(Promise.all([first, deliver(aMessage('1'), aContext(clock))]));
    assert.deepEqual(outcomes.map(codeIn), ['Error', 'handled']);
    assert.equal(clock.monotonic(), 2_750);
  });

  test('O9: the signal compares the clock when the timer has not run yet', async () => {
    const { clock, start } = world();
    const { opened, open } = gate();
    const seen: boolean[] = [];
    const stalled = start(async (_message, { signal }) => {
      seen.push(signal.aborted);
      await opened;
      seen.push(signal.aborted);
      assert.throws(() => signal.throwIfAborted(), { code: 'LEASE_LOST' });
      return retry(signal.reason);
    });
    const outcome = stalled.deliver(aMessage('1'), aContext(clock, { deadline: 600_000 }));
    await clock.advance(0);
    stalled.pause();
    await clock.advance(30_000);
    open();
    await clock.advance(0);
    assert.deepEqual(seen, [false, true]);
    stalled.resume();
    assert.equal(codeIn(await outcome), 'LEASE_LOST');
  });
});

describe('reports from the field', () => {
  const crashed = async (lease: '30s' | '60s') => {
    const { clock, start } = world();
    const dead = start(() => new Promise(() => {}), { lease, retention: '1d' });
    void dead.deliver(aMessage('1'), aContext(clock));
    await clock.advance(500);
    dead.pause();
    return { clock, start };
  };

  test('B04: after a crash in the handler a redelivery is never acked, and runs once the lease is over', async () => {
    const { clock, start } = await crashed('30s');
    const next = start(done);
    await clock.advance(1_000);
    const early = await clock.until(next.deliver(aMessage('1'), aContext(clock)));
    assert.equal(codeIn(early), 'IN_PROGRESS_ELSEWHERE');
    assert.equal(next.runs(), 0);
    await clock.advance(4_500);
    assert.deepEqual(await next.deliver(aMessage('1'), aContext(clock)), ack());
  });

  test('B04: of two deliveries 5 ms apart one runs, and the other is acked after it', async () => {
    const { clock, start } = world();
    const slow: Handler = async () => {
      await sleep(clock, 1_000);
      return ack();
    };
    const [one, two] = [start(slow), start(slow)];
    const first = one.deliver(aMessage('1'), aContext(clock));
    await clock.advance(5);
    const second = two.deliver(aMessage('1'), aContext(clock));
    assert.deepEqual(await clock.until(Promise.all([first, second])), [ack(), ack('duplicate')]);
    assert.ok(clock.monotonic() >= 1_000);
    assert.deepEqual([one.runs(), two.runs()], [1, 0]);
  });

  test('B04: a completion that never arrives costs another run, not the message', async () => {
    const { clock, start } = world();
    const failing = start(done, {
      plan: ({ detail }) => (detail === 'done' ? { kind: 'refused' } : undefined),
    });
    const outcome = await clock.until(failing.deliver(aMessage('1'), aContext(clock)));
    assert.equal(codeIn(outcome), 'STORE_UNAVAILABLE');
    await clock.advance(30_000);
    assert.deepEqual(await start(done).deliver(aMessage('1'), aContext(clock)), ack());
  });

  test('B05: a crash blocks a key for its lease and not for the retention', async () => {
    const { clock, start } = await crashed('60s');
    await clock.advance(60_500);
    assert.deepEqual(await start(done).deliver(aMessage('1'), aContext(clock)), ack());
  });

  test('B05, B53: a handler slower than its lease keeps it, and a redelivery does not run beside it', async () => {
    const { clock, start } = world();
    let aborted = false;
    const slow = start(
      async (_message, { signal }) => {
        await sleep(clock, 90_000, signal);
        aborted = signal.aborted;
        return ack();
      },
      { lease: '60s' },
    );
    const first = slow.deliver(aMessage('1'), aContext(clock, { deadline: 600_000 }));
    await clock.advance(65_000);
    const next = start(done, { waitBudget: '10s' });
    assert.equal(
      codeIn(await clock.until(next.deliver(aMessage('1'), aContext(clock)))),
      'IN_PROGRESS_ELSEWHERE',
    );
    assert.deepEqual(await clock.until(first), ack());
    assert.deepEqual([aborted, next.runs()], [false, 0]);
  });

  test('B08: consumers and sources do not share message IDs, however their names are put together', async () => {
    const { clock, start } = world();
    const { deliver, runs } = start(done);
    const scopes: [string, string, string][] = [
      ['bill', 's', '42'],
      ['ship', 's', '42'],
      ['bill', 't', '42'],
      ['a:b', 's', 'c'],
      ['a', 's', 'b:c'],
      ['a', 'b:s', 'c'],
    ];
    for (const [consumer, source, id] of scopes) {
      const outcome = await deliver(aMessage(id), aContext(clock, { consumer, source }));
      assert.deepEqual(outcome, ack());
    }
    await deliver(aMessage('x', { dedupId: '42' }), aContext(clock, { consumer: 'bill', source: 's' }));
    assert.equal(runs(), scopes.length + 1);
  });

  test('B09: message IDs that start again are new under another consumer name', async () => {
    const { clock, start } = world();
    const { deliver, runs } = start(done);
    for (const consumer of ['run-1', 'run-2'])
      for (const id of ['1', '2', '3']) await deliver(aMessage(id), aContext(clock, { consumer }));
    assert.equal(runs(), 6);
  });

  test('B12: a claim whose reply was lost is one’s own', async () => {
    const { clock, start } = world();
    const { deliver, runs } = start(done, {
      plan: ({ number }) => (number === 1 ? { kind: 'repeated' } : undefined),
    });
    assert.deepEqual(await deliver(aMessage('1'), aContext(clock)), ack());
    assert.equal(runs(), 1);
  });

  test('B35: a message counts as done for eight days, and a shorter time than a week is warned of', async () => {
    const { clock, start } = world();
    const byDefault = start(done);
    const log = memoryLog();
    await byDefault.deliver(aMessage('1'), aContext(clock, { log }));
    assert.deepEqual(log.events(), []);
    await clock.advance(7 * 86_400_000);
    assert.deepEqual(await byDefault.deliver(aMessage('1'), aContext(clock)), ack('duplicate'));
    const short = start(done, { retention: '10m' });
    await short.deliver(aMessage('2'), aContext(clock, { log }));
    assert.deepEqual(log.events(), ['dedup_short_retention']);
    await clock.advance(11 * 60_000);
    assert.deepEqual(await short.deliver(aMessage('2'), aContext(clock)), ack());
    assert.equal(short.runs(), 2);
  });
});
