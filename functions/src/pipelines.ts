/**
 * How each function is put together: which guarantees are around the forward, or around the orchestrator of sagas.
 * `guarded` knows the order of the stages.
 *
 * `retryLater` is outside all stages that claim or hold a message: a message that another delivery is processing comes
 * back by itself after a lease, instead of being refused until it is a dead letter.
 */
import {
  compose,
  ConfigError,
  guarded,
  type GuardedHandler,
  type GuardedOptions,
  type Handler,
  type Middleware,
} from 'pubsub-guarantees';
import { checkAttributes, type AppliedOption } from 'pubsub-guarantees/attributes';
import { deadLettering } from 'pubsub-guarantees/dead-letters';
import { dedup, inbox } from 'pubsub-guarantees/dedup';
import { delay, retryLater } from 'pubsub-guarantees/delay';
import { orderedDelivery } from 'pubsub-guarantees/order';
import { forward } from 'pubsub-guarantees/publish';
import { orchestrator, sweepSagas } from 'pubsub-guarantees/sagas';
import { sweepSchedules } from 'pubsub-guarantees/schedules';
import type { Ports } from './clients.ts';
import type { Config } from './config.ts';
import type { Sweeps } from './sweeping.ts';
import type { WakeOne } from './wake-endpoint.ts';

export type Pipeline = Readonly<{
  handler: Handler;
  /**
   * What no delivery looks at: next messages that failed, processes that died, lost tasks, payloads that are done,
   * messages that were committed and not published.
   */
  sweeps: Sweeps;
  /** What the order's sweep does, for one stream. Undefined: the function has no streams. */
  wake?: WakeOne;
  /** Before the process ends: counts what has run, releases its streams, and refuses what waits. */
  stop?: () => Promise<void>;
}>;

export function pipeline(config: Config, ports: Ports): Pipeline {
  const { sweeps, ...rest } = stages(config, ports);
  const { outbox } = ports;
  if (outbox === undefined) return { ...rest, sweeps };
  return { ...rest, sweeps: { ...payloadSweep(outbox), ...sweeps, outbox: outbox.sweep } };
}

function stages(config: Config, ports: Ports): Pipeline {
  const { publisher } = ports;
  const { deadLetterTopic } = config;
  const attributes = attributesChecked(config, ports);
  const around = (stagesAround: Stages): GuardedHandler =>
    guarded(forward(needed(config.targetTopic, 'target topic')), {
      publisher,
      deadLetterTopic,
      attributes,
      ...stagesAround,
    });
  switch (config.name) {
    case 'dedup':
      return { handler: around({ once: once(config, ports) }), sweeps: {} };
    case 'delay':
      return { handler: around({ later: later(config, ports) }), sweeps: laterSweeps(ports) };
    case 'fifo':
      return ordered(config, ports, around);
    case 'pipeline': {
      const others = {
        retryLater: retryLaterStage(config, ports),
        later: later(config, ports),
        once: once(config, ports),
      };
      const { sweeps, ...rest } = ordered(config, ports, (inOrder) => around({ ...others, ...inOrder }));
      return { ...rest, sweeps: { ...sweeps, ...laterSweeps(ports) } };
    }
    case 'saga':
      return orchestrated(config, ports, attributes);
  }
}

type Stages = Pick<GuardedOptions, 'retryLater' | 'later' | 'inOrder' | 'once'>;

/** Every delivery option that the function does not apply is one that its publisher may have meant for it. */
function attributesChecked({ name, strictAttributes: strict }: Config, { clock }: Ports): Middleware {
  const applied: Record<Config['name'], readonly AppliedOption[]> = {
    dedup: [],
    delay: ['later'],
    fifo: ['inOrder'],
    pipeline: ['later', 'inOrder'],
    saga: ['later'],
  };
  return checkAttributes({ clock, strict, applied: applied[name], expectsSequence: name === 'fifo' });
}

function ordered(config: Config, ports: Ports, around: (stages: Stages) => GuardedHandler): Pipeline {
  const { gap, start, lease, maxAttempts, onPoison, onGap, onUnknownStale, scope } = config.order;
  const streams = orderedDelivery(needed(ports.streams, 'stream store'), {
    clock: ports.clock,
    streamScope: scope,
    lease,
    start: start === 'counter' ? needed(ports.counters, 'counter store') : start,
    retry: { maxAttempts: maxAttempts },
    onPoison,
    onGap,
    gap: { timeout: gap.timeout, ...(ports.outbox !== undefined && { repair: ports.outbox.repair }) },
    onUnknownStale,
    deadLetters: deadLettering(ports.publisher, config.deadLetterTopic),
    ...(ports.wakes !== undefined && { wake: ports.wakes.wake }),
    ...(ports.payloads !== undefined && { payloads: ports.payloads }),
  });
  const handler = around({ inOrder: streams.middleware });
  return {
    handler,
    sweeps: { order: streams.sweep(handler.inner), ...payloadSweep(ports) },
    wake: streams.wake(handler.inner),
    stop: streams.stop,
  };
}

/**
 * `retryLater` is outside of the inbox, so that neither an instance at which other deliveries are at work nor a version
 * that this process does not know uses up delivery attempts.
 */
function orchestrated(config: Config, ports: Ports, attributes: Middleware): Pipeline {
  const { publisher, clock } = ports;
  const { topic } = needed(config.saga, 'topic of sagas');
  const { definitions, store, inbox: claims } = needed(ports.sagas, 'store of sagas');
  const { lease, retention, onConflict } = needed(config.dedup, 'de-duplication settings');
  const handled = inbox(claims, {
    clock,
    publisher,
    lease,
    retention,
    projectId: config.project,
    ...(onConflict !== 'process' && { onConflict }),
  })(orchestrator(store, definitions, { topic }));
  const stages = [
    deadLettering(publisher, config.deadLetterTopic),
    attributes,
    retryLaterStage(config, ports),
    later(config, ports),
  ];
  return {
    handler: compose(handled, stages),
    sweeps: { sagas: sweepSagas(store, publisher, { topic, clock }), ...laterSweeps(ports) },
  };
}

function once(config: Config, ports: Ports): Middleware {
  const {
    redisUrl: _client,
    redisPrefix: _prefix,
    ...settings
  } = needed(config.dedup, 'de-duplication settings');
  return dedup(needed(ports.claims, 'claim store'), { clock: ports.clock, ...settings });
}

function later(config: Config, ports: Ports): Middleware {
  const { topic, ledger: ledgerFor } = needed(config.delay, 'delay settings');
  return delay(needed(ports.tasks, 'task queue'), {
    clock: ports.clock,
    topic,
    ...(ports.payloads !== undefined && { payloads: ports.payloads }),
    ...(ports.ledger !== undefined && ledgerFor !== 'off' && { ledger: ports.ledger, ledgerFor }),
  });
}

/** Below the shortest backoff of a subscription that the modules make (10 s), and long enough for others' commits. */
const CONTENTION_PAUSE = '5s';

/** Only where delayed messages come back through the function's own source. */
function retryLaterStage(config: Config, ports: Ports): Middleware {
  const { topic } = needed(config.delay, 'delay settings');
  const { lease } = needed(config.dedup, 'de-duplication settings');
  return retryLater(needed(ports.tasks, 'task queue'), {
    clock: ports.clock,
    topic,
    inProgress: lease,
    contention: CONTENTION_PAUSE,
    ...(ports.payloads !== undefined && { payloads: ports.payloads }),
  });
}

function laterSweeps({ ledger, payloads, tasks, clock }: Ports): Sweeps {
  return {
    ...(ledger !== undefined && {
      schedules: sweepSchedules(ledger, needed(tasks, 'task queue'), { clock }),
    }),
    ...payloadSweep({ payloads }),
  };
}

const payloadSweep = ({ payloads }: Pick<Ports, 'payloads'>): Sweeps =>
  payloads === undefined ? {} : { payloads: payloads.sweep };

function needed<Value>(value: Value | undefined, what: string): Value {
  if (value === undefined) throw new ConfigError('NOT_CONNECTED', `this function needs a ${what}`);
  return value;
}
