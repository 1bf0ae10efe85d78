/**
 * An alert as a command says it: by flags, or, for one on lines of the log, as a whole policy.
 */
import type { Fact } from './facts.ts';

type Policy = Readonly<{
  displayName: string;
  severity: string;
  conditions: readonly [Readonly<{ displayName: string; conditionMatchedLog: Readonly<{ filter: string }> }>];
  alertStrategy: Readonly<{ autoClose: string; notificationRateLimit: Readonly<{ period: string }> }>;
}>;

/** An alert on lines of the log, which is given whole. */
function policyOf({
  displayName,
  severity,
  conditions: [condition],
  alertStrategy,
}: Policy): readonly Fact[] {
  const said = {
    condition: condition.displayName,
    filter: condition.conditionMatchedLog.filter,
    severity,
    closes: alertStrategy.autoClose,
    every: alertStrategy.notificationRateLimit.period,
  };
  return [[`alert ${displayName}`, said]];
}

export function alertOf(flag: (name: string) => string): readonly Fact[] {
  if (flag('policy') !== '') return policyOf(JSON.parse(flag('policy')) as Policy);
  const said = {
    condition: flag('condition-display-name'),
    filter: flag('condition-filter'),
    above: flag('if').replace(/^> /, ''),
    duration: flag('duration'),
    aligner: /"perSeriesAligner":"(\w+)"/.exec(flag('aggregation'))?.[1] ?? '',
  };
  return [[`alert ${flag('display-name')}`, said]];
}
