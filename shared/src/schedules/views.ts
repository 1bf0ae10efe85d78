/**
 * What a program sees of schedules: nothing of generations and tasks.
 */
import { PermanentError } from '../errors.ts';
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
  /** Only what is to be delivered before this instant; sorted by it where there is no prefix. */
  before?: Date;
  /** Of the key; sorted by key. */
  prefix?: string;
  /** 1 to 500, default 100. A page may hold fewer and still not be the last. */
  pageSize?: number;
  /** `nextPageToken` of the page before, with the same options. It names a key: not for strangers. */
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
  const { ref, state, instantMs } = entry;
  return {
    key: ref.key ?? '',
    state,
    isPending: isPending(entry),
    ...(instantMs !== undefined && { deliverAt: new Date(instantMs) }),
  };
}

export const lister =
  (ledger: Ledger, consumer: string, source: string) =>
  async (options: ListOptions = {}): Promise<ScheduleList> => {
    const { before, prefix = '', pageSize = PAGE, pageToken } = options;
    if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > LARGEST_PAGE) {
      const text = `pageSize is ${pageSize}; accepted: 1 to ${LARGEST_PAGE}`;
      throw new PermanentError('INVALID_PAGE_SIZE', text);
    }
    if (before !== undefined && Number.isNaN(before.getTime())) {
      throw new PermanentError('INVALID_BEFORE', 'before is an invalid Date; accepted: a valid one');
    }
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
