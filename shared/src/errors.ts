/**
 * What can go wrong, in three kinds. The kind decides what happens to the message; the code is stable and is
 * what programs branch on; the text is for people.
 */

import { type Fault, faultOfCode, faultOfStatus } from './faults.ts';
import { shownValue } from './shown-value.ts';

type Options = Readonly<{ cause?: unknown }>;

abstract class CodedError extends Error {
  readonly code: string;
  constructor(code: string, message: string, options: Options = {}) {
    super(message, options);
    this.code = code;
    this.name = new.target.name;
  }
}

/** Can never succeed: the message goes to the dead letters at once. */
export class PermanentError extends CodedError {}

/** May succeed later: the message is delivered again, not before `retryAfterMs` where that can be arranged. */
export class TransientError extends CodedError {
  readonly retryAfterMs: number | undefined;
  constructor(code: string, message: string, options: Options & Readonly<{ retryAfterMs?: number }> = {}) {
    super(code, message, options);
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** An option, an argument or a variable that is not accepted. */
export type RefusedOption = Readonly<{
  /** The option as it is written, for example `retry.min`, `queues[1].name` or `HANDLER_TIMEOUT`. */
  path: string;
  /** What was given, shortly, and without what an object holds: it may be a secret. */
  value: string;
  accepted: string;
}>;

/**
 * The program is set up wrongly: it does not start. `option` says of a ConfigError `INVALID_OPTION` which one is wrong;
 * its text is always "path is value; accepted: what".
 */
export class ConfigError extends CodedError {
  readonly option: RefusedOption | undefined;
  constructor(code: string, message: string, options: Options & Readonly<{ option?: RefusedOption }> = {}) {
    super(code, message, options);
    this.option = options.option;
  }
}

/** `INVALID_OPTION` for a value that is shown as `shownValue` does. */
export const refused = (path: string, value: unknown, accepted: string): ConfigError =>
  refusedAs(path, shownValue(value), accepted);

/** As `refused`, for a value that is a secret, or that another text says better. `value` follows on "is". */
export const refusedAs = (path: string, value: string, accepted: string): ConfigError =>
  new ConfigError('INVALID_OPTION', `${path} is ${value}; accepted: ${accepted}`, {
    option: { path, value, accepted },
  });

export const inProgressElsewhere = (message: string): TransientError =>
  new TransientError('IN_PROGRESS_ELSEWHERE', message);
export const leaseLost = (message: string, cause?: unknown): TransientError =>
  new TransientError('LEASE_LOST', message, { cause });
export const storeUnavailable = (message: string, cause?: unknown): TransientError =>
  new TransientError('STORE_UNAVAILABLE', message, { cause });

/**
 * Whose fault a failure is, by its code; of a code that only wraps another failure, by that. A failure of
 * which nothing is known is the message's: a handler that throws says something about its message.
 */
export function faultOf(error: unknown): Fault {
  if (error instanceof PermanentError) return 'message';
  if (error instanceof ConfigError) return 'deployment';
  if (!(error instanceof TransientError)) return faultOfStatus(error) ?? 'message';
  const isWrapper = WRAPPERS.has(error.code) && error.cause !== undefined;
  return (isWrapper ? faultOf(error.cause) : faultOfCode(error.code)) ?? 'message';
}

const WRAPPERS: ReadonlySet<string> = new Set(['DEAD_LETTER_UNPUBLISHED']);

/** Whether a failure is the message's own and counts as one of its attempts. */
export const countsAsAttempt = (error: unknown): boolean => faultOf(error) === 'message';

/** For logs and dead letters: the code if there is one, else the error's name. A text for anything that was thrown. */
export function codeOf(error: unknown): string {
  return readable(error, () => {
    if (error instanceof CodedError) return error.code;
    return error instanceof Error ? error.name : typeof error;
  });
}

/** For logs and dead letters: the text of anything that was thrown. */
export function textOf(error: unknown): string {
  return readable(error, () => (error instanceof Error ? error.message : error));
}

/** What a log needs to show where an error came from: of errors that were not expected, which have no code of their own. */
export function stackOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || error instanceof CodedError) return undefined;
  const stack = readable(error, () => error.stack ?? '');
  return stack === '' ? undefined : stack.slice(0, STACK_CHARACTERS);
}

/** Far below the 256 KB of a log entry, whatever text the error has: https://cloud.google.com/logging/quotas */
const STACK_CHARACTERS = 8_000;

/** A value that cannot be made a text must not turn a dead letter into a message that is delivered for ever. */
function readable(error: unknown, read: () => unknown): string {
  try {
    return String(read());
  } catch {
    return `${typeof error} without a text`;
  }
}
