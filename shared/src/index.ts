/**
 * What every program needs: messages, handlers and outcomes, the preset, errors, time and the log. Each capability has
 * an entry point of its own, and so has each adapter that loads a vendor's client (see the package's `exports`).
 */
export type { BodySchema, TypedHandler, TypedMessage } from './body-schema.ts';
export { type Clock, sleep, systemClock } from './clock.ts';
export { contextFor } from './context.ts';
export { type Duration, toMilliseconds } from './duration.ts';
export { ConfigError, PermanentError, TransientError } from './errors.ts';
export { guarded, type GuardedHandler, type GuardedOptions } from './guarded.ts';
export { compose, type Context, type Handler, type Middleware, type SweepContext } from './handler.ts';
export { identifierHash } from './hash.ts';
export { consoleLog, jsonLog, type JsonLogOptions, type Log, type LogFields, silent } from './log.ts';
export type { Attributes, Message, OutgoingMessage } from './message.ts';
export { ack, type AckReason, deadLetter, type Outcome, retry } from './outcome.ts';
export { type MessageParts, outgoing } from './publish/compose-message.ts';
export type { Publisher } from './publish/publisher.ts';
export type { Sweep, Swept } from './sweep.ts';
