/**
 * The sweep of the ledger: entries that were committed without a task get one, and tasks that were lost (purged, given
 * up, or gone with a republisher that died while it was firing) are put back under a new name. A task that the queue
 * refuses for good is not asked for again: its entry is marked, keeps its message, and waits for `reopen`.
 *
 * Several sweeps may run at once, beside everything else: each entry is judged in a transaction of its own. A sweep that
 * dies leaves nothing but a task that may be created twice under one name.
 */
import { forEachAtMost } from '../async/pool.ts';
import { type Clock, systemClock } from '../clock.ts';
import { codeOf, PermanentError, textOf } from '../errors.ts';
import type { TaskQueue } from '../tasks/task-queue.ts';
import type { SweepContext } from '../handler.ts';
import type { Sweep, Tally } from '../sweep.ts';
import { ATTR, count, gauge, isMeasured } from '../telemetry/instruments.ts';
import { markRefusedKept, markScheduled, markTried, recover } from './decide.ts';
import { enqueue } from './enqueue.ts';
import type { Entry } from './entry.ts';
import type { DueEntry, Ledger } from './ledger.ts';
import {
  checkOptions,
  clock as aClock,
  ledger as aLedger,
  sweepContext,
  taskQueue as aQueue,
} from '../options.ts';

/** `due`: entries that were past their grace. `done`: those that have a task now. */
export type ScheduleSweep = Sweep<{
  /** Entries whose task the queue refuses for good; they are no longer due, and listed as refused. */
  refused: number;
}>;

type Total = Tally<{ refused: number }>;

/** The queue's word about one entry. */
class Refused extends Error {
  readonly entry: Entry;
  constructor(entry: Entry, cause: PermanentError) {
    super(cause.message, { cause });
    this.entry = entry;
  }
}

/** Entries worked on at once, read at a time of all shards together, and the fewest of one. */
const CONCURRENCY = 8;
const PAGES = 200;
const LEAST_PAGE = 10;
/** What cannot be read waits for a deployment. */
const UNREADABLE_PAUSE_MS = 600_000;

/**
 * Call it every five minutes or more often. Looks at the entries of `context.consumer`, to the end or until the
 * context's deadline. Rejects with `STORE_UNAVAILABLE` when the store cannot be asked.
 *
 * @example
 * const sweep = sweepSchedules(firestoreLedger(firestore), queue);
 * const { done, refused } = await sweep(context);
 */
export function sweepSchedules(
  ledger: Ledger,
  queue: TaskQueue,
  options: Readonly<{ clock?: Clock }> = {},
): ScheduleSweep {
  aLedger('ledger', ledger);
  aQueue('queue', queue);
  checkOptions<{ clock: Clock }>(options, { clock: aClock });
  const { clock = systemClock() } = options;
  const recovered = async (id: string, context: SweepContext): Promise<boolean> => {
    const { answer } = await ledger.change(id, recover(ledger.times));
    if (answer === 'movedOn') return false;
    const limits = { deadline: context.deadline, signal: context.signal };
    const { task } = await enqueue(queue, clock, answer.entry, limits).catch((error: unknown) => {
      throw error instanceof PermanentError ? new Refused(answer.entry, error) : error;
    });
    if (answer.entry.state === 'unscheduled') await ledger.change(id, markScheduled(answer.entry));
    const { state, attempt } = answer.entry;
    count('schedules', { [ATTR.consumer]: context.consumer, [ATTR.answer]: 'recovered' });
    context.log.warn('a schedule without a task was given one', { entry: id, task, state, attempt });
    return true;
  };
  /** Whether it is refused now. False where it has moved on, or where the store cannot be asked: it stays due. */
  const isMarked = async (id: string, { entry, cause }: Refused, context: SweepContext): Promise<boolean> => {
    try {
      const { answer } = await ledger.change(id, markRefusedKept(entry));
      if (answer === 'movedOn') return false;
    } catch {
      return false;
    }
    count('schedules', { [ATTR.consumer]: context.consumer, [ATTR.answer]: 'refused' });
    context.log.error('a schedule was refused by its queue for good', {
      event: 'schedule_refused',
      entry: id,
      code: codeOf(cause),
      error: textOf(cause),
    });
    return true;
  };
  /** What failed comes behind what was not tried. Where the store does not take that, it is tried again at once. */
  const behind = async (item: DueEntry, failure: unknown, context: SweepContext): Promise<void> => {
    try {
      if (codeOf(failure) === 'UNREADABLE_ENTRY')
        await ledger.defer(item, context.consumer, clock.now() + UNREADABLE_PAUSE_MS);
      else await ledger.change(item.id, markTried(ledger.times));
    } catch (error) {
      const fields = { entry: item.id, code: codeOf(error), error: textOf(error) };
      context.log.warn('a schedule was not put behind the others', fields);
    }
  };
  const look = async (item: DueEntry, context: SweepContext, total: Total): Promise<void> => {
    const { id } = item;
    total.due += 1;
    try {
      if (await recovered(id, context)) total.done += 1;
    } catch (error) {
      if (error instanceof Refused && (await isMarked(id, error, context))) {
        total.refused += 1;
        return;
      }
      total.failed += 1;
      const reason = error instanceof Refused ? error.cause : error;
      await behind(item, reason, context);
      const fields = { entry: id, code: codeOf(reason), error: textOf(reason) };
      context.log.warn('a schedule was not put back; the next sweep tries again', fields);
    }
  };

  return async (context) => {
    sweepContext('context', context);
    const total: Total = { due: 0, done: 0, failed: 0, isWhole: false, refused: 0 };
    const isOver = (): boolean => clock.monotonic() >= context.deadline || context.signal.aborted;
    /** How far each shard was read; those that were read to their end are not in it. */
    const open = new Map<number, string | undefined>();
    for (let shard = 0; shard < ledger.shards; shard += 1) open.set(shard, undefined);
    const limit = Math.max(Math.ceil(PAGES / ledger.shards), LEAST_PAGE);
    do {
      const pages = await Promise.all(
        [...open].map(
          async ([shard, after]) => [shard, await ledger.due(context.consumer, shard, limit, after)] as const,
        ),
      );
      // What was not tried for longest comes first, whatever its shard.
      const items = pages.flatMap(([, page]) => page.items).toSorted((one, other) => one.dueMs - other.dueMs);
      await forEachAtMost(CONCURRENCY, items, (item) => look(item, context, total), isOver);
      for (const [shard, { next }] of pages) {
        if (next === undefined) open.delete(shard);
        else open.set(shard, next);
      }
    } while (open.size > 0 && !isOver());
    total.isWhole = open.size === 0;
    if (isMeasured()) {
      const pending = await ledger.pending(context.consumer);
      gauge('pendingSchedules', pending, { [ATTR.consumer]: context.consumer });
    }
    return total;
  };
}
