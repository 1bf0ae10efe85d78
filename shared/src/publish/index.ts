/** `pubsub-guarantees/publish`: the stages that publish, and what a message may be. Pub/Sub's client is under `/publish/pubsub`. */
export { checkOutgoing, LIMITS } from '../message.ts';
export { type ForwardOptions, forward } from './forward.ts';
export { type PublishingOptions, publishing } from './publishing.ts';
export { type MessageSchema, schemaOf } from './schema.ts';
export { untilStopped } from './until-stopped.ts';
