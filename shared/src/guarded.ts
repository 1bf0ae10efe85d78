/**
 * A handler with the guarantees that it asks for around it, in the one order in which they hold.
 *
 * From the outside in: the wire contract is read and dead letters are published; what is busy elsewhere is put off; a
 * delayed message becomes a task; a numbered message waits for its turn; a message is claimed; the handler runs; what
 * it wants published is published. `once` publishes the handler's own dead letters inside its claim, so that a message
 * that an operator sends again finds no record of itself. Inside `inOrder` it does not: there the policy for poison
 * messages decides whether a failing message keeps its place in the stream.
 */
import { type BodySchema, type TypedHandler, withBody } from './body-schema.ts';
import { deadLettering } from './dead-letter/dead-lettering.ts';
import { ConfigError } from './errors.ts';
import { compose, type Handler, type Middleware } from './handler.ts';
import type { Publisher } from './publish/publisher.ts';
import { publishing } from './publish/publishing.ts';

export type GuardedOptions = Readonly<{
  /** Publishes dead letters and what the handler returns, as `pubsubPublisher(client)` makes it. */
  publisher: Publisher;
  /** A topic's name in the publisher's project, or `projects/…/topics/…`. It needs a subscription that keeps what comes. */
  deadLetterTopic: string;
  /** Puts off what another delivery is at work on, as `retryLater(queue, options)` makes it (default: none). */
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
  const { publisher, deadLetterTopic, retryLater, later, inOrder, once } = checked(options);
  const deadLetters = deadLettering(publisher, deadLetterTopic);
  const claimed = once === undefined ? [] : inOrder === undefined ? [once, deadLetters] : [once];
  const inner = compose(plain(handler), [...claimed, publishing(publisher)]);
  const outer = [deadLetters, retryLater, later, inOrder].filter((stage) => stage !== undefined);
  return Object.assign(compose(inner, outer), { inner });
}

const STAGES = ['retryLater', 'later', 'inOrder', 'once'] as const;
const NAMES: ReadonlySet<string> = new Set(['publisher', 'deadLetterTopic', ...STAGES]);

function plain<Body>(
  handler: Handler | Readonly<{ schema: BodySchema<Body>; handle: TypedHandler<Body> }>,
): Handler {
  if (typeof handler === 'function') return handler;
  const { schema, handle } = handler ?? {};
  if (typeof handle !== 'function') {
    throw refused('handler', handler, 'a function, or { schema, handle } with a function as handle');
  }
  if (typeof schema?.['~standard']?.validate !== 'function') {
    throw refused('schema', schema, 'a Standard Schema, for example of zod, valibot or arktype');
  }
  return withBody(schema, handle);
}

function checked(options: GuardedOptions): GuardedOptions {
  if (typeof options !== 'object' || options === null) {
    throw refused('options', options, 'an object with publisher and deadLetterTopic');
  }
  const unknown = Object.keys(options).find((name) => !NAMES.has(name));
  if (unknown !== undefined) throw refused(unknown, 'set', `only ${[...NAMES].join(', ')}`);
  if (typeof options.publisher?.publish !== 'function') {
    throw refused('publisher', options.publisher, 'what pubsubPublisher(client) makes');
  }
  if (typeof options.deadLetterTopic !== 'string' || options.deadLetterTopic === '') {
    throw refused('deadLetterTopic', options.deadLetterTopic, 'the name of a topic');
  }
  for (const name of STAGES) {
    const stage: unknown = options[name];
    if (stage !== undefined && typeof stage !== 'function') throw refused(name, stage, 'a middleware');
  }
  return options;
}

function refused(name: string, value: unknown, accepted: string): ConfigError {
  const given = typeof value === 'object' && value !== null ? 'an object' : JSON.stringify(value);
  return new ConfigError('INVALID_OPTION', `${name} is ${given}; accepted: ${accepted}`);
}
