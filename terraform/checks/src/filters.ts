/**
 * Filters of alerts and dashboards, judged against the metrics that there are; and filters of the log, run on entries.
 * Only the forms that the modules use are understood: anything else is a finding.
 */
import { isObject, type Json, objectOf, textOf } from './module.ts';
import { ALIGNERS, LABELS, METRICS } from './known-values.ts';

/** A line for each problem of a filter of time series, with the aligner that goes with it. */
export function checkMetricFilter(filter: string, aligner: string): readonly string[] {
  const type = /metric\.type ?= ?"([^"]+)"/.exec(filter)?.[1] ?? '';
  const metric = METRICS[type];
  if (metric === undefined) return [`there is no metric ${type === '' ? 'in it' : type}: ${filter}`];
  const problems: string[] = [];
  const resource = /resource\.type ?= ?"([^"]+)"/.exec(filter)?.[1];
  if (resource !== metric.resource) {
    problems.push(
      `${type} is of ${metric.resource}, not of ${resource ?? 'nothing (resource.type is missing)'}`,
    );
  }
  for (const [, label = ''] of filter.matchAll(/resource\.labels?\."?(\w+)"?/g)) {
    if (!LABELS[metric.resource].includes(label)) problems.push(`${metric.resource} has no label ${label}`);
  }
  if (ALIGNERS[`${metric.kind} ${metric.value}`]?.includes(aligner) !== true) {
    problems.push(`${aligner} is not for ${type}`);
  }
  return problems;
}

/** Every filter in the JSON of a dashboard. */
export function checkDashboard(json: Json): readonly string[] {
  if (Array.isArray(json)) return json.flatMap((item: Json) => checkDashboard(item));
  if (!isObject(json)) return [];
  const own =
    typeof json['filter'] === 'string'
      ? checkMetricFilter(json['filter'], textOf(objectOf(json['aggregation'])['perSeriesAligner']))
      : [];
  return [...own, ...Object.values(json).flatMap(checkDashboard)];
}

/** Whether an entry of the log passes: comparisons for equality, of one value or one of several, joined by AND. */
export function passesLogFilter(filter: string, entry: Json): boolean {
  return filter.split(' AND ').every((comparison) => {
    const [, path, one, several] = /^([\w.]+) = (?:"([^"]*)"|\(([^()]*)\))$/.exec(comparison) ?? [];
    if (path === undefined) throw new Error(`a comparison that is not understood here: ${comparison}`);
    const value = path.split('.').reduce<Json | undefined>((inner, name) => objectOf(inner)[name], entry);
    const accepted =
      one === undefined ? [...(several ?? '').matchAll(/"([^"]*)"/g)].map(([, text]) => text) : [one];
    return accepted.some((text) => text === value);
  });
}
