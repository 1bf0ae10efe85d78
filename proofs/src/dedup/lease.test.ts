import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { momentOf, sleep } from '../../../shared/src/clock.ts';
import { codeOf, storeUnavailable } from '../../../shared/src/errors.ts';
import { compose } from '../../../shared/src/handler.ts';
import { silent } from '../../../shared/src/log.ts';
import { ack, retry } from '../../../shared/src/outcome.ts';
import { virtualClock } from '../../../shared/src/testing/index.ts';
import type { ClaimStore } from '../../../shared/src/dedup/claim-store.ts';
import { claimed, request } from '../../../shared/src/dedup/contract.ts';
import { deadlineSignal } from '../../../shared/src/dedup/deadline-signal.ts';
import { dedup } from '../../../shared/src/dedup/dedup.ts';
import { documentClaims } from '../../../shared/src/dedup/document-claims.ts';
import { aContext, aMessage } from '../../../shared/src/testing/deliveries.ts';
import type { NetworkFault } from '../engine/faults.ts';
import { faultyDocuments } from './fixture.ts';
import { holdLease } from '../../../shared/src/dedup/lease.ts';
import { memoryClaims, memoryDocuments } from '../../../shared/src/dedup/memory.ts';

const LEASE_MS = 30_000;

/** A lease that began at time 0, over a store whose renewals the test answers. */
async function lease(renewal?: (inner: ClaimStore) => ClaimStore['renew'], deliveryDeadline = 600_000) {
  const clock = virtualClock();
  const inner = memoryClaims({ clock });
  const sentAt: number[] = [];
  const renew = renewal?.(inner) ?? inner.renew;
  const store: ClaimStore = {
    ...inner,
    renew: (held, nonce) => {
      sentAt.push(clock.monotonic());
      return renew(held, nonce);
    },
  };
  const start = momentOf(clock);
  const { held } = await claimed(store, request({ leaseMs: LEASE_MS }));
  const parent = new AbortController();
  const options = { held, sentAt: start, deliveryDeadline, parent: parent.signal, log: silent };
  return { clock, store, sentAt, parent, ...holdLease(store, clock, options) };
}

describe('the heartbeat', () => {
  test('renews every third of the lease, until it is stopped', async () => {
    const { clock, sentAt, signal, isLost, stop } = await lease();
    await clock.advance(95_000);
    assert.deepEqual(sentAt, [10_000, 20_000, 30_000, 40_000, 50_000, 60_000, 70_000, 80_000, 90_000]);
    assert.deepEqual([signal.aborted, isLost()], [false, false]);
    await stop();
    assert.equal(clock.pending(), 0);
  });

  test('does not go on beyond the end of the delivery, which is no lost lease', async () => {
    const { clock, sentAt, signal, isLost, stop } = await lease(undefined, 25_000);
    await clock.advance(60_000);
    assert.deepEqual(sentAt, [10_000, 20_000]);
    assert.equal(codeOf(signal.reason), 'DELIVERY_TIMED_OUT');
    await stop();
    assert.equal(isLost(), true, 'by now the lease is over too');
  });

  test('a lease is lost at once when the machine was suspended for as long, and no renewal is sent', async () => {
    const { clock, sentAt, signal, isLost, stop } = await lease();
    await clock.advance(12_000);
    clock.suspend(LEASE_MS - 2_001);
    assert.equal(isLost(), false, 'a second and a little is left of the renewal at 10 s');
    clock.suspend(1);
    assert.deepEqual([isLost(), signal.aborted, codeOf(signal.reason)], [true, true, 'LEASE_LOST']);
    await clock.advance(60_000);
    assert.deepEqual(sentAt, [10_000]);
    await stop();
  });

  test('listeners are called with the next heartbeat', async () => {
    const { clock, signal, stop } = await lease();
    let toldAt: number | undefined;
    signal.addEventListener('abort', () => (toldAt = clock.monotonic()));
    await clock.advance(1_000);
    clock.suspend(3_600_000);
    await clock.advance(60_000);
    assert.equal(toldAt, 10_000);
    await stop();
  });

  test('a wall clock that is set back, or forward by less than the lease, loses nothing', async () => {
    const { clock, sentAt, signal, isLost, stop } = await lease();
    for (const jumpMs of [-3_600_000, LEASE_MS - 10_001, -1]) {
      clock.suspend(jumpMs);
      await clock.advance(10_000);
      assert.deepEqual([isLost(), signal.aborted], [false, false], String(jumpMs));
    }
    assert.equal(sentAt.length, 3);
    await stop();
  });

  test('has one renewal in flight at a time, and the claim is settled after it', async () => {
    let inFlight = 0;
    let most = 0;
    const { clock, stop } = await lease((inner) => async (held, nonce) => {
      inFlight += 1;
      most = Math.max(most, inFlight);
      await sleep(clock, 4_000);
      inFlight -= 1;
      return inner.renew(held, nonce);
    });
    await clock.advance(31_000);
    assert.deepEqual([most, inFlight], [1, 1]);
    const stopped = stop();
    let isStopped = false;
    void stopped.then(() => (isStopped = true));
    await clock.advance(2_000);
    assert.equal(isStopped, false);
    await clock.advance(2_000);
    assert.equal(isStopped, true);
    assert.deepEqual([most, inFlight], [1, 0]);
  });

  test('a renewal that hangs is a lost lease at the end of the last confirmed one', async () => {
    let renewals = 0;
    const { clock, signal, isLost } = await lease((inner) => (held, nonce) => {
      renewals += 1;
      return renewals === 1 ? inner.renew(held, nonce) : new Promise(() => {});
    });
    await clock.advance(39_999);
    assert.equal(signal.aborted, false);
    await clock.advance(1);
    assert.deepEqual([signal.aborted, isLost(), codeOf(signal.reason)], [true, true, 'LEASE_LOST']);
  });

  test('a renewal of unknown outcome is tried again in a second', async () => {
    let renewals = 0;
    const { clock, sentAt, signal, stop } = await lease((inner) => (held, nonce) => {
      renewals += 1;
      return renewals <= 3 ? Promise.reject(storeUnavailable('lost')) : inner.renew(held, nonce);
    });
    await clock.advance(24_000);
    assert.deepEqual(sentAt, [10_000, 11_000, 12_000, 13_000, 23_000]);
    assert.equal(signal.aborted, false);
    await stop();
  });

  test('a claim that another delivery has taken is lost at once', async () => {
    const { clock, signal, isLost } = await lease(() => async () => ({ kind: 'lost' }));
    await clock.advance(10_000);
    assert.deepEqual([signal.aborted, isLost()], [true, true]);
    assert.equal(clock.pending(), 0);
  });

  test('the delivery’s own signal ends it with the same reason', async () => {
    const { clock, sentAt, parent, signal, isLost } = await lease();
    parent.abort(new Error('closing'));
    assert.deepEqual([signal.aborted, signal.reason.message, isLost()], [true, 'closing', false]);
    await clock.advance(60_000);
    assert.deepEqual(sentAt, []);
  });

  test('an adopted claim counts from the first attempt of its delivery, not from the poll that found it', async () => {
    const clock = virtualClock();
    const documents = memoryDocuments({ clock });
    const other = documentClaims(documents, clock, 5_000);
    const message = aMessage('1');
    const failing = compose(async () => {
      await sleep(clock, 3_800);
      return retry(new Error('failed'));
    }, [dedup(other, { clock })]);
    const first = failing(message, aContext(clock));
    // Its first create lands at 4 s, just after the release, and its own poll at 5.75 s finds it.
    const late: NetworkFault = { kind: 'late copy', byMs: 4_000 };
    const faulty = faultyDocuments(documents, clock, ({ number, detail }) => {
      if (number === 1) return late;
      return detail === 'renewal' ? { kind: 'refused' } : undefined;
    });
    let [startedAt, abortedAt] = [0, 0];
    const waiting = compose(
      async (_message, { signal }) => {
        startedAt = clock.monotonic();
        await sleep(clock, 50_000, signal);
        abortedAt = clock.monotonic();
        return ack();
      },
      [dedup(documentClaims(faulty, clock, 5_000), { clock })],
    );
    await clock.until(Promise.all([first, waiting(message, aContext(clock))]));
    assert.deepEqual([startedAt, abortedAt], [5_750, 30_000]);
  });
});

describe('a signal with a deadline', () => {
  const start = (deadline: number) => {
    const clock = virtualClock();
    const parent = new AbortController();
    return { clock, ...deadlineSignal(clock, parent.signal, deadline, () => new Error('late')) };
  };

  test('tells its listeners by the timer, at the deadline as last moved', async () => {
    const { clock, signal, moveTo } = start(1_000);
    let toldAt = 0;
    signal.addEventListener('abort', () => (toldAt = clock.monotonic()));
    moveTo(3_000);
    await clock.advance(5_000);
    assert.equal(toldAt, 3_000);
  });

  test('stays aborted when its deadline is moved afterwards', async () => {
    const { clock, signal, moveTo } = start(1_000);
    await clock.advance(1_000);
    moveTo(9_000);
    assert.equal(signal.aborted, true);
  });

  test('is made when it is asked for, and is the one that it would have been', async () => {
    const clock = virtualClock();
    const parent = new AbortController();
    const make = (deadline: number) =>
      deadlineSignal(clock, parent.signal, deadline, () => new Error('late'));
    const [asked, late, aborted, stale] = [make(5_000), make(1_000), make(9_000), make(1_000)];
    aborted.abort(new Error('lost'));
    assert.equal(clock.pending(), 0, 'no timer for a signal that was not asked for');
    assert.equal(asked.signal, asked.signal);
    assert.equal(clock.pending(), 1);
    await clock.advance(2_000);
    stale.moveTo(9_000);
    assert.deepEqual([asked.isAborted(), late.isAborted(), stale.isAborted()], [false, true, true]);
    assert.deepEqual([late.signal.reason.message, aborted.signal.reason.message], ['late', 'lost']);
    const after = make(9_000);
    parent.abort(new Error('closing'));
    assert.equal(after.signal.reason.message, 'closing');
  });

  test('is a real AbortSignal for any API that takes one, and compares the clock even after it is closed', async () => {
    const { clock, signal, close } = start(1_000);
    assert.ok(signal instanceof AbortSignal);
    assert.equal(signal.reason, undefined);
    signal.throwIfAborted();
    close();
    assert.equal(clock.pending(), 0);
    await clock.advance(1_000);
    assert.throws(() => signal.throwIfAborted(), { message: 'late' });
    assert.equal(AbortSignal.any([signal]).aborted, true);
  });
});
