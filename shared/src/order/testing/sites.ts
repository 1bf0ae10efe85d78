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

/** Of a place that one delivery and a line of them both get to. */
export const IN_A_LINE = ' in a line';

export const LINES: readonly string[] = ['direct', 'settle', 'settle-alone'];

/** The place in the sources of in-order delivery that asks, for example `drain:87 held`. Costs a stack trace. */
export function site(request: string): string {
  if (request === 'dead letter') return DEAD_LETTER;
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 24;
  const stack = new Error('for its stack').stack ?? '';
  const frames = stack.split('\n');
  Error.stackTraceLimit = stackTraceLimit;
  const frame = frames.find((line) => /\/order\/[a-z-]+\.ts:/.test(line) && !/\.test\.ts/.test(line));
  const [, file = 'somewhere', line = ''] = /\/order\/([a-z-]+)\.ts:(\d+)/.exec(frame ?? '') ?? [];
  const isLine = LINES.includes(file) && stack.includes('/order/run-line.ts:');
  return `${file}:${line} ${request}${isLine ? IN_A_LINE : ''}`;
}
