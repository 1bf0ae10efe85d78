/** `pubsub-guarantees/delay`: later. Task queues are under `/tasks`, what can be replaced or withdrawn under `/schedules`. */
export { type DelayOptions, delay } from './delay.ts';
export { republish, type RepublishOptions, type RepublishPorts } from './republish.ts';
export { type RetryLaterOptions, retryLater } from './retry-later.ts';
