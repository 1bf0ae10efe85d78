/**
 * Recurrences of the job store in memory: up to which due time each is decided.
 */
import type { Clock } from '../clock.ts';
import type { Network } from '../outbox/memory-table.ts';
import type { JobStore, RecurrenceId } from './job-store.ts';
import type { JobTable } from './memory-table.ts';
import { memoryWrites } from './memory-writes.ts';
import type { mayDecide } from './recurrence.ts';

type Recurrences = Pick<JobStore<unknown>, 'recurrences' | 'recur'>;

export function memoryRecurrences(
  rules: Readonly<{ mayDecide: typeof mayDecide }>,
  table: JobTable,
  clock: Clock,
  network: Network,
): Recurrences {
  // One request, whatever it writes.
  const { open, write, stagedIn, commit, close } = memoryWrites(table, clock, (_request, send) => send());
  const keyOf = ({ role, name, cron }: RecurrenceId): string => JSON.stringify([role, name, cron]);

  return {
    recurrences: (ids) =>
      network('recurrences', async () => {
        const nowMs = clock.now();
        const madeMs = ids.map((id) => {
          const known = table.recurrences.get(keyOf(id)) ?? nowMs;
          table.recurrences.set(keyOf(id), known);
          return known;
        });
        return { nowMs, madeMs };
      }),
    recur: ({ id, fromMs, toMs, jobs }) =>
      network('recur', async () => {
        const tx = open();
        try {
          await write(tx, jobs);
          if (!rules.mayDecide(table.recurrences.get(keyOf(id)), fromMs)) return false;
          commit(stagedIn(tx));
          table.recurrences.set(keyOf(id), toMs);
          return true;
        } finally {
          close(tx);
        }
      }),
  };
}
