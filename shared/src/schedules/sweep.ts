/**
 * The sweep of the ledger: entries that were committed without a task get one, and tasks that were lost (purged, given
 * up, or gone with a republisher that died while it was firing) are put back under a new name.
 *
 * Several sweeps may run at once, beside everything else: each entry is judged in a transaction of its own. A sweep that
 * dies leaves nothing but a task that may be created twice under one name.
 */
import type { Clock } from '../clock.ts';
import { codeOf, textOf } from '../errors.ts';
import type { TaskQueue } from '../delay/task-queue.ts';
import type { SweepContext } from '../order/sweep.ts';
import { ATTR, count, gauge, isMeasured } from '../telemetry/instruments.ts';
import { markScheduled, recover } from './decide.ts';
import { enqueue } from './enqueue.ts';
import type { Ledger } from './ledger.ts';
import {
  checkOptions,
  clock as aClock,
  ledger as aLedger,
  required,
  taskQueue as aQueue,
} from '../options.ts';

export type ScheduleSweep = Readonly<{
  /** Entries that were past their grace. */
  due: number;
  /** Entries that have a task now. */
  recovered: number;
  /** Entries that could not be read, or whose task could not be created; they stay due. */
  failed: number;
}>;

type Total = { -readonly [Field in keyof ScheduleSweep]: ScheduleSweep[Field] };

/** Entries worked on at once, and per query. */
const CONCURRENCY = 8;
const PAGE = 100;

/**
 * Call it every five minutes or more often. Looks at the entries of `context.consumer`, to the end or until the
 * context's deadline. Rejects with `STORE_UNAVAILABLE` when the store cannot be asked.
 */
export function sweepSchedules(
  ledger: Ledger,
  queue: TaskQueue,
  options: Readonly<{ clock: Clock }>,
): (context: SweepContext) => Promise<ScheduleSweep> {
  aLedger('ledger', ledger);
  aQueue('queue', queue);
  checkOptions<typeof options>(options, { clock: required(aClock) });
  const { clock } = options;
  const recovered = async (id: string, context: SweepContext): Promise<boolean> => {
    const { answer } = await ledger.change(id, recover(ledger.times));
    if (answer === 'movedOn') return false;
    const limits = { deadline: context.deadline, signal: context.signal };
    const { task } = await enqueue(queue, clock, answer.entry, limits);
    if (answer.entry.state === 'unscheduled') await ledger.change(id, markScheduled(answer.entry));
    const { state, attempt } = answer.entry;
    count('schedules', { [ATTR.consumer]: context.consumer, [ATTR.answer]: 'recovered' });
    context.log.warn('a schedule without a task was given one', { entry: id, task, state, attempt });
    return true;
  };
  const look = async (id: string, context: SweepContext, total: Total): Promise<void> => {
    total.due += 1;
    try {
      if (await recovered(id, context)) total.recovered += 1;
    } catch (error) {
      total.failed += 1;
      const fields = { entry: id, code: codeOf(error), error: textOf(error) };
      context.log.warn('a schedule was not put back; the next sweep tries again', fields);
    }
  };

  return async (context) => {
    const total: Total = { due: 0, recovered: 0, failed: 0 };
    const isOver = (): boolean => clock.monotonic() >= context.deadline || context.signal.aborted;
    let after: string | undefined;
    do {
      const page = await ledger.due(context.consumer, PAGE, after);
      const queueOf = page.items.values();
      const work = async (): Promise<void> => {
        for (const id of queueOf) {
          if (isOver()) return;
          await look(id, context, total);
        }
      };
      await Promise.all(Array.from({ length: Math.min(CONCURRENCY, page.items.length) }, work));
      after = page.next;
    } while (after !== undefined && !isOver());
    if (isMeasured()) {
      const pending = await ledger.pending(context.consumer);
      gauge('pendingSchedules', pending, { [ATTR.consumer]: context.consumer });
    }
    return total;
  };
}
