/**
 * The demo's run: the local stack with the function `saga`, four participants as processes, orders with at most some of them
 * open at once, and SIGKILL to one process after the other while they are.
 *
 * It ends when every saga has ended, or with `signal`; what is open then is printed as open.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { pubsubPublisher } from 'pubsub-guarantees/publish/pubsub';
import { type Sagas, sagas } from 'pubsub-guarantees/sagas';
import { firestoreSagas } from 'pubsub-guarantees/sagas/firestore';
import { startToolkit, type Toolkit } from 'pubsub-guarantees-emulator';
import { type Counted, countEffects } from '../effects.ts';
import { foodOrder } from '../food-order.ts';
import { type Processes, startParticipants } from '../processes.ts';
import { createTopics, ORCHESTRATOR, PARTICIPANTS, sagaTopic } from '../topology.ts';
import type { Ended } from './judge.ts';
import { type Placed, placed } from './orders.ts';

const VICTIMS = [ORCHESTRATOR, ...PARTICIPANTS] as const;
type Victim = (typeof VICTIMS)[number];

export type RunOptions = Readonly<{
  orders: number;
  kills: number;
  signal: AbortSignal;
  show: (text: string) => void;
}>;

export type RunFacts = Readonly<{
  ends: readonly Ended[];
  counted: Counted;
  /** SIGKILLs by process. */
  killed: Readonly<Record<Victim, number>>;
  /** Whether the kitchen died with its first reply, between its commit and the publish. */
  kitchenDied: number;
  /** Messages that were still in a subscription at the end, the dead letters among them. */
  backlog: number;
}>;

/** Open at once: enough that each process is at work when it is killed. */
const WINDOW = 24;
/** Orders beyond those that must have ended before the next kill. */
const AHEAD = 16;
const LOOK_MS = 200;
/** Copies that are still on their way come after the end of their saga, and must have no effect. */
const DRAIN_MS = 10_000;

export async function runSagas({ orders, kills, signal, show }: RunOptions): Promise<RunFacts> {
  const folder = mkdtempSync(join(tmpdir(), 'demo-saga-'));
  const file = join(folder, 'effects.ndjson');
  const closers: (() => Promise<unknown>)[] = [async () => rmSync(folder, { recursive: true })];
  try {
    show('starting the local stack');
    const stack = await startToolkit();
    closers.push(() => stack.close());
    const { project: projectId, pubsub: pubsubAddress, firestore: firestoreAddress } = stack.addresses;
    const [host = '', port] = firestoreAddress.split(':');
    const pubsub = new PubSub({ projectId, apiEndpoint: pubsubAddress });
    const firestore = new Firestore({ projectId, host, port: Number(port), ssl: false });
    const publisher = pubsubPublisher(pubsub);
    closers.push(async () => {
      await publisher.close();
      await pubsub.close();
      await firestore.terminate();
    });
    await createTopics(pubsub);
    const participants = await startParticipants({
      env: {
        PATH: process.env['PATH'],
        METADATA_SERVER_DETECTION: 'none',
        PUBSUB_EMULATOR_HOST: pubsubAddress,
        FIRESTORE_EMULATOR_HOST: firestoreAddress,
        GOOGLE_CLOUD_PROJECT: projectId,
        FOOD_EFFECTS: file,
      },
      first: { kitchen: { FOOD_KITCHEN_DIES: 'on' } },
    });
    closers.push(() => participants.close());
    const topic = sagaTopic(projectId);
    const operator = sagas(firestoreSagas(firestore), { consumer: ORCHESTRATOR, topic, publisher });
    const run = following(operator, (order) =>
      publisher.publish(foodOrder.start(order.id, order, { topic })),
    );
    const killing = killer({ stack, participants, kills, orders });
    const all = placed(orders);
    const ends = await run({ all, signal, onEnded: killing.onEnded, mayPlace: killing.mayPlace, show });
    await killing.done();
    const backlog = await drained(stack);
    return {
      ends,
      counted: await countEffects(file, firestore),
      killed: killing.killed,
      kitchenDied: participants.died.kitchen,
      backlog,
    };
  } finally {
    for (const close of closers.toReversed()) await close();
  }
}

type Follow = Readonly<{
  all: readonly Placed[];
  signal: AbortSignal;
  onEnded: (count: number) => void;
  mayPlace: (count: number) => boolean;
  show: RunOptions['show'];
}>;

/** Places the orders as others end, and looks at each one that is open. */
function following(operator: Sagas, start: (order: Placed['order']) => Promise<unknown>) {
  return async ({ all, signal, onEnded, mayPlace, show }: Follow): Promise<readonly Ended[]> => {
    const open = new Map<string, Ended>();
    const ended: Ended[] = [];
    const rest = all.values();
    while (ended.length < all.length && !signal.aborted) {
      while (open.size < WINDOW && mayPlace(open.size + ended.length)) {
        const { value: next } = rest.next();
        if (next === undefined) break;
        await start(next.order);
        const { kind, order } = next;
        open.set(order.id, { id: order.id, kind, state: 'running', isParked: false, wasInDoubt: false });
      }
      await Promise.all(
        [...open.values()].map(async (before) => {
          const view = await operator.inspect(foodOrder.name, before.id);
          if (view === undefined) return;
          const kitchen = view.steps.find(({ name }) => name === 'kitchen');
          const isInDoubt = kitchen?.status === 'withdrawing' || (kitchen?.attempt ?? 0) > 1;
          const { state, isParked } = view;
          const now = { ...before, state, isParked, wasInDoubt: before.wasInDoubt || isInDoubt };
          if (view.isEnded) {
            open.delete(before.id);
            ended.push(now);
          } else open.set(before.id, now);
        }),
      );
      onEnded(ended.length);
      show(`${ended.length} of ${all.length} sagas have ended`);
      await wait(LOOK_MS);
    }
    return [...ended, ...open.values()];
  };
}

type Killing = Readonly<{ stack: Toolkit; participants: Processes; kills: number; orders: number }>;

/**
 * One process after the other, evenly over the sagas that end; one kill at a time. Each hits a moment after the next orders
 * were placed, while they are worked on.
 */
function killer({ stack, participants, kills, orders }: Killing) {
  const killed: Record<Victim, number> = { saga: 0, payments: 0, couriers: 0, kitchen: 0, notices: 0 };
  let begun = 0;
  let failure: unknown;
  let current = Promise.resolve();
  let isBusy = false;

  const kill = async (victim: Victim, afterMs: number): Promise<void> => {
    await wait(afterMs);
    if (victim === ORCHESTRATOR) {
      await stack.functions.kill(victim);
      await stack.functions.start(victim);
    } else await participants.crash(victim);
    killed[victim] += 1;
  };
  return {
    killed,
    onEnded: (ended: number): void => {
      if (failure !== undefined) throw failure;
      const victim = VICTIMS[begun % VICTIMS.length];
      if (isBusy || begun >= kills || victim === undefined || ended * (kills + 1) < begun * orders) return;
      isBusy = true;
      // Another moment each time.
      current = kill(victim, LOOK_MS + ((begun * 137) % 500))
        .catch((error: unknown) => (failure = error))
        .then(() => void (isBusy = false));
      begun += 1;
    },
    /** Whether one more order may follow those that were placed: there must be sagas left to be open at the last kill. */
    mayPlace: (already: number): boolean =>
      begun >= kills || already < ((begun + 1) * orders) / (kills + 1) + AHEAD,
    async done(): Promise<void> {
      await current;
      if (failure !== undefined) throw failure;
    },
  };
}

async function drained(stack: Toolkit): Promise<number> {
  const backlog = (): number =>
    (stack.state() as unknown as Readonly<{ pubsub: Readonly<{ backlog: number }> }>).pubsub.backlog;
  for (let leftMs = DRAIN_MS; leftMs > 0 && backlog() > 0; leftMs -= LOOK_MS) await wait(LOOK_MS);
  return backlog();
}
