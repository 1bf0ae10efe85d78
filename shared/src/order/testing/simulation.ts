/**
 * Several workers, one store and one Pub/Sub on virtual time: random deliveries, duplicates, crashes, stalls, lost
 * replies, poison, numbers that never come, and an operator, all drawn from a seed.
 */
import type { VirtualClock } from '../../testing/virtual-clock.ts';
import { virtualClock } from '../../testing/virtual-clock.ts';
import { compose, type Context, type Middleware } from '../../handler.ts';
import type { Outcome } from '../../outcome.ts';
import { inOrder } from '../in-order.ts';
import { type MemoryOrder, memoryOrder } from '../memory.ts';
import { orders } from '../orders.ts';
import type { InOrderOptions } from '../options.ts';
import { sweepOrder } from '../sweep.ts';
import { type Habits, type Witness, witness } from './checking-handler.ts';
import { type Fault, faultyOrder, type Method, randomFault } from './faulty-order.ts';
import type { Mutation } from './mutation.ts';
import { graveyard, outbox } from './neighbours.ts';
import { CONSUMER, contextFor, MAX_ATTEMPTS, type Plan } from './plan.ts';
import { randomFrom } from './random.ts';
import { type Sites, site } from './sites.ts';
import { keysOf, messageOf, type Sent, type Traffic, traffic } from './traffic.ts';

export type Simulated = Readonly<{
  traffic: Traffic;
  settled: ReadonlyMap<string, Outcome>;
  deliveries: ReadonlyMap<string, number>;
  /** Contents whose dead letter the consumer or the operator has published. */
  letters: ReadonlySet<string>;
  store: MemoryOrder;
  witness: Witness;
  faults: number;
  clock: VirtualClock;
}>;

const FAULTS_END_MS = 120_000;
const ACK_DEADLINE_MS = 30_000;
const SWEEP_EVERY_MS = 10_000;
const OPERATED_EVERY_MS = 15_000;
/** Half an hour after the last fault at the latest everything is quiet. */
const LIMIT_MS = FAULTS_END_MS + 1_800_000;

export async function simulate(plan: Plan, mutation: Mutation = {}, sites?: Sites): Promise<Simulated> {
  const random = randomFrom(plan.seed);
  const clock = virtualClock();
  const store = memoryOrder({ clock });
  const seen = witness(clock, store);
  const settled = new Map<string, Outcome>();
  const deliveries = new Map<string, number>();
  const letters = new Set<string>();
  const made = traffic(plan, random);
  let faults = 0;
  const faultsOn = (): boolean => clock.monotonic() < FAULTS_END_MS;
  const goesWrong = (share: number): boolean => faultsOn() && random.chance(share);
  const faultOf = (method: Method): Fault => {
    const place = plan.crashSite === undefined ? '' : site(method);
    if (sites !== undefined && place !== '') sites.seen.add(place);
    const isTarget = place !== '' && place === plan.crashSite && goesWrong(0.5);
    if (!isTarget && !goesWrong(plan.faultRate)) {
      return { kind: 'none', beforeMs: random.upTo(20), afterMs: random.upTo(20) };
    }
    faults += 1;
    const fault = isTarget
      ? ({ kind: 'crash', when: random.pick<'before' | 'after'>(['before', 'after']) } as const)
      : randomFault(random);
    if (fault.kind === 'crash' && sites !== undefined) {
      const where = place === '' ? site(method) : place;
      sites.crashes.set(where, (sites.crashes.get(where) ?? 0) + 1);
    }
    return fault;
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
      traffic: made,
      next() {
        const [isSlow, dies] = [goesWrong(plan.faultRate / 2), goesWrong(plan.faultRate / 4)];
        faults += Number(isSlow) + Number(dies);
        return { takesMs: random.upTo(isSlow ? 40_000 : 300), obeys: random.chance(0.7), dies };
      },
    };
    const plain = faultyOrder(store, clock, { faultOf, alive, crash });
    const faulty = mutation.store?.(plain) ?? plain;
    const life = { alive, crash, goesWrong: () => goesWrong(plan.faultRate) };
    const deadLetters = graveyard(letters, life);
    const options: InOrderOptions = {
      clock,
      lease: '12s',
      retryMax: '20s',
      maxRun: 4,
      maxAttempts: MAX_ATTEMPTS,
      poison: plan.poison,
      deadLetters,
      gaps: {
        timeout: '40s',
        policy: plan.gaps,
        ...(plan.repairs && { repair: outbox(made, life, deliver) }),
      },
    };
    const checked = seen.handler(habits);
    const handler = compose(mutation.handler?.(checked) ?? checked, []);
    const chain = (stage: Middleware) => compose(handler, [stage]);
    const usual = chain(inOrder(faulty, options));
    return {
      alive,
      deliver: (sent: Sent, context: Context): Promise<Outcome> => {
        const message = messageOf(sent);
        const hidden = mutation.deliveryStore?.(faulty, message);
        return (hidden === undefined ? usual : chain(inOrder(hidden, options)))(message, context);
      },
      sweep: sweepOrder(faulty, options, handler),
      orders: orders(faulty, { consumer: CONSUMER, clock, deadLetters }),
    };
  };

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
  const sweep = (): void => {
    clock.after(SWEEP_EVERY_MS, sweep);
    const process = worker();
    if (process.alive()) void process.sweep(contextFor(clock, 50_000)).catch(() => undefined);
  };
  /** Mends what is mendable; gives up the rest. */
  const operate = async (): Promise<void> => {
    clock.after(OPERATED_EVERY_MS, () => void operate().catch(() => undefined));
    const process = worker();
    if (!process.alive()) return;
    for (const { key, next } of (await process.orders.list({ state: 'halted' })).streams) {
      if (random.chance(0.5)) {
        for (const content of made.fatal.keys()) {
          if (content === `${key}#${next}` || content.startsWith(`${key}#${next}#`))
            made.fatal.delete(content);
        }
        await process.orders.resume(key);
      } else await process.orders.skip(key, next);
    }
  };

  const workers = Array.from({ length: plan.workers }, startWorker);
  const worker = () => random.pick(workers)();
  for (const message of made.sent) clock.after(random.upTo(plan.spreadMs), () => deliver(message));
  if (mutation.sweeps !== false) sweep();
  if (plan.operated) clock.after(OPERATED_EVERY_MS, () => void operate().catch(() => undefined));
  const quiet = (): boolean =>
    made.sent.every(({ id }) => settled.has(id)) && keysOf(plan).every((key) => isQuiet(plan, store, key));
  while (clock.monotonic() < LIMIT_MS && !(quiet() && !(faultsOn() && plan.faultRate > 0))) {
    await clock.advance(5_000);
  }
  return { traffic: made, settled, deliveries, letters, store, witness: seen, faults, clock };
}

/** Nothing more will happen to the key: drained, standing still with nobody to help, or waiting for ever. */
function isQuiet(plan: Plan, store: MemoryOrder, key: string): boolean {
  const ref = { consumer: CONSUMER, key };
  const state = store.stateOf(ref);
  if (state === undefined) return true;
  if (state.lease !== null || state.readyAt !== null) return false;
  if (state.halted !== null) return !plan.operated;
  return store.heldNumbers(ref).length === 0 || (plan.gaps === 'wait' && !plan.repairs);
}
