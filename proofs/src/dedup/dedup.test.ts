import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sleep } from '../../../shared/src/clock.ts';
import { codeOf, PermanentError, storeUnavailable, textOf } from '../../../shared/src/errors.ts';
import { compose, type Handler } from '../../../shared/src/handler.ts';
import { ack, deadLetter, type Outcome, retry } from '../../../shared/src/outcome.ts';
import { type VirtualClock, virtualClock } from '../../../shared/src/testing/index.ts';
import type { ClaimStore } from '../../../shared/src/dedup/claim-store.ts';
import { dedup } from '../../../shared/src/dedup/dedup.ts';
import { documentClaims } from '../../../shared/src/dedup/document-claims.ts';
import { aContext, aMessage, memoryLog } from '../../../shared/src/testing/deliveries.ts';
import { faultyDocuments } from './fixture.ts';
import { memoryClaims, memoryDocuments } from '../../../shared/src/dedup/memory.ts';
import type { DedupOptions } from '../../../shared/src/dedup/settings.ts';
import { refusal } from '../../../shared/src/testing/refusal.ts';

type Options = Partial<DedupOptions> & { store?: ClaimStore };

/** One worker's pipeline and a count of its runs. */
function worker(clock: VirtualClock, store: ClaimStore, handler: Handler, options: Options = {}) {
  let runs = 0;
  const counted: Handler = (message, context) => {
    runs += 1;
    return handler(message, context);
  };
  const deliver = compose(counted, [dedup(store, { clock, ...options })]);
  return { deliver, runs: () => runs };
}

const errorOf = (outcome: Outcome): unknown => (outcome.kind === 'ack' ? undefined : outcome.error);
const done: Handler = async () => ack();

describe('once', () => {
  test('runs a fresh message and acks its duplicate without running it', async () => {
    const clock = virtualClock();
    const { deliver, runs } = worker(clock, memoryClaims({ clock }), done);
    assert.deepEqual(await deliver(aMessage('1'), aContext(clock)), ack('handled'));
    assert.deepEqual(await deliver(aMessage('1'), aContext(clock)), ack('duplicate'));
    assert.equal(runs(), 1);
    assert.equal(clock.pending(), 0, 'no timer is left behind');
  });

  test('takes two message IDs with one dedupId for the same message', async () => {
    const clock = virtualClock();
    const { deliver, runs } = worker(clock, memoryClaims({ clock }), done);
    await deliver(aMessage('1', { dedupId: 'order-1' }), aContext(clock));
    assert.deepEqual(await deliver(aMessage('2', { dedupId: 'order-1' }), aContext(clock)), ack('duplicate'));
    await deliver(aMessage('3', { dedupId: 'order-3' }), aContext(clock));
    assert.equal(runs(), 2);
  });

  test('gives the handler a fencing token that grows with every claim, and a signal', async () => {
    const clock = virtualClock();
    const tokens: bigint[] = [];
    const { deliver } = worker(clock, memoryClaims({ clock }), async (_message, context) => {
      tokens.push(BigInt(context.fencingToken ?? '0'));
      return context.signal.aborted ? ack() : retry(new Error('again'));
    });
    await deliver(aMessage('1'), aContext(clock));
    await deliver(aMessage('1'), aContext(clock));
    assert.equal(tokens.length, 2);
    assert.ok(tokens[0]! > 0n && tokens[1]! > tokens[0]!);
  });

  test('an invalid dedupId is a permanent error', async () => {
    const clock = virtualClock();
    const { deliver, runs } = worker(clock, memoryClaims({ clock }), done);
    const outcome = await deliver(aMessage('1', { dedupId: '' }), aContext(clock));
    assert.equal(outcome.kind, 'deadLetter');
    assert.equal(codeOf(errorOf(outcome)), 'INVALID_ATTRIBUTE');
    assert.equal(runs(), 0);
  });

  test('unpaired surrogates are no dedupId: as bytes they are all the same', async () => {
    const clock = virtualClock();
    const { deliver, runs } = worker(clock, memoryClaims({ clock }), done);
    for (const dedupId of ['order \ud800', 'order \udc00', '\udc00\ud800']) {
      const outcome = await deliver(aMessage('1', { dedupId }), aContext(clock));
      assert.equal(outcome.kind, 'deadLetter');
      assert.equal(codeOf(errorOf(outcome)), 'INVALID_ATTRIBUTE');
    }
    assert.deepEqual(await deliver(aMessage('1', { dedupId: 'order 🚀' }), aContext(clock)), ack());
    assert.equal(runs(), 1);
  });

  test('does not begin with too little of the delivery left, says which setting asks for more, and keeps nothing', async () => {
    const clock = virtualClock();
    const store = memoryClaims({ clock });
    const { deliver, runs } = worker(clock, store, done);
    const outcome = await deliver(aMessage('1'), aContext(clock, { deadline: clock.monotonic() + 4_000 }));
    assert.equal(codeOf(errorOf(outcome)), 'LEASE_LOST');
    assert.match(textOf(errorOf(outcome)), /4000 ms of the delivery .* minimumHandlerTime \(5000 ms\)/);
    assert.equal(runs(), 0);
    assert.deepEqual(await clock.until(deliver(aMessage('1'), aContext(clock))), ack());
    assert.equal(clock.monotonic(), 0, 'at once');
  });

  test('does not begin for a delivery that is over, and keeps nothing', async () => {
    const clock = virtualClock();
    const store = memoryClaims({ clock });
    const { deliver, runs } = worker(clock, store, done);
    const outcome = await deliver(aMessage('1'), aContext(clock, { signal: AbortSignal.abort() }));
    assert.equal(codeOf(errorOf(outcome)), 'LEASE_LOST');
    assert.equal(runs(), 0);
    assert.deepEqual(await clock.until(deliver(aMessage('1'), aContext(clock))), ack());
    assert.equal(clock.monotonic(), 0, 'at once');
  });

  test('releases at once on retry, on a dead letter and on anything thrown', async () => {
    const outcomes: Handler[] = [
      async () => retry(new Error('not now')),
      async () => deadLetter(new PermanentError('BAD', 'never')),
      async () => Promise.reject(new Error('thrown')),
    ];
    for (const handler of outcomes) {
      const clock = virtualClock();
      const store = memoryClaims({ clock });
      const failing = worker(clock, store, handler);
      const first = await failing.deliver(aMessage('1'), aContext(clock));
      assert.notEqual(first.kind, 'ack');
      assert.deepEqual(await worker(clock, store, done).deliver(aMessage('1'), aContext(clock)), ack());
    }
  });

  test('a conflict names both message IDs and follows the policy', async () => {
    const clock = virtualClock();
    const store = memoryClaims({ clock });
    await worker(clock, store, done).deliver(aMessage('1', { dedupId: 'd', text: 'A' }), aContext(clock));
    const other = aMessage('2', { dedupId: 'd', text: 'B' });
    const byPolicy = async (onConflict: 'deadLetter' | 'ack' | 'process') => {
      const one = worker(clock, store, done, { onConflict });
      const outcome = await one.deliver(other, aContext(clock));
      return [outcome, one.runs()] as const;
    };
    const [refused] = await byPolicy('deadLetter');
    assert.equal(refused.kind, 'deadLetter');
    assert.equal(codeOf(errorOf(refused)), 'DEDUP_CONFLICT');
    assert.match(textOf(errorOf(refused)), /message 1 .* message 2/);
    assert.deepEqual(await byPolicy('ack'), [ack('duplicate'), 0]);
    assert.deepEqual(await byPolicy('process'), [ack(), 1]);
  });

  test('refuses a window that cannot work, naming the option', () => {
    const clock = virtualClock();
    const store = memoryClaims({ clock });
    const refused: [Partial<DedupOptions>, RegExp][] = [
      [
        { lease: '60s', retention: '60s' },
        /^lease is "60s"; accepted: below retention \("60s"\), because a record would end/,
      ],
      [{ retention: '20s' }, /^retention is "20s"; accepted: more than lease \("30s"\)/],
      [{ lease: '10ms' }, /^lease is "10ms"; accepted: at least 1s$/],
      [{ retention: '1.5h' as '1h' }, /retention is "1.5h"/],
      [{ onConflict: 'drop' as 'ack' }, /onConflict is "drop"/],
      [{ retention: '40000d' }, /retention is "40000d"; accepted: at most 36500d/],
      [{ newId: 'me' as unknown as () => string }, /newId is "me"; accepted: a function/],
    ];
    for (const [options, text] of refused) {
      assert.throws(() => dedup(store, { clock, ...options }), refusal(Object.keys(options)[0] ?? '', text));
    }
    for (const wrong of [undefined, {}, memoryClaims]) {
      assert.throws(() => dedup(wrong as unknown as ClaimStore, { clock }), refusal('store'));
    }
  });

  test('does not count as done what no stage has published', async () => {
    const clock = virtualClock();
    const { deliver } = worker(clock, memoryClaims({ clock }), async () =>
      ack('handled', [{ topic: 't', data: Buffer.from('x'), attributes: {} }]),
    );
    const outcome = await deliver(aMessage('1'), aContext(clock));
    assert.equal(codeOf(errorOf(outcome)), 'NOT_PUBLISHED');
  });

  test('a store that is down is a retry, or a marked run where that is asked for', async () => {
    const clock = virtualClock();
    const store = documentClaims(
      faultyDocuments(memoryDocuments({ clock }), clock, () => ({ kind: 'refused' })),
      clock,
      5_000,
    );
    const closed = worker(clock, store, done);
    assert.equal(codeOf(errorOf(await closed.deliver(aMessage('1'), aContext(clock)))), 'STORE_UNAVAILABLE');
    assert.equal(closed.runs(), 0);
    const marks: unknown[] = [];
    const open = worker(
      clock,
      store,
      async (_message, context) => {
        marks.push(context.possibleDuplicate);
        return ack();
      },
      { onStoreUnavailable: 'process' },
    );
    assert.deepEqual(await open.deliver(aMessage('1'), aContext(clock)), ack());
    assert.deepEqual(marks, [true]);
  });

  test('a store that hangs is unavailable within five seconds', async () => {
    const clock = virtualClock();
    const never = faultyDocuments(memoryDocuments({ clock }), clock, () => ({
      kind: 'none',
      beforeMs: 600_000,
    }));
    const { deliver } = worker(clock, documentClaims(never, clock, 5_000), done);
    const outcome = await clock.until(deliver(aMessage('1'), aContext(clock)));
    assert.equal(codeOf(errorOf(outcome)), 'STORE_UNAVAILABLE');
    assert.equal(clock.monotonic(), 5_000);
  });

  test('processes a message whose record is unrecognised, with a warning', async () => {
    const clock = virtualClock();
    const log = memoryLog();
    const unrecognised: ClaimStore = {
      ...memoryClaims({ clock }),
      claim: async () => ({ kind: 'unrecognised', what: 'a value without expiry' }),
    };
    const { deliver, runs } = worker(clock, unrecognised, done);
    assert.deepEqual(await deliver(aMessage('1'), aContext(clock, { log })), ack());
    assert.equal(runs(), 1);
    assert.deepEqual(log.events(), ['dedup_unrecognised']);
  });

  test('repeats a completion of unknown outcome, and then leaves the claim alone', async () => {
    const clock = virtualClock();
    let completions = 0;
    let releases = 0;
    const inner = memoryClaims({ clock });
    const store: ClaimStore = {
      ...inner,
      complete: () => {
        completions += 1;
        return Promise.reject(storeUnavailable('unknown'));
      },
      release: (held) => {
        releases += 1;
        return inner.release(held);
      },
    };
    const outcome = await clock.until(worker(clock, store, done).deliver(aMessage('1'), aContext(clock)));
    assert.equal(codeOf(errorOf(outcome)), 'STORE_UNAVAILABLE');
    assert.deepEqual([completions, releases], [3, 0]);
  });

  test('costs two writes and no read when fresh, a failed create and a read when done', async () => {
    const clock = virtualClock();
    const documents = faultyDocuments(memoryDocuments({ clock }), clock, () => undefined);
    const { deliver } = worker(clock, documentClaims(documents, clock, 5_000), done);
    await deliver(aMessage('1'), aContext(clock));
    assert.deepEqual(documents.calls, ['create claim', 'update done']);
    await deliver(aMessage('1'), aContext(clock));
    assert.deepEqual(documents.calls.slice(2), ['create claim', 'read']);
  });
});

describe('waiting', () => {
  const slow =
    (clock: VirtualClock, milliseconds: number): Handler =>
    async () => {
      await sleep(clock, milliseconds);
      return ack();
    };

  test('any number of duplicates of a running message share one poll and are acked when it is done', async () => {
    const clock = virtualClock();
    const documents = faultyDocuments(memoryDocuments({ clock }), clock, () => undefined);
    const store = documentClaims(documents, clock, 5_000);
    const one = worker(clock, store, slow(clock, 9_000));
    const two = worker(clock, store, done);
    const first = one.deliver(aMessage('1'), aContext(clock));
    const others = Array.from({ length: 20 }, () => two.deliver(aMessage('1'), aContext(clock)));
    await clock.advance(0);
    const before = documents.calls.length;
    const outcomes = await clock.until(Promise.all([first, ...others]));
    assert.deepEqual(
      outcomes.map((outcome) => outcome.kind === 'ack' && outcome.reason),
      ['handled', ...others.map(() => 'duplicate')],
    );
    assert.equal(two.runs(), 0);
    // 250 ms, 500 ms, 1 s, then every 2 s; a failed create and a read each, and the completion.
    assert.ok(documents.calls.length - before <= 2 * 9 + 1, `${documents.calls.length - before} calls`);
  });

  test('in one process the end of the run ends the wait at once', async () => {
    const clock = virtualClock();
    const { deliver, runs } = worker(clock, memoryClaims({ clock }), slow(clock, 10_100));
    const both = [deliver(aMessage('1'), aContext(clock)), deliver(aMessage('1'), aContext(clock))];
    await clock.until(Promise.all(both));
    assert.equal(clock.monotonic(), 10_100);
    assert.equal(runs(), 1);
  });

  test('stops waiting after its budget, saying that another delivery has it', async () => {
    const clock = virtualClock();
    const store = memoryClaims({ clock });
    const running = worker(clock, store, slow(clock, 50_000)).deliver(aMessage('1'), aContext(clock));
    const waiting = worker(clock, store, done).deliver(aMessage('1'), aContext(clock));
    assert.equal(codeOf(errorOf(await clock.until(waiting))), 'IN_PROGRESS_ELSEWHERE');
    assert.equal(clock.monotonic(), 25_000);
    assert.deepEqual(await clock.until(running), ack());
  });

  test('a delivery that shares the poll of the one that gets the claim is not acked before that one is done', async () => {
    const clock = virtualClock();
    const store = memoryClaims({ clock });
    const after =
      (milliseconds: number, outcome: Outcome): Handler =>
      async () => {
        await sleep(clock, milliseconds);
        return outcome;
      };
    const failed = retry(new Error('failed'));
    const holder = worker(clock, store, after(1_000, failed)).deliver(aMessage('1'), aContext(clock));
    let doneAt = 0;
    const results = [failed, failed, ack()];
    const { deliver, runs } = worker(clock, store, async (message, context) => {
      const outcome = await after(3_000, results.shift() ?? ack())(message, context);
      if (outcome.kind === 'ack') doneAt = clock.monotonic();
      return outcome;
    });
    const ackedAt: number[] = [];
    const others = Array.from({ length: 4 }, async () => {
      const outcome = await deliver(aMessage('1'), aContext(clock));
      if (outcome.kind === 'ack') ackedAt.push(clock.monotonic());
      return outcome.kind;
    });
    const kinds = await clock.until(Promise.all(others));
    await clock.until(holder);
    assert.deepEqual(kinds.toSorted(), ['ack', 'ack', 'retry', 'retry']);
    assert.equal(runs(), 3);
    assert.ok(doneAt > 0 && ackedAt.every((at) => at >= doneAt), `${ackedAt.join(', ')} before ${doneAt}`);
  });

  test('a store that refuses every write while no delivery holds the key is polled ever less often', async () => {
    const clock = virtualClock();
    // As Firestore does with ABORTED for as long as something else has the document.
    const documents = faultyDocuments(memoryDocuments({ clock }), clock, () => undefined);
    const refusing = { ...documents, create: async () => ({ kind: 'refused' }) as const };
    const { deliver } = worker(clock, documentClaims(refusing, clock, 5_000), done);
    const outcome = await clock.until(deliver(aMessage('1'), aContext(clock)));
    assert.equal(codeOf(errorOf(outcome)), 'IN_PROGRESS_ELSEWHERE');
    assert.ok(documents.calls.length <= 50, `${documents.calls.length} reads`);
  });

  test('a machine that was suspended while it claimed does not begin under a claim that may be over', async () => {
    const clock = virtualClock();
    const inner = memoryClaims({ clock });
    const store: ClaimStore = {
      ...inner,
      claim: async (request) => {
        const answer = await inner.claim(request);
        clock.suspend(30_000);
        return answer;
      },
    };
    let runs = 0;
    const handler = dedup(store, { clock })(async () => {
      runs += 1;
      return ack();
    });
    const outcome = await clock.until(handler(aMessage('1'), aContext(clock)));
    assert.deepEqual([outcome.kind, runs], ['retry', 0]);
    assert.equal(outcome.kind === 'retry' && codeOf(outcome.error), 'LEASE_LOST');
  });

  test('a claim that was got after waiting longer than a lease has a whole lease', async () => {
    const clock = virtualClock();
    const store = memoryClaims({ clock });
    const failing: Handler = async () => {
      await sleep(clock, 45_000);
      return retry(new Error('failed'));
    };
    const running = worker(clock, store, failing).deliver(aMessage('1'), aContext(clock));
    const patient = worker(clock, store, done, { waitBudget: '50s' });
    const waiting = patient.deliver(aMessage('1'), aContext(clock));
    assert.equal((await clock.until(running)).kind, 'retry');
    assert.deepEqual(await clock.until(waiting), ack());
  });

  test('another waiter polls when the one that polled has run out of time', async () => {
    const clock = virtualClock();
    const store = memoryClaims({ clock });
    const running = worker(clock, store, slow(clock, 20_000)).deliver(aMessage('1'), aContext(clock));
    const { deliver } = worker(clock, store, done);
    const short = deliver(aMessage('1'), aContext(clock, { deadline: 11_000 }));
    const long = deliver(aMessage('1'), aContext(clock));
    assert.equal(codeOf(errorOf(await clock.until(short))), 'IN_PROGRESS_ELSEWHERE');
    assert.equal(clock.monotonic(), 6_000);
    assert.deepEqual(await clock.until(Promise.all([running, long])), [ack(), ack('duplicate')]);
  });

  test('a waiter with other data gets a conflict from the shared poll of a waiter with the same data', async () => {
    const clock = virtualClock();
    const store = memoryClaims({ clock });
    const message = (id: string, text: string) => aMessage(id, { dedupId: 'd', text });
    const running = worker(clock, store, slow(clock, 3_000)).deliver(message('1', 'A'), aContext(clock));
    const { deliver } = worker(clock, store, done);
    const same = deliver(message('2', 'A'), aContext(clock));
    const other = deliver(message('3', 'B'), aContext(clock));
    const outcomes = await clock.until(Promise.all([running, same, other]));
    assert.deepEqual(
      outcomes.map((outcome) => outcome.kind),
      ['ack', 'ack', 'deadLetter'],
    );
  });
});
