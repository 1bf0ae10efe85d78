/**
 * The logging port: structured, so that an adapter can write what its platform reads.
 * Fields never hold a payload or a secret. Logging never throws: a line that cannot be written costs no message.
 *
 * A publisher's identifiers of messages may be e-mail addresses or order numbers. From INFO on they are short hashes:
 * the fields below are hashed by the log, texts have what `identifierHash` makes. DEBUG lines have them whole.
 */
import { identifierHash } from './hash.ts';
import { callable, checkOptions, flag, isObject, text } from './options.ts';

export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

export type Log = Readonly<{
  /**
   * What happens to every successful message, duplicates included: metrics count it, and few operators want a line for
   * each.
   */
  debug?(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}>;

/** Says nothing. */
export const silent: Log = { info() {}, warn() {}, error() {} };

export type JsonLogOptions = Readonly<{
  /** The project of the traces: without it Cloud Logging cannot link a line to its trace. */
  projectId?: string;
  /** Become labels of every entry, to filter by (default: none). */
  labels?: Readonly<Record<string, string>>;
  /** Also writes what is for debugging: one line for every delivery. Default: false. */
  debug?: boolean;
}>;

/**
 * One JSON object a line, in the form that Cloud Logging reads from standard output: `severity`, `message`, and
 * special fields for trace and labels (https://cloud.google.com/logging/docs/structured-logging). A field
 * `stack_trace` is what Error Reporting picks up (https://cloud.google.com/error-reporting/docs/formatting-error-messages).
 *
 * @example
 * const log = jsonLog((line) => console.log(line), { projectId: 'shop', labels: { consumer: 'billing' } });
 */
export function jsonLog(write: (line: string) => void, options: JsonLogOptions = {}): Log {
  callable('write', write);
  checkOptions<JsonLogOptions>(options, { projectId: text, labels: isObject, debug: flag });
  const { projectId, labels, debug = false } = options;
  const constant = labels === undefined ? {} : { 'logging.googleapis.com/labels': labels };
  const at =
    (severity: string) =>
    (message: string, fields: LogFields = {}): void => {
      const { traceId, spanId, traceSampled, ...others } = fields;
      const traced =
        traceId === undefined
          ? {}
          : {
              'logging.googleapis.com/trace':
                projectId === undefined ? traceId : `projects/${projectId}/traces/${traceId}`,
              'logging.googleapis.com/spanId': spanId,
              'logging.googleapis.com/trace_sampled': traceSampled,
            };
      try {
        write(JSON.stringify({ severity, message, ...others, ...traced, ...constant }));
      } catch {
        // A closed pipe, or a value that is no JSON.
      }
    };
  const log = { info: at('INFO'), warn: at('WARNING'), error: at('ERROR') };
  return withoutIdentifiers(debug ? { ...log, debug: at('DEBUG') } : log);
}

const IDENTIFIERS = ['dedupId', 'scheduleKey', 'sequenceKey', 'orderingKey'] as const;
const HASHED = /^#[0-9a-f]{12}$/;

/** `log` with publishers' identifiers as short hashes, except in DEBUG lines. For a log that came from outside. */
export function withoutIdentifiers(log: Log): Log {
  return {
    ...(log.debug !== undefined && { debug: (message, fields) => log.debug?.(message, fields) }),
    info: (message, fields) => log.info(message, hashed(fields)),
    warn: (message, fields) => log.warn(message, hashed(fields)),
    error: (message, fields) => log.error(message, hashed(fields)),
  };
}

function hashed(fields: LogFields | undefined): LogFields | undefined {
  if (fields === undefined) return undefined;
  const changed: Record<string, string> = {};
  for (const name of IDENTIFIERS) {
    const value = fields[name];
    if (typeof value === 'string' && !HASHED.test(value)) changed[name] = identifierHash(value);
  }
  return { ...fields, ...changed };
}

/** `log` with the same fields on every line; a line's own win. */
export function withFields(log: Log, fields: LogFields): Log {
  const added = (own: LogFields = {}): LogFields => ({ ...fields, ...own });
  return {
    ...(log.debug !== undefined && { debug: (message, own) => log.debug?.(message, added(own)) }),
    info: (message, own) => log.info(message, added(own)),
    warn: (message, own) => log.warn(message, added(own)),
    error: (message, own) => log.error(message, added(own)),
  };
}

/**
 * Warnings and errors to standard error: what an adapter writes to when it is given no log, so that no failure is
 * silent. Information is left out.
 *
 * @example
 * const log = consoleLog();
 */
export function consoleLog(): Log {
  // oxlint-disable-next-line no-console -- the one place that may; a caller that wants another log passes it
  return { ...jsonLog((line) => console.error(line)), info() {} };
}
