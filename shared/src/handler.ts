/**
 * Handler, context, middleware, and how they are put together.
 *
 * `compose` catches at every boundary, so a middleware always receives an outcome and never an exception:
 * nothing thrown can slip past a layer that holds a lease. What is not an outcome at all counts as a retry.
 */
import { PermanentError, TransientError } from './errors.ts';
import type { Log } from './log.ts';
import type { Message } from './message.ts';
import { isOutcome, type Outcome, outcomeOf } from './outcome.ts';
import { callable, listOf } from './options.ts';

export type Context = Readonly<{
  /** Names the consuming function or subscriber; scopes everything that is stored for it. */
  consumer: string;
  /** The subscription that the message came through, as configured (default: as delivered). */
  source: string;
  /** Wall clock, milliseconds since the epoch. */
  now(): number;
  /** The time of the monotonic clock (see Clock) by which this delivery must be settled. */
  deadline: number;
  /** Aborted when a lease is lost or the delivery's time runs out. Work that goes on after that may be repeated. */
  signal: AbortSignal;
  log: Log;
  /** Grows with every lease on this message or key: a guard for the handler's own writes. From the innermost lease. */
  fencingToken?: string;
  /** True when the message is dead-lettered if its handler returns no outcome once more. */
  isLastTry?: boolean;
  /** True when this delivery runs without a guarantee, by configuration, because its store was down. */
  possibleDuplicate?: boolean;
}>;

/** The context of a sweep or a wake-up, which is no delivery. The messages that it runs have a source of their own. */
export type SweepContext = Omit<Context, 'source' | 'fencingToken' | 'possibleDuplicate'>;

export type Handler = (message: Message, context: Context) => Promise<Outcome>;
export type Middleware = (next: Handler) => Handler;

/**
 * `compose(handler, [outermost, …, innermost])`. Throws ConfigError for a handler or a middleware that is no function, and
 * for a middleware that makes none.
 *
 * @example
 * compose(async (message) => ack(), [deadLettering(publisher, 'dead'), dedup(claims)]);
 */
export function compose(handler: Handler, middleware: readonly Middleware[]): Handler {
  callable('handler', handler);
  listOf(callable, 'a list of middleware, from the outermost to the innermost')('middleware', middleware);
  return middleware.reduceRight<Handler>((next, wrap) => caught(made(wrap(next)), next), caught(handler));
}

/** A common mistake is `compose(handler, [dedup])` in place of `[dedup(claims)]`. */
function made(handler: Handler): Handler {
  callable('what a middleware makes', handler);
  return handler;
}

/** What a handler must have left of a delivery: with no more than that it begins nothing. */
export type LeastTime = Readonly<{ milliseconds: number; option: string }>;

const leastTimes = new WeakMap<Handler, LeastTime>();

/**
 * Marks `handler` with it, so that a receiver with too short a time limit is refused at the start and not with each
 * message.
 */
export function withLeastTime(handler: Handler, least: LeastTime): Handler {
  leastTimes.set(handler, least);
  return handler;
}

/** The longest of a handler and what it is composed of; undefined where none is marked. */
export const leastTimeOf = (handler: Handler): LeastTime | undefined => leastTimes.get(handler);

function caught(handler: Handler, inner?: Handler): Handler {
  const [own, inside] = [leastTimes.get(handler), inner && leastTimes.get(inner)];
  const longest = (inside?.milliseconds ?? -1) > (own?.milliseconds ?? -1) ? inside : own;
  const catches = catching(handler);
  return longest === undefined ? catches : withLeastTime(catches, longest);
}

function catching(handler: Handler): Handler {
  return async (message, context) => {
    try {
      const outcome: unknown = await handler(message, context);
      return isOutcome(outcome) ? outcome : outcomeOf(noOutcome(outcome, context.isLastTry === true));
    } catch (error) {
      return outcomeOf(error);
    }
  };
}

/** A handler in JavaScript that forgets its `return` must not count as done. */
export function noOutcome(value: unknown, isLastTry: boolean): TransientError | PermanentError {
  const text = `the handler answered with ${value === null ? 'null' : typeof value}; accepted: an outcome, for example ack()`;
  return isLastTry ? new PermanentError('NO_OUTCOME', text) : new TransientError('NO_OUTCOME', text);
}
