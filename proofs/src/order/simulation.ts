/**
 * Several workers, one store and one Pub/Sub on virtual time: random deliveries, duplicates, crashes, stalls, lost
 * replies, poison, numbers that never come, and an operator, all drawn from a seed.
 */
import { type VirtualClock, virtualClock } from '../../../shared/src/testing/virtual-clock.ts';
import type { Outcome } from '../../../shared/src/outcome.ts';
import { memoryPayloads } from '../../../shared/src/payload/memory.ts';
import { type MemoryStreams, memoryStreams } from '../../../shared/src/order/memory.ts';
import { supervise } from '../engine/supervisor.ts';
import type { Tally } from '../engine/places.ts';
import { type Recording, checkedHandlers } from './checking-handler.ts';
import { drawnFaults, FAULTS_END_MS } from './drawn-faults.ts';
import type { Mutation } from './mutation.ts';
import { CONSUMER, contextFor, refOf, type Schedule } from './schedule.ts';
import { startConsumer, type World } from './simulated-process.ts';
import { randomFrom } from '../engine/random.ts';
import { watchedStore } from './watched-store.ts';
import { keysOf, type Sent, type Traffic, traffic } from './traffic.ts';

export type Simulated = Readonly<{
  traffic: Traffic;
  settled: ReadonlyMap<string, Outcome>;
  deliveries: ReadonlyMap<string, number>;
  /** Contents whose dead letter the consumer or the operator has published. */
  deadLettered: ReadonlySet<string>;
  store: MemoryStreams;
  recording: Recording;
  faults: number;
  clock: VirtualClock;
}>;

const ACK_DEADLINE_MS = 30_000;
/** So that every message that is held is too large for the store. */
const LEAST_BYTES = 1;
const SWEEP_EVERY_MS = 10_000;
const OPERATED_EVERY_MS = 15_000;
/** By half an hour after the last fault everything must have come to an end. */
const LIMIT_MS = FAULTS_END_MS + 1_800_000;

export async function simulate(plan: Schedule, mutation: Mutation = {}, crashes?: Tally): Promise<Simulated> {
  const random = randomFrom(plan.seed);
  const clock = virtualClock();
  const plain = memoryStreams({ clock, ...(plan.large && { maxHeldBytes: LEAST_BYTES }) });
  const seen = checkedHandlers(clock, plain, mutation.behindOnce);
  const store = watchedStore(plain, seen.violations, seen.failures);
  const settled = new Map<string, Outcome>();
  const deliveries = new Map<string, number>();
  const deadLettered = new Set<string>();
  const made = traffic(plan, random);
  const faults = drawnFaults(plan, random, clock, crashes);
  const payloads = memoryPayloads({ clock });
  const shared = { plan, mutation, random, clock, store, payloads, recording: seen, faults, deadLettered };
  const world: World = { ...shared, traffic: made, deliver, wake };

  function deliver(sent: Sent): void {
    if (settled.has(sent.id)) return;
    deliveries.set(sent.id, (deliveries.get(sent.id) ?? 0) + 1);
    const process = worker();
    const expire = clock.after(ACK_DEADLINE_MS, () => deliver(sent));
    if (!process.alive()) return;
    void process.deliver(sent, contextFor(clock, ACK_DEADLINE_MS - 5_000)).then((answer) => {
      const outcome = mutation.outcome?.(answer) ?? answer;
      if (!process.alive() || settled.has(sent.id)) return;
      if (outcome.kind !== 'retry') settled.set(sent.id, outcome);
      else clock.after(500 + random.upTo(10_000), () => deliver(sent));
      expire();
    });
  }
  /** Any process may be asked to visit a key by then. */
  function wake(key: string, atMs: number): void {
    clock.after(atMs - clock.now(), () => {
      const process = worker();
      if (process.alive()) void process.wake(key, contextFor(clock, 50_000)).catch(() => undefined);
    });
  }
  const sweep = (): void => {
    clock.after(SWEEP_EVERY_MS, sweep);
    const process = worker();
    if (process.alive()) void process.sweep(contextFor(clock, 50_000)).catch(() => undefined);
  };
  /** Resumes streams whose message can succeed; skips the others. */
  const operate = async (): Promise<void> => {
    clock.after(OPERATED_EVERY_MS, () => void operate().catch(() => undefined));
    const process = worker();
    if (!process.alive()) return;
    await process.streams.inspect(refOf(random.pick(keysOf(plan))));
    for (const { key, next } of (await process.streams.list(CONSUMER, { state: 'blocked' })).streams) {
      if (random.chance(0.5)) {
        for (const content of made.fatal.keys()) {
          if (content === `${key}#${next}` || content.startsWith(`${key}#${next}#`))
            made.fatal.delete(content);
        }
        await process.streams.resume(refOf(key));
      } else await process.streams.skip(refOf(key), next);
    }
  };

  const workers = supervise(
    plan.workers,
    (_slot, died) => startConsumer(world, died),
    (restart) => void clock.after(1_000 + random.upTo(20_000), restart),
  );
  const worker = () => workers.at(random.upTo(workers.size));
  const come = new Set<string>();
  for (const message of made.sent) {
    const name = `${message.key}#${message.number}`;
    const afterMs = plan.inTurn && !come.has(name) ? message.number : random.upTo(plan.spreadMs);
    come.add(name);
    clock.after(afterMs, () => deliver(message));
  }
  if (mutation.sweeps !== false) sweep();
  if (plan.operated) clock.after(OPERATED_EVERY_MS, () => void operate().catch(() => undefined));
  const quiet = (): boolean =>
    made.sent.every(({ id }) => settled.has(id)) && keysOf(plan).every((key) => isQuiet(plan, store, key));
  while (clock.monotonic() < LIMIT_MS && !(quiet() && !(faults.on() && plan.faultRate > 0))) {
    await clock.advance(5_000);
  }
  return {
    traffic: made,
    settled,
    deliveries,
    deadLettered,
    store,
    recording: seen,
    faults: faults.count(),
    clock,
  };
}

/** Nothing more will happen to the key: drained, blocked with no operator to help, or waiting for ever. */
function isQuiet(plan: Schedule, store: MemoryStreams, key: string): boolean {
  const ref = refOf(key);
  const state = store.stateOf(ref);
  if (state === undefined) return true;
  if (state.lease !== null || state.readyAt !== null) return false;
  if (state.blocked !== null) return !plan.operated;
  return store.heldNumbers(ref).length === 0 || (plan.onGap === 'wait' && !plan.repairs);
}
