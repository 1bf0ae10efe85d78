/**
 * Alerts on metrics, run on series: whether a condition holds at the end of what a metric said, minute by minute. Only
 * the forms that the modules use are understood; anything else is an error.
 */
import { at, text } from './facts/values.ts';
import type { JsonObject } from './module.ts';

export type Series = Readonly<{
  metric: string;
  resource: string;
  /** Of the resource and of the metric, by `resource.labels.x` and `metric.labels.y`. */
  labels: Readonly<Record<string, string>>;
  /** One for each minute, the newest last; undefined where the metric said nothing. What a percentile is taken of is given as it. */
  points: readonly (number | undefined)[];
}>;

/** Whether the alert of these planned values opens an incident for one of the series. */
export function opens(values: JsonObject, series: readonly Series[]): boolean {
  const absent = at(values, 'conditions', 'condition_absent');
  const kind = absent === undefined ? 'condition_threshold' : 'condition_absent';
  const condition = at(values, 'conditions', kind) as JsonObject;
  const minutes = Number(text(condition['duration']).replace(/s$/, '')) / 60;
  const own = series.filter((one) => passes(text(condition['filter']), one));
  if (absent !== undefined) {
    // One that never said anything cannot be missed.
    return own.some(({ points }) => {
      const newest = points.findLastIndex((point) => point !== undefined);
      return newest !== -1 && points.length - 1 - newest >= minutes;
    });
  }
  const limit = Number(condition['threshold_value']);
  return own.some(({ points }) => {
    const last = points.slice(-Math.max(1, minutes));
    return last.length >= Math.max(1, minutes) && last.every((point) => point !== undefined && point > limit);
  });
}

function passes(filter: string, { metric, resource, labels }: Series): boolean {
  const said: Readonly<Record<string, string>> = {
    'metric.type': metric,
    'resource.type': resource,
    ...labels,
  };
  return filter.split(' AND ').every((comparison) => {
    const [, path = '', sign, value, pattern] =
      /^([\w.]+) (=|!=) (?:"([^"]*)"|monitoring\.regex\.full_match\("([^"]*)"\))$/.exec(comparison) ?? [];
    if (sign === undefined) throw new Error(`a comparison that is not understood here: ${comparison}`);
    const own = said[path] ?? '';
    const isSame = value === undefined ? new RegExp(`^(?:${pattern ?? ''})$`).test(own) : value === own;
    return isSame === (sign === '=');
  });
}
