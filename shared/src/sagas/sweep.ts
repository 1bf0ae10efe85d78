/**
 * The sweep of sagas: instances whose timer has not come get a tick in its place, as a message to their orchestrator. So
 * whatever was dead-lettered, purged or lost with a task, time goes on for every instance that was started.
 *
 * Several sweeps may run at once, beside everything else, and need no definitions: the orchestrator judges each tick in a
 * transaction of its own, and one too many is stale. What a sweep that dies has not published is due for the next one.
 */
import { randomUUID } from 'node:crypto';
import { type Clock, systemClock } from '../clock.ts';
import { codeOf, textOf } from '../errors.ts';
import { identifierHash } from '../hash.ts';
import {
  checkOptions,
  clock as aClock,
  port,
  publisher as aPublisher,
  required,
  sweepContext,
  text,
} from '../options.ts';
import type { Publisher } from '../publish/publisher.ts';
import type { Sweep, Tally } from '../sweep.ts';
import { SWEEP_GRACE_MS } from './decide.ts';
import { sweepMessage } from './messages.ts';
import { reportOpen } from './report.ts';
import type { DueInstance, SagaStore } from './saga-store.ts';

export type SagaSweepOptions = Readonly<{
  /** The orchestrator's topic. */
  topic: string;
  /** Default: the machine's. */
  clock?: Clock;
}>;

/** Published at once, and read of one shard at a time. */
const CONCURRENCY = 8;
const PAGE = 100;

/**
 * Call it every five minutes or more often. Looks at the instances of `context.consumer`, the orchestrator's; `due` are those
 * whose timer is two minutes late, `done` those whose orchestrator was sent a tick.
 *
 * @example
 * const sweep = sweepSagas(firestoreSagas(firestore), publisher, { topic: 'saga' });
 * const { due, done } = await sweep(context);
 */
export function sweepSagas(
  store: Pick<SagaStore<never>, 'due' | 'list' | 'shards'>,
  publisher: Publisher,
  options: SagaSweepOptions,
): Sweep {
  port(['due', 'list'], 'a store of sagas, for example firestoreSagas(firestore)')('store', store);
  aPublisher('publisher', publisher);
  checkOptions<SagaSweepOptions>(options, { topic: required(text), clock: aClock });
  const { topic, clock = systemClock() } = options;

  return async (context) => {
    sweepContext('context', context);
    const total: Tally = { due: 0, done: 0, failed: 0, isWhole: true };
    const { consumer, deadline, signal, log } = context;
    const isOver = (): boolean => clock.monotonic() >= deadline || signal.aborted;

    const wake = async ({ ref }: DueInstance): Promise<void> => {
      total.due += 1;
      try {
        await publisher.publish(sweepMessage(ref, topic, randomUUID()));
        total.done += 1;
        log.warn('a saga whose timer did not come was sent another', {
          event: 'saga_woken',
          saga: ref.saga,
          instance: identifierHash(ref.id),
        });
      } catch (error) {
        total.failed += 1;
        const fields = { saga: ref.saga, code: codeOf(error), error: textOf(error) };
        log.warn('a saga was not woken; the next sweep tries again', fields);
      }
    };
    const shards = Array.from({ length: store.shards }, (_, shard) => shard).values();
    const work = async (): Promise<void> => {
      for (const shard of shards) {
        for (let after: string | undefined; !isOver(); ) {
          const page = await store.due(consumer, shard, SWEEP_GRACE_MS, PAGE, after);
          for (const item of page.items) if (!isOver()) await wake(item);
          after = page.next;
          if (after === undefined) break;
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(CONCURRENCY, store.shards) }, work));
    total.isWhole = !isOver();
    if (total.isWhole) await reportOpen(store, context, clock.now());
    return total;
  };
}
