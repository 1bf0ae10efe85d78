import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { sleep } from '../clock.ts';
import { compose, type Handler } from '../handler.ts';
import { ack, type Outcome, retry } from '../outcome.ts';
import { type VirtualClock, virtualClock } from '../testing/index.ts';
import { dedup } from './dedup.ts';
import { type ClaimDocuments, documentClaims } from './document-claims.ts';
import { aContext, aMessage, type Fault, faultyDocuments, gate, pausable } from './testing/fixture.ts';
import { memoryDocuments } from './memory.ts';

const ACK_DEADLINE_MS = 60_000;
const BACK_OFF_MS = 10_000;
/** Afterwards nothing fails any more, and everything must come to an end. */
const TROUBLE_MS = 300_000;

type Accident = { at: number; worker: number; pauseMs: number | 'for ever' };
type Schedule = {
  publishes: { key: number; at: number }[];
  runs: { steps: number[]; fails: boolean }[];
  faults: (Fault | undefined)[];
  accidents: Accident[];
};

const milliseconds = fc.integer({ min: 0, max: 32_000 });
const fault: fc.Arbitrary<Fault | undefined> = fc.oneof(
  { weight: 10, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: fc.constantFrom<Fault>('request lost', 'all replies lost', 'reply lost') },
  { weight: 1, arbitrary: milliseconds.map((ms): Fault => ({ kind: 'delayed', milliseconds: ms })) },
  { weight: 1, arbitrary: milliseconds.map((ms): Fault => ({ kind: 'late copy', milliseconds: ms })) },
);
const schedule: fc.Arbitrary<Schedule> = fc.record({
  publishes: fc.array(fc.record({ key: fc.nat(1), at: fc.nat(90_000) }), { minLength: 1, maxLength: 5 }),
  runs: fc.array(
    fc.record({
      steps: fc.array(fc.nat(8_000), { maxLength: 7 }),
      fails: fc.nat(4).map((n) => n === 0),
    }),
    { minLength: 1, maxLength: 6 },
  ),
  faults: fc.array(fault, { minLength: 1, maxLength: 60 }),
  accidents: fc.array(
    fc.record({
      at: fc.nat(200_000),
      worker: fc.nat(2),
      pauseMs: fc.oneof(fc.integer({ min: 1_000, max: 140_000 }), fc.constant('for ever' as const)),
    }),
    { maxLength: 5 },
  ),
});

/** A process: it can be paused with replies on their way, resumed with the replies first, or never be heard of again. */
function makeWorker(clock: VirtualClock, documents: ClaimDocuments, handler: Handler) {
  const own = pausable(clock);
  let resumed = Promise.resolve();
  const whenAwake = async <Value>(call: () => Promise<Value>): Promise<Value> => {
    await resumed;
    const value = await call();
    await resumed;
    return value;
  };
  const mortal: ClaimDocuments = {
    create: (key, write) => whenAwake(() => documents.create(key, write)),
    read: (key) => whenAwake(() => documents.read(key)),
    update: (key, revision, write) => whenAwake(() => documents.update(key, revision, write)),
    remove: (key, revision) => whenAwake(() => documents.remove(key, revision)),
    tokenOf: (revision) => documents.tokenOf(revision),
  };
  const awake: Handler = async (message, context) => {
    await resumed;
    return handler(message, context);
  };
  return {
    clock: own,
    deliver: compose(awake, [dedup(documentClaims(mortal, own, 5_000), { clock: own })]),
    pause(pauseMs: number | 'for ever'): void {
      own.pause();
      const { opened, open } = gate();
      resumed = opened;
      if (pauseMs === 'for ever') return;
      clock.after(pauseMs, () => {
        open();
        // Replies before timers: what the rules about the clock are for.
        clock.after(0, () => own.resume());
      });
    },
  };
}

async function play({ publishes, runs, faults, accidents }: Schedule): Promise<void> {
  const clock = virtualClock();
  const broken: string[] = [];
  let calls = 0;
  const documents = faultyDocuments(memoryDocuments({ clock }), clock, () => {
    calls += 1;
    return clock.monotonic() < TROUBLE_MS ? faults[calls % faults.length] : undefined;
  });
  const completed = new Map<string, number>();
  const lastToken = new Map<string, bigint>();
  const believers = new Map<string, Set<AbortSignal>>();
  let started = 0;

  const work =
    (worker: () => ReturnType<typeof makeWorker>): Handler =>
    async (message, context) => {
      const key = message.attributes['dedupId'] ?? '';
      const own = worker().clock;
      const { steps, fails } = runs[started % runs.length] ?? { steps: [], fails: false };
      started += 1;
      const token = BigInt(context.fencingToken ?? '0');
      if (token <= (lastToken.get(key) ?? 0n)) broken.push(`${key}: token ${token} is not greater`);
      lastToken.set(key, token);
      const signals = believers.get(key) ?? new Set();
      believers.set(key, signals.add(context.signal));
      const look = (): void => {
        const believing = [...signals].filter((signal) => !signal.aborted);
        if (believing.length > 1) broken.push(`${key}: ${believing.length} believe at ${clock.monotonic()}`);
      };
      look();
      for (const step of steps) {
        await sleep(own, step, context.signal);
        look();
        if (context.signal.aborted) break;
      }
      const isAborted = context.signal.aborted;
      signals.delete(context.signal);
      if (isAborted || (fails && clock.monotonic() < TROUBLE_MS))
        return retry(new Error(isAborted ? 'aborted' : 'failed'));
      completed.set(key, (completed.get(key) ?? 0) + 1);
      return ack();
    };

  const fresh = (): ReturnType<typeof makeWorker> => {
    const worker: ReturnType<typeof makeWorker> = makeWorker(
      clock,
      documents,
      work(() => worker),
    );
    return worker;
  };
  const workers = [fresh(), fresh(), fresh()];
  for (const { at, worker, pauseMs } of accidents) {
    clock.after(at, () => {
      workers[worker]?.pause(pauseMs);
      // A dead process is replaced; a paused one is still there.
      if (pauseMs === 'for ever') workers[worker] = fresh();
    });
  }

  let delivery = 0;
  const publish = async (index: number, key: number, at: number): Promise<void> => {
    await sleep(clock, at);
    const message = aMessage(String(index), { dedupId: `key-${key}` });
    for (let attempt = 0; attempt < 200; attempt += 1) {
      const worker = workers[(delivery += 1) % workers.length] ?? fresh();
      const deadline = clock.monotonic() + ACK_DEADLINE_MS;
      const outcome = await Promise.race([
        worker.deliver(message, aContext(worker.clock, { deadline })),
        sleep(clock, ACK_DEADLINE_MS).then((): Outcome => retry(new Error('no answer'))),
      ]);
      if (outcome.kind === 'deadLetter') broken.push(`message ${index} is a dead letter`);
      if (outcome.kind === 'ack') {
        if (!completed.has(`key-${key}`))
          broken.push(`message ${index} was acked before any run was complete`);
        return;
      }
      await sleep(clock, BACK_OFF_MS);
    }
    broken.push(`message ${index} was never acked`);
  };
  await clock.until(Promise.all(publishes.map(({ key, at }, index) => publish(index, key, at))), 7_200_000);
  assert.deepEqual(broken, []);
}

test('random schedules: nothing is acked unworked, no two handlers believe, every effect happens', async () => {
  await fc.assert(fc.asyncProperty(schedule, play), { numRuns: 300 });
});
