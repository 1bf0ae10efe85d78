/**
 * Where the protocol waits: each place in its sources, and how often a process died there.
 */
export type Sites = Readonly<{
  /** By place: how often a process died before or after the request was applied. */
  crashes: Map<string, number>;
}>;

export const newSites = (): Sites => ({ crashes: new Map() });

/** The place inside the handler. */
export const HANDLER = 'the handler';
/** The publish of a dead letter: by the consumer, or by an operator. */
export const DEAD_LETTER = 'the dead letter';

/** The place in the sources of in-order delivery that asks, for example `cycle:87 held`. Costs a stack trace. */
export function site(request: string): string {
  if (request === 'dead letter') return DEAD_LETTER;
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 24;
  const stack = new Error('for its stack').stack ?? '';
  const frames = stack.split('\n');
  Error.stackTraceLimit = stackTraceLimit;
  const frame = frames.find((line) => /\/shared\/src\/order\/[a-z-]+\.ts:/.test(line));
  const [, file = 'somewhere', line = ''] =
    /\/shared\/src\/order\/([a-z-]+)\.ts:(\d+)/.exec(frame ?? '') ?? [];
  return `${file}:${line} ${request}`;
}
