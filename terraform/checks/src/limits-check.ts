/**
 * The module guarantee repeats the limits of the module policy, because a caller must see them there. Are they the
 * same, and do the defaults fit each other even before Terraform looks at them?
 */
import type { Module } from './module.ts';

/** A line for each problem. */
export function checkLimits(guarantee: Module, policy: Module): readonly string[] {
  const problems = ['limits', 'service', 'dedup', 'order', 'saga'].flatMap((name) => {
    const [own, checked] = [guarantee, policy].map((module) => normal(module.variables.get(name)?.['type']));
    return own === checked ? [] : [`${guarantee.name}: the type of ${name} is not that of ${policy.name}`];
  });
  const defaults = new Map(
    [...normal(policy.variables.get('limits')?.['type']).matchAll(/(\w+) = optional\(number, (\d+)\)/g)].map(
      ([, name = '', value]) => [name, Number(value)] as const,
    ),
  );
  const of = (name: string): number => defaults.get(name) ?? Number.NaN;
  const rising = ['handler_timeout_seconds', 'function_timeout_seconds', 'ack_deadline_seconds'];
  for (const [index, name] of rising.entries()) {
    const before = rising[index - 1];
    if (before !== undefined && !(of(before) < of(name)))
      problems.push(`${policy.name}: ${name} must be above ${before}`);
  }
  if (!(of('dedup_retention_seconds') >= of('message_retention_seconds'))) {
    problems.push(`${policy.name}: dedup_retention_seconds must be at least message_retention_seconds`);
  }
  return problems;
}

const normal = (type: unknown): string => String(type).replaceAll(/\s+/g, ' ');
