/**
 * One consumer process of a simulation: the stage, its sweep, its wake-ups and its operator, over requests that go wrong.
 * Once it has died nothing that it waits for is ever answered.
 */
import type { VirtualClock } from '../../../shared/src/testing/virtual-clock.ts';
import { compose, type Context } from '../../../shared/src/handler.ts';
import type { Outcome } from '../../../shared/src/outcome.ts';
import type { PayloadStore } from '../../../shared/src/payload/payload-store.ts';
import { type OrderedDelivery, orderedDelivery } from '../../../shared/src/order/in-order.ts';
import type { MemoryStreams } from '../../../shared/src/order/memory.ts';
import type { StreamOptions } from '../../../shared/src/order/options.ts';
import type { VisitContext } from '../../../shared/src/order/mailbox.ts';
import type { Behaviour, Recording } from './checking-handler.ts';
import type { Faults } from './drawn-faults.ts';
import { startProcess } from '../engine/process.ts';
import { faultyStore, lost, type Request } from './faulty-store.ts';
import type { Mutation } from './mutation.ts';
import { deadLetterPublisher, outbox, payloadStore } from './neighbours.ts';
import { MAX_ATTEMPTS, type Schedule, SOURCE } from './schedule.ts';
import type { Random } from '../engine/random.ts';
import { messageOf, type Sent, type Traffic } from './traffic.ts';

type Consumer = Readonly<{
  alive(): boolean;
  deliver(sent: Sent, context: Context): Promise<Outcome>;
  sweep(context: VisitContext): Promise<unknown>;
  wake(key: string, context: VisitContext): Promise<unknown>;
  streams: OrderedDelivery;
}>;

/** What all processes of a simulation share. */
export type World = Readonly<{
  plan: Schedule;
  mutation: Mutation;
  random: Random;
  clock: VirtualClock;
  store: MemoryStreams;
  payloads: PayloadStore;
  recording: Recording;
  traffic: Traffic;
  faults: Faults;
  deadLettered: Set<string>;
  deliver(sent: Sent): void;
  /** Asks for a look at a key at that time. */
  wake(key: string, atMs: number): void;
}>;

export function startConsumer(world: World, died: () => void): Consumer {
  const { plan, mutation, random, clock, store, recording, traffic, faults, deadLettered } = world;
  const process = startProcess<Request>(clock, { faultOf: faults.ofRequest, lost, died });
  const { alive, crash, call } = process;
  const behaviour: Behaviour = {
    alive,
    crash,
    traffic,
    next() {
      const { isSlow, dies } = faults.ofHandler();
      return { takesMs: random.upTo(isSlow ? 40_000 : 300), obeys: random.chance(0.7), dies };
    },
  };
  const plain = faultyStore(store, call);
  const faulty = mutation.store?.(plain) ?? plain;
  const deadLetters = deadLetterPublisher(deadLettered, call);
  const payloads = payloadStore(world.payloads, call);
  const options: StreamOptions = {
    ...mutation.options,
    clock: process.clock,
    lease: '12s',
    retry: { min: '1s', max: '20s', maxAttempts: MAX_ATTEMPTS },
    pageSize: 4,
    onPoison: plan.onPoison,
    deadLetters,
    onGap: plan.onGap,
    gap: { timeout: '40s', ...(plan.repairs && { repair: outbox(traffic, call, world.deliver) }) },
    ...(plan.large && { payloads }),
    ...(plan.woken && { wake: ({ key }, atMs) => world.wake(key, atMs) }),
  };
  const checked = recording.handler(behaviour);
  const handler = compose(mutation.handler?.(checked, clock) ?? checked, []);
  const streams = orderedDelivery(faulty, options);
  const chain = compose(handler, [streams.middleware]);
  const sweep = streams.sweep(handler);
  const wake = streams.wake(handler);
  return {
    alive,
    deliver: (sent, context) => chain(messageOf(sent), context),
    sweep,
    wake: (key, context) => wake({ source: SOURCE, key }, context),
    streams,
  };
}
