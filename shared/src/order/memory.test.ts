import { systemClock } from '../clock.ts';
import { streamStoreContract } from './contract.ts';
import { deliveryContract } from './delivery-contract.ts';
import { memoryStreams } from './memory.ts';

const close = async (): Promise<void> => undefined;

for (const contract of [streamStoreContract, deliveryContract]) {
  contract('memory', async () => ({ store: memoryStreams({ clock: systemClock() }), close }));
}
