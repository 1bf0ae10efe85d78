/** What was injected, in the order in which it was decided. The oldest goes first when there is too much of it. */
import type { ActionType, Service } from './plan.ts';

export type FaultRecord = Readonly<{
  /** Counts up from 1 since the plan was set; gaps never occur. */
  sequence: number;
  /** By the clock of the stack, in milliseconds since the epoch. */
  timeMs: number;
  service: Service;
  method: string;
  resource: string;
  /** The number of the call, counted from 1 for this method and resource. */
  n: number;
  /** Which rule of the plan; null for a restart that was asked for directly. */
  rule: number | null;
  action: ActionType;
  /** Why the service does not do this to that message or call; then nothing was injected. */
  skipped?: string;
}>;

export type Records = Readonly<{
  add(record: Omit<FaultRecord, 'sequence'>): void;
  all(): readonly FaultRecord[];
  dropped(): number;
  clear(): void;
}>;

/** Some 20 MB. */
const MAX_RECORDS = 100_000;

export function createRecords(most = MAX_RECORDS): Records {
  let kept: FaultRecord[] = [];
  /** Where the oldest is: moving all of them at each addition would cost too much. */
  let start = 0;
  let sequence = 0;
  return {
    add(record) {
      sequence += 1;
      kept.push({ sequence, ...record });
      if (kept.length - start > most) start += 1;
      if (start > most) {
        kept = kept.slice(start);
        start = 0;
      }
    },
    all: () => kept.slice(start),
    dropped: () => sequence - (kept.length - start),
    clear() {
      kept = [];
      start = 0;
      sequence = 0;
    },
  };
}
