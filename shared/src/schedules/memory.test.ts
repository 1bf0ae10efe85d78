import { systemClock } from '../clock.ts';
import { ledgerContract } from './contract.ts';
import { memoryLedger } from './memory.ts';

ledgerContract('in memory', async () => {
  const ledger = memoryLedger({ clock: systemClock(), times: { endedRetentionMs: 10 ** 13 } });
  return { ledger, transact: (work) => ledger.transact(work), close: async () => {} };
});
