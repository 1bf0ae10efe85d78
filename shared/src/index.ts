/** The public API. Adapters that load a vendor's client have entry points of their own (see the package's exports). */
export { ATTRIBUTE, LONGEST_DELAY_SECONDS, parseWishes, type Sequence, type Wishes } from './attributes.ts';
export { type Cancel, type Clock, sleep, systemClock } from './clock.ts';
export { type Duration, toMilliseconds } from './duration.ts';
export { ConfigError, PermanentError, TransientError } from './errors.ts';
export { compose, type Context, type Handler, type Middleware } from './handler.ts';
export { jsonLog, type Log, type LogFields, silent } from './log.ts';
export { type Attributes, checkOutgoing, LIMITS, type Message, type OutgoingMessage } from './message.ts';
export { ack, type AckReason, deadLetter, type Outcome, retry } from './outcome.ts';
export type { Publisher } from './publish/publisher.ts';
