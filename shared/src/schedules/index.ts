/** `pubsub-guarantees/schedules`: delayed messages with a key. The store has an entry point of its own: `/schedules/firestore`. */
export type { EntryState, LedgerTimes } from './entry.ts';
export { lazyLedger } from './lazy-ledger.ts';
export type { Ledger, TransactionalLedger } from './ledger.ts';
export {
  type Change,
  type ScheduleParts,
  type Schedules,
  schedules,
  type SchedulesOptions,
  type Slot,
} from './schedules.ts';
export { type ScheduleSweep, sweepSchedules } from './sweep.ts';
export type { ListOptions, ScheduleList, ScheduleView } from './views.ts';
