/**
 * All parts around one ledger on virtual time: the stage, the queue, the republisher, programs and the sweep.
 */
import { deadLettering } from '../../../shared/src/dead-letter/dead-lettering.ts';
import { delay } from '../../../shared/src/delay/delay.ts';
import { type MemoryTasks, memoryTasks } from '../../../shared/src/tasks/memory.ts';
import { republish, type RepublishOptions } from '../../../shared/src/delay/republish.ts';
import type { Task, TaskQueue } from '../../../shared/src/tasks/task-queue.ts';
import { compose, type Context, type Handler } from '../../../shared/src/handler.ts';
import { silent } from '../../../shared/src/log.ts';
import type { Message } from '../../../shared/src/message.ts';
import { ack, type Outcome } from '../../../shared/src/outcome.ts';
import type { PayloadStore } from '../../../shared/src/payload/payload-store.ts';
import { memoryPublisher } from '../../../shared/src/testing/memory-publisher.ts';
import { type VirtualClock, virtualClock } from '../../../shared/src/testing/virtual-clock.ts';
import type { SweepContext } from '../../../shared/src/handler.ts';
import { entryId, type LedgerTimes } from '../../../shared/src/schedules/entry.ts';
import type { Ledger } from '../../../shared/src/schedules/ledger.ts';
import { type MemoryLedger, memoryLedger } from '../../../shared/src/schedules/memory.ts';
import { schedules } from '../../../shared/src/schedules/schedules.ts';
import { sweepSchedules } from '../../../shared/src/schedules/sweep.ts';

export const TOPIC = 'projects/p/topics/out';
export const SOURCE = 'projects/p/subscriptions/in';
export const CONSUMER = 'delay';
export const START = Date.UTC(2030, 0, 1);

export type PlayOptions = Readonly<{
  times?: Partial<LedgerTimes>;
  ledgerFor?: 'keys' | 'all';
  payloads?: PayloadStore;
  /** Wraps the ledger, or the queue, of the stage, the republisher and the sweep. */
  wrapLedger?: (ledger: MemoryLedger) => Ledger;
  /** Of the republisher, instead of `wrapLedger`. */
  wrapFiring?: (ledger: MemoryLedger) => Ledger;
  wrapQueue?: (queue: MemoryTasks) => TaskQueue;
  republisher?: Partial<RepublishOptions>;
  /** The clock of stage and republisher minus the true one. */
  skewMs?: number;
  /** Whether tasks are dispatched when they fall due. Default true. */
  dispatches?: boolean;
}>;

export function play(options: PlayOptions = {}) {
  const clock = virtualClock(START);
  const { skewMs = 0, times = {}, ledgerFor = 'keys', payloads, dispatches = true } = options;
  const worker = { ...clock, now: () => clock.now() + skewMs };
  const memory = memoryLedger({ clock, times });
  const tasks = memoryTasks({ clock });
  const ledger = options.wrapLedger?.(memory) ?? memory;
  const queue = options.wrapQueue?.(tasks) ?? tasks;
  const target = memoryPublisher();
  const dead = memoryPublisher();
  const publishedAt: number[] = [];
  const passed: Message[] = [];
  const next: Handler = async (message) => {
    passed.push(message);
    return ack();
  };
  const stored = payloads === undefined ? {} : { payloads };
  const handler = compose(next, [
    delay(queue, { clock: worker, topic: TOPIC, ledger, ledgerFor, ...stored }),
  ]);
  const context = contextOf(worker);
  const publisher = {
    publish: async (message: Parameters<typeof target.publish>[0]) => {
      publishedAt.push(clock.now());
      return target.publish(message);
    },
  };
  const fire = republish(
    { publisher, queue, deadLetters: deadLettering(dead, 'dead') },
    {
      allowedTopics: [TOPIC],
      ledger: options.wrapFiring?.(memory) ?? ledger,
      clock: worker,
      log: silent,
      ...stored,
      ...options.republisher,
    },
  );
  const dispatch = ({ body, scheduleTimeMs }: Task, retryCount = 0) =>
    fire({ body, etaMs: scheduleTimeMs, retryCount });
  if (dispatches) tasks.dispatchTo(dispatch);
  const sweep = sweepSchedules(ledger, queue, { clock: worker });

  let ids = 0;
  /** As the server publishes it now. */
  const message = (attributes: Record<string, string>, data = 'hello'): Message => {
    ids += 1;
    return {
      id: String(1_000 + ids),
      data: Buffer.from(data),
      attributes,
      publishTime: new Date(clock.now()),
    };
  };
  return {
    clock,
    memory,
    tasks,
    target,
    dead,
    passed,
    publishedAt,
    message,
    dispatch,
    deliver: (received: Message): Promise<Outcome> => clock.until(handler(received, context)),
    /** Without waiting on virtual time, for interleavings. */
    handle: (received: Message): Promise<Outcome> => handler(received, context),
    sweep: (given: Partial<SweepContext> = {}) => clock.until(sweep({ ...sweepContext(clock), ...given })),
    schedules: schedules(memory, queue, {
      clock: worker,
      consumer: CONSUMER,
      source: SOURCE,
      topic: TOPIC,
      ...stored,
    }),
    entry: (key: string) => memory.entries().get(entryId({ consumer: CONSUMER, source: SOURCE, key })),
    published: () => target.published.map(({ data }) => Buffer.from(data).toString()),
  };
}

export const reasonOf = (outcome: Outcome): string =>
  outcome.kind === 'ack' ? outcome.reason : `${outcome.kind} ${String((outcome.error as Error).message)}`;

const contextOf = (clock: VirtualClock): Context => ({ ...sweepContext(clock), source: SOURCE });

const sweepContext = (clock: VirtualClock): SweepContext => ({
  consumer: CONSUMER,
  now: () => clock.now(),
  deadline: clock.monotonic() + 10 ** 12,
  signal: new AbortController().signal,
  log: silent,
});
