/** `pubsub-guarantees/payload`: where large messages wait. The store has an entry point of its own: `/payload/firestore`. */
export { lazyPayloads } from './lazy-payloads.ts';
export type { PayloadRef, PayloadStore, PayloadSweep } from './payload-store.ts';
