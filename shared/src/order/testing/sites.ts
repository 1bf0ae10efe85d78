/**
 * Where the protocol waits for its store: each place in the sources, and how often a process died there.
 */

export type Sites = Readonly<{
  /** By place: how often a process died before or after the call was applied. */
  crashes: Map<string, number>;
  /** Every place that a call came from, as far as it was looked at. */
  seen: Set<string>;
}>;

export const newSites = (): Sites => ({ crashes: new Map(), seen: new Set() });

/** The place in the sources of in-order delivery that called, for example `drain:87 held`. Costs a stack trace. */
export function site(method: string): string {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 12;
  const frames = (new Error('for its stack').stack ?? '').split('\n');
  Error.stackTraceLimit = stackTraceLimit;
  const frame = frames.find((line) => /\/order\/[a-z-]+\.ts:/.test(line) && !/\.test\.ts/.test(line));
  const [, file = 'somewhere', line = ''] = /\/order\/([a-z-]+)\.ts:(\d+)/.exec(frame ?? '') ?? [];
  return `${file}:${line} ${method}`;
}
