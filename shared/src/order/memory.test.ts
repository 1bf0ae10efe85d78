import { systemClock } from '../clock.ts';
import { orderContract } from './contract.ts';
import { counterContract } from './counter-contract.ts';
import { memoryCounters } from './memory-counters.ts';
import { memoryOrder } from './memory.ts';

const close = async (): Promise<void> => undefined;

orderContract('memory', async () => ({ store: memoryOrder({ clock: systemClock() }), close }));
counterContract('memory', async () => ({ counters: memoryCounters(), close }));
