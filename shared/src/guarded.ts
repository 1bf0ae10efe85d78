/**
 * A handler with the guarantees that it asks for around it, in the one order in which they hold.
 *
 * From the outside in: the wire contract is read and dead letters are published; a message that another
 * delivery works on is rescheduled; a delayed message becomes a task; a numbered message waits for its turn; a message
 * is claimed; the handler runs; what it wants published is published. `once` publishes the handler's own dead letters
 * inside its claim, so that a message that an operator sends again finds no record of itself. Inside `inOrder` it does
 * not: there the policy for poison messages decides whether a failing message keeps its place in the stream.
 */
import { type BodySchema, type TypedHandler, withBody } from './body-schema.ts';
import { deadLettering } from './dead-letter/dead-lettering.ts';
import { refused } from './errors.ts';
import { compose, type Handler, type Middleware } from './handler.ts';
import {
  callable,
  type Check,
  checkOptions,
  publisher as aPublisher,
  required,
  type Shape,
  text,
} from './options.ts';
import type { Publisher } from './publish/publisher.ts';
import { publishing } from './publish/publishing.ts';
import { propertyOf } from './shown-value.ts';

export type GuardedOptions = Readonly<{
  /** Publishes dead letters and what the handler returns, as `pubsubPublisher(client)` makes it. */
  publisher: Publisher;
  /** A topic's name in the publisher's project, or `projects/…/topics/…`. It needs a subscription that keeps what comes. */
  deadLetterTopic: string;
  /** Warns of attributes that only look like those of the contract, as `checkAttributes(options)` makes it (default: none). */
  attributes?: Middleware;
  /** Reschedules what another delivery works on, as `retryLater(queue, options)` makes it (default: none). */
  retryLater?: Middleware;
  /** Delayed delivery, as `delay(queue, options)` makes it (default: a message is handled when it comes). */
  later?: Middleware;
  /** In-order delivery, the middleware of `orderedDelivery(store, options)` (default: in the order of arrival). */
  inOrder?: Middleware;
  /** De-duplication, as `dedup(claims, options)` makes it (default: every delivery is handled). */
  once?: Middleware;
}>;

/** What a subscriber receives with; `inner` is what sweeps and wake-ups of `inOrder` run for a message that was held. */
export type GuardedHandler = Handler & Readonly<{ inner: Handler }>;

/**
 * Throws ConfigError `INVALID_OPTION` for a handler, a publisher or a stage that is none. Outcomes besides the
 * handler's own are those of the stages; a message whose attributes or body do not fit is a dead letter.
 *
 * @example
 * const order = z.object({ id: z.string(), cents: z.number().int() });
 * const handler = guarded({ schema: order, handle: async ({ body }) => charge(body.id, body.cents) }, {
 *   publisher: pubsubPublisher(pubsub),
 *   deadLetterTopic: 'dead-letters',
 *   once: dedup(firestoreClaims(firestore)),
 * });
 * receive(pubsub.subscription('orders-sub'), handler, { consumer: 'billing' });
 */
export function guarded<Body>(
  handler: Handler | Readonly<{ schema: BodySchema<Body>; handle: TypedHandler<Body> }>,
  options: GuardedOptions,
): GuardedHandler {
  checkOptions<GuardedOptions>(options, SHAPE);
  const { publisher, deadLetterTopic, attributes, retryLater, later, inOrder, once } = options;
  const deadLetters = deadLettering(publisher, deadLetterTopic);
  const claimed = once === undefined ? [] : inOrder === undefined ? [once, deadLetters] : [once];
  const inner = compose(plain(handler), [...claimed, publishing(publisher)]);
  const outer = [deadLetters, attributes, retryLater, later, inOrder].filter((stage) => stage !== undefined);
  return Object.assign(compose(inner, outer), { inner });
}

const SHAPE: Shape<Required<GuardedOptions>> = {
  publisher: required(aPublisher),
  deadLetterTopic: required(text),
  attributes: callable,
  retryLater: callable,
  later: callable,
  inOrder: callable,
  once: callable,
};

function plain<Body>(
  handler: Handler | Readonly<{ schema: BodySchema<Body>; handle: TypedHandler<Body> }>,
): Handler {
  if (typeof handler === 'function') return handler;
  checkOptions(handler, { schema: required(schemaOf), handle: required(callable) }, 'handler');
  return withBody(handler.schema, handler.handle);
}

const schemaOf: Check = (path, value) => {
  const standard = propertyOf(value, '~standard');
  if (typeof propertyOf(standard, 'validate') === 'function') return;
  throw refused(path, value, 'a Standard Schema, for example of zod, valibot or arktype');
};
