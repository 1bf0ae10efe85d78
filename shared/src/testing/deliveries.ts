/**
 * Messages, contexts and a log for tests of stages, and for contract suites.
 */
import type { Clock } from '../clock.ts';
import { contextFor } from '../context.ts';
import type { Context } from '../handler.ts';
import type { Log, LogFields } from '../log.ts';
import type { Message } from '../message.ts';

export function aMessage(
  id: string,
  fields: Partial<Message> & { dedupId?: string; text?: string } = {},
): Message {
  const { dedupId, text = 'data', ...rest } = fields;
  const attributes = dedupId === undefined ? {} : { dedupId };
  return { id, data: Buffer.from(text), attributes, publishTime: new Date(Date.UTC(2030, 0, 1)), ...rest };
}

type LogLine = Readonly<{ level: string; message: string; fields: LogFields }>;

export function memoryLog(): Log & Readonly<{ lines: readonly LogLine[]; events(): unknown[] }> {
  const lines: LogLine[] = [];
  const at =
    (level: string) =>
    (message: string, fields: LogFields = {}): void =>
      void lines.push({ level, message, fields });
  return {
    lines,
    events: () => lines.map((line) => line.fields['event']),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  };
}

/** A delivery of 60 s that begins now. */
export const aContext = (clock: Clock, fields: Partial<Context> = {}): Context =>
  contextFor(clock, {
    consumer: 'consumer',
    source: 'projects/p/subscriptions/s',
    log: memoryLog(),
    ...fields,
  });
