/**
 * One consumer process of a simulation: the stage, its sweep, its wake-ups and its operator, over requests that go wrong.
 * Once it has died nothing that it waits for is ever answered.
 */
import type { VirtualClock } from '../../testing/virtual-clock.ts';
import { compose, type Context, type Middleware } from '../../handler.ts';
import type { Outcome } from '../../outcome.ts';
import type { PayloadRoom } from '../../payload/payload-room.ts';
import { inOrder } from '../in-order.ts';
import type { MemoryOrder } from '../memory.ts';
import type { InOrderOptions } from '../options.ts';
import { type Orders, orders } from '../orders.ts';
import { type SweepContext, sweepOrder } from '../sweep.ts';
import { wakeOrder } from '../wake.ts';
import type { Habits, Witness } from './checking-handler.ts';
import type { Faults } from './drawn-faults.ts';
import { faultyCall, faultyOrder } from './faulty-order.ts';
import type { Mutation } from './mutation.ts';
import { graveyard, outbox, room } from './neighbours.ts';
import { CONSUMER, MAX_ATTEMPTS, type Plan } from './plan.ts';
import type { Random } from './random.ts';
import { messageOf, type Sent, type Traffic } from './traffic.ts';

export type Process = Readonly<{
  alive(): boolean;
  deliver(sent: Sent, context: Context): Promise<Outcome>;
  sweep(context: SweepContext): Promise<unknown>;
  wake(key: string, context: SweepContext): Promise<unknown>;
  orders: Orders;
}>;

/** What all processes of a simulation share. */
export type World = Readonly<{
  plan: Plan;
  mutation: Mutation;
  random: Random;
  clock: VirtualClock;
  store: MemoryOrder;
  payloads: PayloadRoom;
  witness: Witness;
  traffic: Traffic;
  faults: Faults;
  letters: Set<string>;
  deliver(sent: Sent): void;
  /** Asks for a look at a key at that time. */
  wake(key: string, atMs: number): void;
}>;

export function startProcess(world: World, onCrash: () => void): Process {
  const { plan, mutation, random, clock, store, witness, traffic, faults, letters } = world;
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
    traffic,
    next() {
      const { isSlow, dies } = faults.ofHandler();
      return { takesMs: random.upTo(isSlow ? 40_000 : 300), obeys: random.chance(0.7), dies };
    },
  };
  const call = faultyCall(clock, { faultOf: faults.ofRequest, alive, crash });
  const plain = faultyOrder(store, call);
  const faulty = mutation.store?.(plain) ?? plain;
  const deadLetters = graveyard(letters, call);
  const payloads = room(world.payloads, call);
  const options: InOrderOptions = {
    clock,
    lease: '12s',
    retryMin: plan.atOnce ? '20ms' : '1s',
    retryMax: '20s',
    maxRun: 4,
    maxAttempts: MAX_ATTEMPTS,
    poison: plan.poison,
    deadLetters,
    gaps: {
      timeout: '40s',
      policy: plan.gaps,
      ...(plan.repairs && { repair: outbox(traffic, call, world.deliver) }),
    },
    ...(plan.large && { payloads }),
    ...(plan.woken && { wake: world.wake }),
  };
  const checked = witness.handler(habits);
  const handler = compose(mutation.handler?.(checked, clock) ?? checked, []);
  const chain = (stage: Middleware) => compose(handler, [stage]);
  const usual = chain(inOrder(faulty, options));
  return {
    alive,
    deliver(sent, context) {
      const message = messageOf(sent);
      const hidden = mutation.deliveryStore?.(faulty, message);
      return (hidden === undefined ? usual : chain(inOrder(hidden, options)))(message, context);
    },
    sweep: sweepOrder(faulty, options, handler),
    wake: wakeOrder(faulty, options, handler),
    orders: orders(faulty, { consumer: CONSUMER, clock, deadLetters, ...(plan.large && { payloads }) }),
  };
}
