/**
 * Workers on one memory store and virtual time, with faults at named calls, for tests of single interleavings.
 */
import { type VirtualClock, virtualClock } from '../../../shared/src/testing/virtual-clock.ts';
import { codeOf } from '../../../shared/src/errors.ts';
import { compose, type Context, type Handler } from '../../../shared/src/handler.ts';
import type { Log } from '../../../shared/src/log.ts';
import type { Message } from '../../../shared/src/message.ts';
import { ack, type Outcome } from '../../../shared/src/outcome.ts';
import { type OrderedDelivery, orderedDelivery } from '../../../shared/src/order/in-order.ts';
import type { StreamState } from '../../../shared/src/order/stream-state.ts';
import { type MemoryStreams, memoryStreams } from '../../../shared/src/order/memory.ts';
import type { StreamOptions } from '../../../shared/src/order/options.ts';
import type { StreamSweep } from '../../../shared/src/order/sweep.ts';
import { atCalls, type Fault } from '../engine/faults.ts';
import { startProcess } from '../engine/process.ts';
import { faultyStore, lost, type Request, type Store } from './faulty-store.ts';

export const LEASE_MS = 12_000;
export const CONSUMER = 'orders';
export const SOURCE = 'sub';
/** The stream of messages without another key. */
export const REF = { consumer: CONSUMER, source: SOURCE, key: 'k' } as const;

export type Sent = Readonly<{
  content?: string | Buffer;
  key?: string;
  attributes?: Record<string, string>;
  orderingKey?: string;
  /** How long the delivery has (default a minute), and the subscription that it comes through. */
  limitMs?: number;
  source?: string;
}>;

export type Worker = Readonly<{
  deliver(number: number, sent?: Sent): Promise<Outcome>;
  sweep(): ReturnType<StreamSweep>;
  streams: OrderedDelivery;
}>;

type WorkerOptions = Readonly<{
  /** What happens at the n-th call of a method, for example `commit 1`. */
  faults?: Readonly<Record<string, Fault>>;
  /** Instead of an immediate ack. */
  handler?: Handler;
  /** Around the store of this process. */
  wrap?(store: Store): Store;
  /** How long each call of the store takes. */
  callMs?: number;
}>;

export type Bench = Readonly<{
  clock: VirtualClock;
  store: MemoryStreams;
  /** `number:content` of each call of a handler, in order. */
  runs: string[];
  contexts: Context[];
  wakes: Readonly<{ key: string; atMs: number }>[];
  errors: string[];
  worker(options?: WorkerOptions): Worker;
  state(key?: string): StreamState;
  heldNumbers(key?: string): readonly number[];
}>;

export function bench(options: Partial<StreamOptions> & Readonly<{ maxHeldBytes?: number }> = {}): Bench {
  const { maxHeldBytes, ...rest } = options;
  const clock = virtualClock();
  const store = memoryStreams({ clock, ...(maxHeldBytes !== undefined && { maxHeldBytes }) });
  const runs: string[] = [];
  const contexts: Context[] = [];
  const wakes: { key: string; atMs: number }[] = [];
  const errors: string[] = [];
  const log: Log = { info() {}, warn() {}, error: (text) => void errors.push(text) };
  const wake: StreamOptions['wake'] = ({ key }, atMs) => void wakes.push({ key, atMs });
  const settings: StreamOptions = { clock, lease: `${LEASE_MS}ms`, wake, ...rest };

  const context = (limitMs = 60_000, source: string = SOURCE): Context => {
    const controller = new AbortController();
    clock.after(limitMs, () => controller.abort());
    const deadline = clock.monotonic() + limitMs;
    return { consumer: CONSUMER, source, now: clock.now, deadline, signal: controller.signal, log };
  };

  return {
    clock,
    store,
    runs,
    contexts,
    wakes,
    errors,
    worker({
      faults = {},
      handler = async () => ack(),
      wrap = (plain: Store): Store => plain,
      callMs = 0,
    } = {}) {
      const slow: Fault = { kind: 'none', beforeMs: callMs / 2, afterMs: callMs / 2 };
      const faultOf = atCalls(faults);
      const { call } = startProcess<Request>(clock, {
        faultOf: (request) => faultOf(request) ?? (callMs > 0 ? slow : undefined),
        lost,
      });
      const faulty = faultyStore(wrap(store), call);
      const recording: Handler = async (message, inner) => {
        runs.push(`${message.attributes.sequence}:${message.data.toString()}`);
        contexts.push(inner);
        return handler(message, inner);
      };
      const next = compose(recording, []);
      const streams = orderedDelivery(faulty, settings);
      const chain = compose(recording, [streams.middleware]);
      const sweep = streams.sweep(next);
      return {
        deliver: (number, sent) => chain(messageOf(number, sent), context(sent?.limitMs, sent?.source)),
        sweep: () => sweep(context()),
        streams,
      };
    },
    state: (key = 'k') => store.stateOf({ consumer: CONSUMER, source: SOURCE, key }) ?? failNoKey(key),
    heldNumbers: (key = 'k') => store.heldNumbers({ consumer: CONSUMER, source: SOURCE, key }),
  };
}

export function messageOf(number: number, sent: Sent = {}): Message {
  const { content = 'a', key = 'k', attributes = {}, orderingKey } = sent;
  return {
    id: `${key}-${number}`,
    data: Buffer.from(content as string),
    attributes: { sequence: String(number), ...(key !== '' && { sequenceKey: key }), ...attributes },
    publishTime: new Date(0),
    ...(orderingKey !== undefined && { orderingKey }),
  };
}

export const kindOf = (outcome: Outcome): string =>
  outcome.kind === 'ack' ? `ack ${outcome.reason}` : `${outcome.kind} ${codeOf(outcome.error)}`;

const failNoKey = (key: string): never => {
  throw new Error(`nothing is stored for ${key}`);
};
