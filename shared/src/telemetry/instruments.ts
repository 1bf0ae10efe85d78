/**
 * Every metric of the library, by the API of OpenTelemetry alone: without an SDK in the process each call does nothing.
 *
 * Attributes are of few values (consumer, capability, outcome, code): never a key, a message ID or a `dedupId`. What
 * goes wrong in an SDK stays here: a measurement never changes an outcome.
 */
import {
  type Attributes,
  type Counter,
  createNoopMeter,
  type Gauge,
  type Histogram,
  type MeterProvider,
  metrics,
} from '@opentelemetry/api';
import { COUNTERS, GAUGES, HISTOGRAMS } from './definitions.ts';

export const LIBRARY = 'pubsub-guarantees';

/** Names of our own attributes, on metrics and on spans. */
export const ATTR = {
  consumer: 'pubsub_guarantees.consumer',
  capability: 'pubsub_guarantees.capability',
  outcome: 'pubsub_guarantees.outcome',
  reason: 'pubsub_guarantees.reason',
  operation: 'pubsub_guarantees.operation',
  answer: 'pubsub_guarantees.answer',
  fault: 'pubsub_guarantees.fault',
  role: 'pubsub_guarantees.role',
  /** The definition's name. */
  saga: 'pubsub_guarantees.saga',
  step: 'pubsub_guarantees.step',
} as const;

export type Capability = 'delivery' | 'once' | 'later' | 'in_order' | 'republish';

/** Of every metric that the library may make. */
export const METRIC_NAMES: readonly string[] = [COUNTERS, HISTOGRAMS, GAUGES].flatMap((definitions) =>
  Object.values(definitions).map(({ name }) => name),
);

type GaugeName = keyof typeof GAUGES;
type CounterName = keyof typeof COUNTERS;
type HistogramName = keyof typeof HISTOGRAMS;

/** Bounds in seconds: those of the messaging conventions, and beyond them up to the longest delivery. */
const BOUNDS = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 120, 300, 600,
];

type Instruments = Readonly<{
  counters: Map<CounterName, Counter>;
  histograms: Map<HistogramName, Histogram>;
  gauges: Map<GaugeName, Gauge>;
}>;

/** By provider: the API has no stand-in for meters, so what was made before an SDK was registered stays silent. */
const made = new WeakMap<MeterProvider, Instruments | 'no meter'>();

export function count(name: CounterName, attributes: Attributes, by = 1): void {
  quietly(() => {
    const counters = instruments()?.counters;
    const known = counters?.get(name);
    if (known !== undefined) return known.add(by, attributes);
    if (counters === undefined) return;
    const { name: full, ...options } = COUNTERS[name];
    const fresh = metrics.getMeter(LIBRARY).createCounter(full, options);
    counters.set(name, fresh);
    fresh.add(by, attributes);
  });
}

export function record(name: HistogramName, milliseconds: number, attributes: Attributes): void {
  quietly(() => {
    const histograms = instruments()?.histograms;
    const known = histograms?.get(name);
    const value = Math.max(0, milliseconds) / 1_000;
    if (known !== undefined) return known.record(value, attributes);
    if (histograms === undefined) return;
    const { name: full, ...rest } = HISTOGRAMS[name];
    const options = { ...rest, advice: { explicitBucketBoundaries: BOUNDS } };
    const fresh = metrics.getMeter(LIBRARY).createHistogram(full, options);
    histograms.set(name, fresh);
    fresh.record(value, attributes);
  });
}

/** What there is now. */
export function gauge(name: GaugeName, value: number, attributes: Attributes): void {
  quietly(() => {
    const gauges = instruments()?.gauges;
    if (gauges === undefined) return;
    const { name: full, ...options } = GAUGES[name];
    const known = gauges.get(name) ?? metrics.getMeter(LIBRARY).createGauge(full, options);
    gauges.set(name, known);
    known.record(value, attributes);
  });
}

export function quietly(work: () => void): void {
  try {
    work();
  } catch {
    // An SDK that fails has its own diagnostics (`diag` of the API); the message goes on.
  }
}

/** Whether a metrics SDK is registered: for callers whose measuring itself costs something. */
export function isMeasured(): boolean {
  try {
    return instruments() !== undefined;
  } catch {
    return false;
  }
}

function instruments(): Instruments | undefined {
  const provider = metrics.getMeterProvider();
  let known = made.get(provider);
  if (known === undefined) {
    const isSilent = provider.getMeter(LIBRARY) === createNoopMeter();
    known = isSilent ? 'no meter' : { counters: new Map(), histograms: new Map(), gauges: new Map() };
    made.set(provider, known);
  }
  return known === 'no meter' ? undefined : known;
}
