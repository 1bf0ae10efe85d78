import { systemClock } from '../clock.ts';
import { memoryInbox } from '../dedup/inbox-memory.ts';
import { sagaStoreContract } from './contract.ts';
import { memorySagas, memoryStepRecords } from './memory.ts';
import { stepRecordsContract } from './records-contract.ts';

const clock = systemClock();

sagaStoreContract('in memory', async () => {
  const inbox = memoryInbox({ clock });
  return { inbox, store: memorySagas(inbox, { clock }), close: async () => {} };
});

stepRecordsContract('in memory', async () => {
  const inbox = memoryInbox({ clock });
  return {
    inbox,
    records: memoryStepRecords(inbox),
    get: async (transaction, id) => Number((await transaction.get(id)) ?? 0),
    set: (transaction, id, value) => transaction.set(id, value),
    read: async (id) => Number(inbox.peek(id) ?? 0),
    close: async () => {},
  };
});
