/** What a database may be given when it is made. */
import type { Change } from './doc.ts';
import type { IndexEntryCheck } from './index-entry-limits.ts';
import type { Microseconds } from './time.ts';

export type DatabaseOptions = Readonly<{
  /** Called with the changes of each commit as they are applied, and with what is restored; it may not throw. */
  onCommit?: (changes: readonly Change[]) => void;
  /** Called with the changes of each commit once they are applied, and not with what is restored; it may not throw. */
  onWritten?: (changes: readonly Change[]) => void;
  /** Commit times are later than this. Default: 0. */
  after?: Microseconds;
  /** Of each document that is written. Default: that of the automatic indexes. */
  checkEntries?: IndexEntryCheck;
}>;
