/** Bodies of commands and replies: JSON in UTF-8, or nothing at all. */
import { PermanentError } from '../errors.ts';
import type { Message } from '../message.ts';

/** Throws PermanentError `INVALID_DATA` for what JSON has no text for: undefined, a function, a bigint, a circle. */
export function jsonOf(what: string, value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value) as string | undefined;
  } catch (cause) {
    throw invalid(`${what} is no JSON`, cause);
  }
  if (text === undefined) throw invalid(`${what} is of type ${typeof value}`);
  return text;
}

/** The text of a message's data, once it is known to be JSON; empty where it has none. Throws PermanentError `INVALID_DATA`. */
export function jsonText({ data }: Pick<Message, 'data'>): string {
  if (data.length === 0) return '';
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(data);
    JSON.parse(text);
    return text;
  } catch (cause) {
    throw invalid('the data is no JSON in UTF-8', cause);
  }
}

/** Undefined for an empty text. */
export const valueOf = (text: string | undefined): unknown =>
  text === undefined || text === '' ? undefined : JSON.parse(text);

const invalid = (what: string, cause?: unknown): PermanentError =>
  new PermanentError('INVALID_DATA', `${what}; accepted: a value that is JSON`, { cause });
