import { systemClock } from '../clock.ts';
import { streamStoreContract } from './contract.ts';
import { memoryStreams } from './memory.ts';

const close = async (): Promise<void> => undefined;

streamStoreContract('memory', async () => ({ store: memoryStreams({ clock: systemClock() }), close }));
