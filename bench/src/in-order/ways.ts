/**
 * Three ways to have the messages of a key handled in order, each behind the same endpoint with the same number outstanding:
 * in-order delivery over Firestore; the article's algorithm; and native ordering keys.
 */
import { ack, type Middleware, retry, silent, type SweepContext, TransientError } from 'pubsub-guarantees';
import { orderedDelivery, type StreamWake } from 'pubsub-guarantees/order';
import { firestoreStreams } from 'pubsub-guarantees/order/firestore';
import { CONSUMER } from './receiving.ts';
import type { World } from './world.ts';

const SWEEP_MS = 1_000;
const SWEEP_TIME_MS = 60_000;

export type Way = Readonly<{
  name: 'inOrder' | 'article' | 'native';
  /** The subscription is one with message ordering, and messages carry the key as ordering key. */
  isOrdered: boolean;
  start(world: World): Readonly<{ middleware: Middleware; stop(): Promise<void> }>;
}>;

/**
 * With its sweep, every second here. A failed message is tried again at once, as a subscription without a retry policy
 * does: a wake-up that is asked for is a visit in this process.
 */
export const ours: Way = {
  name: 'inOrder',
  isOrdered: false,
  start({ firestore }) {
    const work = new Set<Promise<unknown>>();
    const stopped = new AbortController();
    const contextNow = (): SweepContext => ({
      consumer: CONSUMER,
      now: Date.now,
      deadline: performance.now() + SWEEP_TIME_MS,
      signal: stopped.signal,
      log: silent,
    });
    const run = (job: Promise<unknown>): void => {
      // What fails is left to the next sweep.
      const done = job.catch(() => undefined).finally(() => work.delete(done));
      work.add(done);
    };
    let visit: StreamWake | undefined;
    const streams = orderedDelivery(firestoreStreams(firestore), {
      retry: { min: '1ms' },
      // It waits by itself for what is due so soon.
      wake: (stream) => {
        if (visit !== undefined && !stopped.signal.aborted) run(visit(stream, contextNow()));
      },
    });
    let timer: NodeJS.Timeout | undefined;
    return {
      middleware: (next) => {
        visit = streams.wake(next);
        const sweep = streams.sweep(next);
        timer = setInterval(() => run(sweep(contextNow())), SWEEP_MS);
        return streams.middleware(next);
      },
      stop: async () => {
        clearInterval(timer);
        stopped.abort();
        await Promise.all(work);
      },
    };
  },
};

/**
 * A transaction reads the key's counter. The next number is handled and the counter moves; what is ahead is refused,
 * and Pub/Sub delivers it again.
 */
export const article: Way = {
  name: 'article',
  isOrdered: false,
  start({ firestore }) {
    const counters = firestore.collection('article-counters');
    return {
      middleware: (next) => async (message, context) => {
        const number = Number(message.attributes['sequence']);
        const counter = counters.doc(message.attributes['sequenceKey'] ?? '');
        return firestore.runTransaction(async (transaction) => {
          const last = Number((await transaction.get(counter)).get('last') ?? 0);
          if (number <= last) return ack('stale');
          if (number > last + 1) return retry(new TransientError('AHEAD', 'it is not its turn'));
          const outcome = await next(message, context);
          if (outcome.kind === 'ack') transaction.set(counter, { last: number });
          return outcome;
        });
      },
      stop: async () => {},
    };
  },
};

/**
 * Pub/Sub delivers the messages of a key in order, and after a nack again from that one on. Google's client for Node runs
 * the listener for the next message while the last one is running, so a chain keeps the handlers of a key from
 * overlapping, as the clients for other languages do by themselves. What was delivered behind a failed message is
 * refused with it.
 */
export const native: Way = {
  name: 'native',
  isOrdered: true,
  start() {
    const chains = new Map<string, Promise<unknown>>();
    const failed = new Map<string, number>();
    return {
      middleware: (handle) => (message, context) => {
        const key = message.orderingKey ?? '';
        const number = Number(message.attributes['sequence']);
        const run = (chains.get(key) ?? Promise.resolve()).then(async () => {
          const firstFailed = failed.get(key);
          if (firstFailed !== undefined && number > firstFailed)
            return retry(new TransientError('BEHIND', 'behind a failure'));
          failed.delete(key);
          const outcome = await handle(message, context);
          if (outcome.kind !== 'ack') failed.set(key, number);
          return outcome;
        });
        chains.set(key, run);
        return run;
      },
      stop: async () => {},
    };
  },
};
