import { systemClock } from '../clock.ts';
import { orderContract } from './contract.ts';
import { counterContract } from '../sequence/contract.ts';
import { memoryCounters } from '../sequence/memory.ts';
import { memoryOrder } from './memory.ts';
import { streamContract } from './stream-contract.ts';

const close = async (): Promise<void> => undefined;

for (const contract of [orderContract, streamContract]) {
  contract('memory', async () => ({ store: memoryOrder({ clock: systemClock() }), close }));
}
counterContract('memory', async () => ({ counters: memoryCounters(), close }));
