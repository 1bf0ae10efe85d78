/**
 * An SDK of OpenTelemetry that keeps everything in memory, registered as a user's would be. One for each test process
 * at a time: the API's registrations are global.
 */
import { context, metrics, type Attributes, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { DataPointType, MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  type Sampler,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';

export type Point = Readonly<{
  name: string;
  unit: string;
  attributes: Attributes;
  value: number;
  sum: number;
}>;

export type Sdk = Readonly<{
  spans(): readonly ReadableSpan[];
  /** `value` is a counter's value or a histogram's count. */
  points(name?: string): Promise<readonly Point[]>;
  close(): void;
}>;

class PullReader extends MetricReader {
  protected onShutdown(): Promise<void> {
    return Promise.resolve();
  }
  protected onForceFlush(): Promise<void> {
    return Promise.resolve();
  }
}

export function registerSdk(options: Readonly<{ sampler?: Sampler }> = {}): Sdk {
  const exporter = new InMemorySpanExporter();
  const tracers = new BasicTracerProvider({
    ...options,
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  });
  const reader = new PullReader();
  const meters = new MeterProvider({ readers: [reader] });
  const manager = new AsyncLocalStorageContextManager().enable();
  context.setGlobalContextManager(manager);
  trace.setGlobalTracerProvider(tracers);
  metrics.setGlobalMeterProvider(meters);
  return {
    spans: () => exporter.getFinishedSpans(),
    async points(name) {
      const { resourceMetrics } = await reader.collect();
      const all = resourceMetrics.scopeMetrics.flatMap((scope) =>
        scope.metrics.flatMap((metric): Point[] => {
          const { name: full, unit } = metric.descriptor;
          if (metric.dataPointType === DataPointType.SUM || metric.dataPointType === DataPointType.GAUGE) {
            return metric.dataPoints.map(({ attributes, value }) => ({
              name: full,
              unit,
              attributes,
              value,
              sum: value,
            }));
          }
          if (metric.dataPointType !== DataPointType.HISTOGRAM) return [];
          return metric.dataPoints.map(({ attributes, value }) => ({
            name: full,
            unit,
            attributes,
            value: value.count,
            sum: value.sum ?? 0,
          }));
        }),
      );
      return name === undefined ? all : all.filter((point) => point.name === name);
    },
    close() {
      manager.disable();
      context.disable();
      trace.disable();
      metrics.disable();
    },
  };
}
