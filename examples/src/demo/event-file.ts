/**
 * An events file: newline-delimited JSON, blank lines allowed. It is read and checked whole before anything starts,
 * so that a mistake on the last line costs nothing.
 */
import { readFile, stat } from 'node:fs/promises';
import { type DemoEvent, EventError, parseEvent } from './event.ts';
import { UsageError } from './options.ts';

/** Bounds of one demo run: the stack keeps everything in memory. */
const MOST_EVENTS = 10_000;
const MOST_BYTES = 64 * 1_024 * 1_024;
/** Each publisher is a client with a connection of its own. */
const MOST_PUBLISHERS = 10;

/** Throws UsageError for a file that cannot be read or is not a valid events file. */
export async function readEvents(file: string, nowMs: number): Promise<readonly DemoEvent[]> {
  return parseEvents(await readText(file), file, nowMs);
}

/** Throws UsageError with the file, the line number, the field and what is accepted. */
export function parseEvents(text: string, file: string, nowMs: number): readonly DemoEvent[] {
  const events: DemoEvent[] = [];
  const publishers = new Set<string>();
  for (const [index, content] of text.split('\n').entries()) {
    if (content.trim() === '') continue;
    const line = index + 1;
    const event = parseLine(content, file, line, nowMs);
    events.push(event);
    publishers.add(event.publisher);
    if (events.length > MOST_EVENTS) {
      throw new UsageError(`${file}:${line}: accepted: at most ${MOST_EVENTS} events`);
    }
    if (publishers.size > MOST_PUBLISHERS) {
      throw new UsageError(
        `${file}:${line}: field publisher is "${event.publisher}", number ${publishers.size}; accepted: at most ${MOST_PUBLISHERS} different publishers`,
      );
    }
  }
  if (events.length === 0) throw new UsageError(`${file}: no events; accepted: one JSON object on a line`);
  return events;
}

function parseLine(content: string, file: string, line: number, nowMs: number): DemoEvent {
  try {
    return parseEvent(content, line, nowMs);
  } catch (error) {
    if (error instanceof EventError) throw new UsageError(`${file}:${line}: ${error.message}`);
    throw error;
  }
}

async function readText(file: string): Promise<string> {
  try {
    const { size } = await stat(file);
    if (size > MOST_BYTES) {
      throw new UsageError(`${file}: ${size} bytes; accepted: at most ${MOST_BYTES} bytes`);
    }
    return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(file));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    const reasons: Record<string, string> = {
      ENOENT: 'no such file',
      EISDIR: 'is a directory',
      EACCES: 'may not be read',
      ERR_ENCODING_INVALID_ENCODED_DATA: 'not UTF-8',
    };
    throw new UsageError(`${file}: ${reasons[code] ?? code}; accepted: a file of newline-delimited JSON`);
  }
}
