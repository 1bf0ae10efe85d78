/**
 * Reading single variables of an environment. Every refusal names the variable, its value and what is accepted.
 */
import { ConfigError, type Duration, toMilliseconds } from 'pubsub-guarantees';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that are set to nothing count as not set: that is what a template with an empty value leaves. */
export function optional(environment: Environment, variable: string): string | undefined {
  const value = environment[variable]?.trim();
  return value === '' ? undefined : value;
}

export function required(environment: Environment, variable: string, accepted: string): string {
  const value = optional(environment, variable);
  if (value === undefined)
    throw new ConfigError('MISSING_VARIABLE', `${variable} is not set; accepted: ${accepted}`);
  return value;
}

export function topic(environment: Environment, project: string, variable: string): string {
  return fullName(
    project,
    'topics',
    variable,
    required(environment, variable, 'a topic ID or projects/P/topics/T'),
  );
}

export function fullName(
  project: string,
  kind: 'topics' | 'subscriptions',
  variable: string,
  value: string,
): string {
  if (new RegExp(`^projects/[^/\\s]+/${kind}/[^/\\s]+$`).test(value)) return value;
  if (!/^[A-Za-z][A-Za-z0-9._~+%-]{2,254}$/.test(value)) {
    throw bad(
      variable,
      value,
      `an ID of 3 to 255 characters that begins with a letter, or projects/P/${kind}/ID`,
    );
  }
  return `projects/${project}/${kind}/${value}`;
}

export function duration(
  environment: Environment,
  variable: string,
  standard: Duration,
  limits: Readonly<{ least?: Duration; most?: Duration }> = {},
): Duration {
  const { least = '1ms', most } = limits;
  const value = optional(environment, variable) ?? standard;
  const milliseconds = toMilliseconds(value, variable);
  if (milliseconds < toMilliseconds(least)) throw bad(variable, value, `at least ${least}`);
  if (most !== undefined && milliseconds > toMilliseconds(most))
    throw bad(variable, value, `at most ${most}`);
  return value as Duration;
}

export function hostAndPort(environment: Environment, variable: string): string | undefined {
  const value = optional(environment, variable);
  if (value === undefined) return undefined;
  const port = Number(/^[^:/\s]+:(\d{1,5})$/.exec(value)?.[1] ?? 0);
  if (port < 1 || port > 65_535) throw bad(variable, value, 'host:port');
  return value;
}

/** The e-mail address of a service account. */
export function email(environment: Environment, variable: string, accepted: string): string {
  const value = required(environment, variable, accepted);
  if (!/^[^@\s]+@[^@\s]+$/.test(value)) throw bad(variable, value, accepted);
  return value;
}

export function bad(variable: string, value: string | undefined, accepted: string): ConfigError {
  const shown = value === undefined ? 'not set' : `${JSON.stringify(value)}`;
  return new ConfigError('INVALID_VARIABLE', `${variable} is ${shown}; accepted: ${accepted}`);
}
