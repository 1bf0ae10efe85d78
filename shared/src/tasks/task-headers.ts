/**
 * What Cloud Tasks says about a dispatch in its headers. They are facts about time and attempts only: the
 * server decides before, and never by these, whether it trusts the caller.
 *
 * App Engine targets: https://cloud.google.com/tasks/docs/creating-appengine-handlers#reading-headers
 * HTTP targets: https://cloud.google.com/tasks/docs/creating-http-target-tasks#handler
 */
import { isObject } from '../options.ts';

export type TaskHeaders = Readonly<{
  /** The task's schedule time, milliseconds since the epoch. */
  etaMs?: number;
  /** How often it was tried before, from 0. */
  retryCount?: number;
}>;

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * `headers` as Node gives them: names in lower case. A value that cannot be read counts as absent.
 *
 * @example
 * const { etaMs, retryCount } = taskHeaders({ 'x-cloudtasks-taskretrycount': '2' });
 */
export function taskHeaders(headers: Headers): TaskHeaders {
  isObject('headers', headers);
  const eta = read(headers, 'tasketa', /^[0-9]{1,12}(\.[0-9]+)?$/);
  const retryCount = read(headers, 'taskretrycount', /^[0-9]{1,9}$/);
  return {
    ...(eta !== undefined && { etaMs: Math.round(eta * 1_000) }),
    ...(retryCount !== undefined && { retryCount }),
  };
}

function read(headers: Headers, name: string, form: RegExp): number | undefined {
  const value = headers[`x-appengine-${name}`] ?? headers[`x-cloudtasks-${name}`];
  return typeof value === 'string' && form.test(value) ? Number(value) : undefined;
}
