/**
 * One request of messages, and an answer to each of its publishes: what the content of one is refused for is not the
 * others' fault, and what is unknown of one stops those behind it.
 */
import { PermanentError, TransientError } from '../errors.ts';
import type { OutgoingMessage } from '../message.ts';

/** Publishes all of them to one topic, under one ordering key or none, in one request; answers their IDs. */
export type Send = (messages: readonly OutgoingMessage[]) => Promise<readonly string[]>;

/** The code with which `Send` says that something in the request is refused for its content. */
export const REFUSED = 'PUBLISH_REFUSED';

export type Entry = Readonly<{
  message: OutgoingMessage;
  bytes: number;
  isAnswered(): boolean;
  resolve(id: string): void;
  reject(error: unknown): void;
}>;

/**
 * Answers every entry. `stop` is called when the entries behind must not be sent, in the same turn in which those of the
 * request are rejected: callers that publish again at once, each on its own rejection, then do so in the order of the
 * messages.
 */
export async function sendAll(
  send: Send,
  entries: readonly Entry[],
  stop: (failure: unknown) => void,
): Promise<void> {
  if (entries.length === 0) return;
  try {
    const ids = await send(entries.map((entry) => entry.message));
    let failure: unknown;
    for (const [index, entry] of entries.entries()) {
      const id = ids[index];
      if (id === undefined || id === '') entry.reject((failure = unconfirmed()));
      else entry.resolve(id);
    }
    if (failure !== undefined) stop(failure);
  } catch (error) {
    const isPermanent = error instanceof PermanentError;
    if (isPermanent && error.code === REFUSED && entries.length > 1) return sendEach(send, entries, stop);
    for (const entry of entries) entry.reject(error);
    if (!isPermanent) stop(error);
  }
}

async function sendEach(
  send: Send,
  entries: readonly Entry[],
  stop: (failure: unknown) => void,
): Promise<void> {
  let isStopped = false;
  for (const [index, entry] of entries.entries()) {
    if (isStopped) return;
    if (entry.isAnswered()) continue;
    await sendAll(send, [entry], (failure) => {
      isStopped = true;
      for (const later of entries.slice(index + 1)) later.reject(behind(failure));
      stop(failure);
    });
  }
}

const unconfirmed = (): TransientError =>
  new TransientError('PUBLISH_UNCONFIRMED', 'the service answered without an ID for the message');
export const behind = (cause: unknown): TransientError =>
  new TransientError('PUBLISH_FAILED', 'a publish before it failed', { cause });
