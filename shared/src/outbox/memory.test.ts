import { systemClock } from '../clock.ts';
import { outboxContract } from './contract.ts';
import { memoryOutbox, type MemoryOutboxTransaction } from './memory.ts';

outboxContract<MemoryOutboxTransaction>('memory', async () => {
  const store = memoryOutbox({ clock: systemClock(), maxAttempts: 50 });
  return { store, transact: (work) => store.transact(work), close: async () => {} };
});
