/** `pubsub-guarantees/dead-letters`: the stage that publishes dead letters, and how one is read back. */
export { decodeMessage } from '../stored-message.ts';
export { type DeadLetteringOptions, deadLettering, WHOLE_MESSAGE } from './dead-lettering.ts';
