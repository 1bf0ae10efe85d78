/**
 * How each function is put together: from the outside in, and the forward in the middle.
 *
 * The outermost layer validates the wire contract and publishes dead letters; the innermost publishes what the
 * handler returned, before any layer outside counts the message as done. `dedup` publishes the handler's own dead
 * letters inside its claim, so that a redrive finds no record of the message. Behind `inOrder` it does not: there a
 * failing head keeps its place.
 */
import {
  compose,
  ConfigError,
  deadLettering,
  dedup,
  delay,
  forward,
  type Handler,
  inOrder,
  type Middleware,
  publishing,
  type SweepContext,
  type SweepResult,
  sweepOrder,
} from 'pubsub-guarantees';
import type { Ports } from './clients.ts';
import type { Config } from './config.ts';

export type Pipeline = Readonly<{
  handler: Handler;
  /** Looks after keys that nobody else will: failed heads, owners that died. Only where there is an order to keep. */
  sweep: ((context: SweepContext) => Promise<SweepResult>) | undefined;
}>;

export function pipeline(config: Config, ports: Ports): Pipeline {
  const deadLetters = deadLettering(ports.publisher, config.deadLetterTopic);
  const publishes = publishing(ports.publisher);
  const target = forward(config.targetTopic);
  switch (config.name) {
    case 'dedup':
      return unordered(compose(target, [deadLetters, once(config, ports), deadLetters, publishes]));
    case 'delay':
      return unordered(compose(target, [deadLetters, later(config, ports), publishes]));
    case 'fifo':
      return ordered(config, ports, compose(target, [publishes]), [deadLetters]);
    case 'pipeline': {
      const inner = compose(target, [once(config, ports), publishes]);
      return ordered(config, ports, inner, [deadLetters, later(config, ports)]);
    }
  }
}

const unordered = (handler: Handler): Pipeline => ({ handler, sweep: undefined });

function ordered(config: Config, ports: Ports, inner: Handler, outer: readonly Middleware[]): Pipeline {
  const store = needed(ports.orders, 'order store');
  const options = { clock: ports.clock, lease: config.orderLease };
  return {
    handler: compose(inner, [...outer, inOrder(store, options)]),
    sweep: sweepOrder(store, options, inner),
  };
}

function once(config: Config, ports: Ports): Middleware {
  const { lease, retention } = needed(config.dedup, 'de-duplication settings');
  return dedup(needed(ports.claims, 'claim store'), { clock: ports.clock, lease, retention });
}

function later(config: Config, ports: Ports): Middleware {
  const { topic } = needed(config.delay, 'delay settings');
  return delay(needed(ports.tasks, 'task queue'), { clock: ports.clock, topic });
}

function needed<Value>(value: Value | undefined, what: string): Value {
  if (value === undefined) throw new ConfigError('NOT_CONNECTED', `this function needs a ${what}`);
  return value;
}
