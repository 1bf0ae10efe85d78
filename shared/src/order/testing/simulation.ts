/**
 * Several workers, one store and one Pub/Sub on virtual time: random deliveries, duplicates, crashes, stalls and
 * lost replies, all drawn from a seed.
 */
import type { VirtualClock } from '../../testing/virtual-clock.ts';
import { virtualClock } from '../../testing/virtual-clock.ts';
import { compose, type Context } from '../../handler.ts';
import { silent } from '../../log.ts';
import type { Message } from '../../message.ts';
import type { Outcome } from '../../outcome.ts';
import { inOrder } from '../in-order.ts';
import { type MemoryOrder, memoryOrder } from '../memory.ts';
import { sweepOrder } from '../sweep.ts';
import { type Habits, type Witness, witness } from './checking-handler.ts';
import { type Fault, faultyOrder } from './faulty-order.ts';
import { randomFrom, type Random } from './random.ts';

export type Plan = Readonly<{
  seed: number;
  workers: number;
  keys: number;
  numbers: number;
  /** Share of store calls that go wrong during the first four minutes. */
  faultRate: number;
  /** Shares of numbers that are published twice, that have a second content, that fail for a while. */
  duplicates: number;
  conflicts: number;
  poison: number;
  /** Messages are published in random order over this time. */
  spreadMs: number;
}>;

type Sent = Readonly<{ id: string; key: string; number: number; content: string }>;

export type Simulated = Readonly<{
  sent: readonly Sent[];
  settled: ReadonlyMap<string, Outcome>;
  store: MemoryOrder;
  witness: Witness;
  faults: number;
  clock: VirtualClock;
}>;

export const CONSUMER = 'simulated';
const FAULTS_END_MS = 240_000;
const ACK_DEADLINE_MS = 30_000;
const SWEEP_EVERY_MS = 10_000;
/** Half an hour after the last fault at the latest everything is quiet. */
const LIMIT_MS = FAULTS_END_MS + 1_800_000;

export async function simulate(plan: Plan): Promise<Simulated> {
  const random = randomFrom(plan.seed);
  const clock = virtualClock();
  const store = memoryOrder({ clock });
  const seen = witness(clock, store);
  const settled = new Map<string, Outcome>();
  const failuresLeft = new Map<string, number>();
  let faults = 0;
  const faultsOn = (): boolean => clock.monotonic() < FAULTS_END_MS;
  const goesWrong = (share: number): boolean => faultsOn() && random.chance(share);
  const faultOf = (): Fault => {
    if (!goesWrong(plan.faultRate)) {
      return { kind: 'none', beforeMs: random.upTo(20), afterMs: random.upTo(20) };
    }
    faults += 1;
    return randomFault(random);
  };

  const startWorker = (): (() => ReturnType<typeof startProcess>) => {
    const restart = (): void => {
      clock.after(1_000 + random.upTo(20_000), () => (process = startProcess(restart)));
    };
    let process = startProcess(restart);
    return () => process;
  };
  const startProcess = (onCrash: () => void) => {
    let isAlive = true;
    const alive = (): boolean => isAlive;
    const crash = (): void => {
      if (isAlive) onCrash();
      isAlive = false;
    };
    const habits: Habits = {
      consumer: CONSUMER,
      alive,
      crash,
      failuresLeft,
      next: () => ({
        takesMs: random.upTo(goesWrong(plan.faultRate / 2) ? 40_000 : 300),
        obeys: random.chance(0.7),
        dies: goesWrong(plan.faultRate / 4),
      }),
    };
    const faulty = faultyOrder(store, clock, { faultOf, alive, crash });
    const options = { clock, lease: '12s', retryMax: '20s', maxRun: 4 } as const;
    const handler = compose(seen.handler(habits), []);
    return {
      alive,
      deliver: compose(handler, [inOrder(faulty, options)]),
      sweep: sweepOrder(faulty, options, handler),
    };
  };
  const workers = Array.from({ length: plan.workers }, startWorker);
  const worker = () => random.pick(workers)();

  const deliver = (sent: Sent): void => {
    if (settled.has(sent.id)) return;
    const process = worker();
    const expire = clock.after(ACK_DEADLINE_MS, () => deliver(sent));
    if (!process.alive()) return;
    void process.deliver(messageOf(sent), contextFor(clock, ACK_DEADLINE_MS - 5_000)).then((outcome) => {
      if (!process.alive() || settled.has(sent.id)) return;
      if (outcome.kind !== 'retry') settled.set(sent.id, outcome);
      else clock.after(500 + random.upTo(10_000), () => deliver(sent));
      expire();
    });
  };
  const sweep = (): void => {
    clock.after(SWEEP_EVERY_MS, sweep);
    const process = worker();
    if (process.alive()) void process.sweep(contextFor(clock, 50_000)).catch(() => undefined);
  };

  const sent = publish(plan, random, failuresLeft);
  for (const message of sent) clock.after(random.upTo(plan.spreadMs), () => deliver(message));
  sweep();
  const quiet = (): boolean =>
    sent.every(({ id }) => settled.has(id)) && keysOf(plan).every((key) => isQuiet(store, key));
  while (clock.monotonic() < LIMIT_MS && !(quiet() && !(faultsOn() && plan.faultRate > 0))) {
    await clock.advance(5_000);
  }
  return { sent, settled, store, witness: seen, faults, clock };
}

export const keysOf = (plan: Plan): readonly string[] =>
  Array.from({ length: plan.keys }, (_, index) => `key${index + 1}`);

function isQuiet(store: MemoryOrder, key: string): boolean {
  const ref = { consumer: CONSUMER, key };
  return store.heldNumbers(ref).length === 0 && store.stateOf(ref)?.readyAt === null;
}

function publish(plan: Plan, random: Random, failuresLeft: Map<string, number>): readonly Sent[] {
  const sent: Sent[] = [];
  for (const key of keysOf(plan)) {
    for (let number = 1; number <= plan.numbers; number += 1) {
      const name = `${key}#${number}`;
      const add = (content: string): void => void sent.push({ id: `m${sent.length}`, key, number, content });
      add(name);
      while (random.chance(plan.duplicates)) add(name);
      if (random.chance(plan.conflicts)) add(`${name}#other`);
      if (random.chance(plan.poison)) failuresLeft.set(name, 1 + random.upTo(5));
    }
  }
  return sent;
}

function randomFault(random: Random): Fault {
  return random.pick<Fault>([
    { kind: 'refused' },
    { kind: 'reply lost' },
    { kind: 'delayed', byMs: random.upTo(32_000) },
    { kind: 'repeated' },
    { kind: 'crash', when: 'before' },
    { kind: 'crash', when: 'after' },
    { kind: 'none', beforeMs: random.upTo(40_000) },
    { kind: 'none', afterMs: random.upTo(40_000) },
  ]);
}

const messageOf = (sent: Sent): Message => ({
  id: sent.id,
  data: Buffer.from(sent.content),
  attributes: { sequence: String(sent.number), sequenceKey: sent.key },
  publishTime: new Date(0),
});

function contextFor(clock: VirtualClock, limitMs: number): Context {
  const controller = new AbortController();
  const deadline = clock.monotonic() + limitMs;
  clock.after(limitMs, () => controller.abort());
  return {
    consumer: CONSUMER,
    source: 'sub',
    now: clock.now,
    deadline,
    signal: controller.signal,
    log: silent,
  };
}
