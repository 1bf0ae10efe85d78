/** `pubsub-guarantees/sequence`: numbers for publishers. The store has an entry point of its own: `/order/firestore`. */
export type { CounterStore } from './counter-store.ts';
export { type Numbered, type Sequencer, type SequencerOptions, sequencer } from './sequencer.ts';
