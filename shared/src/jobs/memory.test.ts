import { virtualClock } from '../testing/index.ts';
import { outgoingOf } from '../outbox/rows.ts';
import { jobsContract } from './contract.ts';
import { memoryJobs } from './memory.ts';
import { memoryJobTable } from './memory-table.ts';

jobsContract('in memory', async () => {
  const clock = virtualClock();
  const table = memoryJobTable();
  const store = memoryJobs({ clock, table });
  return {
    store,
    another: () => memoryJobs({ clock, table }),
    transact: (work) => store.transact(work),
    age: (milliseconds) => clock.advance(milliseconds),
    put: async (tx, name) => tx.set(name, true),
    isThere: async (name) => store.peek(name) === true,
    published: async () => store.rows().map(({ row }) => Buffer.from(outgoingOf(row).data).toString()),
    logged: async (id) => table.log.filter((row) => String(row.id) === id).length,
    close: async () => {},
  };
});
