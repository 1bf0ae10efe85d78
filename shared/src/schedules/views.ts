/**
 * What a program sees of schedules: nothing of generations and tasks.
 */
import { anyText, type Check, checkOptions, text, whole } from '../options.ts';
import { refused, refusedAs } from '../errors.ts';
import { type Entry, type EntryState, isPending } from './entry.ts';
import type { Ledger } from './ledger.ts';

export type ScheduleView = Readonly<{
  key: string;
  state: EntryState;
  /** Unscheduled, scheduled or firing. One that is `refused` is listed too, and waits for `reopen`. */
  isPending: boolean;
  /** Absent where a cancel came before any schedule. */
  deliverAt?: Date;
}>;

export type ListOptions = Readonly<{
  /** Only what is to be delivered before this time; sorted by it where there is no prefix (default: all). */
  before?: Date;
  /** Of the key; sorted by key (default: all). */
  prefix?: string;
  /** 1 to 500, default 100. A page may hold fewer and still not be the last. */
  pageSize?: number;
  /**
   * `nextPageToken` of the page before, with the same options (default: the first page). It names a key: not for
   * strangers.
   */
  pageToken?: string;
}>;

export type ScheduleList = Readonly<{
  schedules: readonly ScheduleView[];
  /** Absent on the last page. */
  nextPageToken?: string;
}>;

const PAGE = 100;
const LARGEST_PAGE = 500;

export function viewOf(entry: Entry): ScheduleView {
  const { ref, state, dueTimeMs } = entry;
  return {
    key: ref.key ?? '',
    state,
    isPending: isPending(entry),
    ...(dueTimeMs !== undefined && { deliverAt: new Date(dueTimeMs) }),
  };
}

const date: Check = (path, value) => {
  if (!(value instanceof Date)) throw refused(path, value, 'a Date');
  if (Number.isNaN(value.getTime())) throw refusedAs(path, 'an invalid Date', 'a valid one');
};

export const lister =
  (ledger: Ledger, consumer: string, source: string) =>
  async (options: ListOptions = {}): Promise<ScheduleList> => {
    checkOptions<ListOptions>(options, {
      before: date,
      prefix: anyText,
      pageSize: whole(1, LARGEST_PAGE),
      pageToken: text,
    });
    const { before, prefix = '', pageSize = PAGE, pageToken } = options;
    const { items, next } = await ledger.list({
      consumer,
      source,
      prefix,
      limit: pageSize,
      ...(before !== undefined && { beforeMs: before.getTime() }),
      ...(pageToken !== undefined && { after: pageToken }),
    });
    return { schedules: items.map(viewOf), ...(next !== undefined && { nextPageToken: next }) };
  };
