/**
 * The logging port: structured, so that an adapter can write what its platform reads.
 * Fields never hold a payload or a secret.
 */

export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

export type Log = Readonly<{
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}>;

/** Says nothing. */
export const silent: Log = { info() {}, warn() {}, error() {} };

/**
 * One JSON object a line, in the form that Cloud Logging reads from standard output
 * (`severity` and `message`: https://cloud.google.com/logging/docs/structured-logging).
 */
export function jsonLog(write: (line: string) => void): Log {
  const at =
    (severity: string) =>
    (message: string, fields: LogFields = {}): void =>
      write(JSON.stringify({ severity, message, ...fields }));
  return { info: at('INFO'), warn: at('WARNING'), error: at('ERROR') };
}

/**
 * Warnings and errors to standard error: what an adapter writes to when it is given no log, so that no failure is
 * silent. What is only information is left out.
 */
export function consoleLog(): Log {
  // oxlint-disable-next-line no-console -- the one place that may; whoever wants another log passes it
  return { ...jsonLog((line) => console.error(line)), info() {} };
}
