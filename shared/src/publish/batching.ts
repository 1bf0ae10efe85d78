/**
 * Collects messages into requests, and answers each publish on its own.
 *
 * - Messages of one ordering key: one request outstanding, so that none overtakes another. After a failure whose
 *   outcome is unknown, what waits behind it is rejected too, and the key is free again at once. What is published after
 *   its caller could know of the failure is not rejected: it goes once the request that failed is over.
 * - A message never fails for another's fault: a request that is refused for its content is sent again one by one.
 * - Every publish is answered within `timeoutMs`. One that has been answered is not sent any more.
 */
import type { Cancel, Clock } from '../clock.ts';
import { TransientError } from '../errors.ts';
import { messageBytes, type OutgoingMessage } from '../message.ts';
import { behind, type Entry, type Send, sendAll } from './send-all.ts';

export type BatchingOptions = Readonly<{
  clock: Clock;
  timeoutMs: number;
  /** How long the first message of a request waits for others. */
  delayMs: number;
  maxMessages: number;
  maxBytes: number;
}>;

export type Batching = Readonly<{
  publish(message: OutgoingMessage): Promise<string>;
  /** Resolves when every publish so far has been answered. */
  idle(): Promise<void>;
}>;

type Lane = {
  waiting: Entry[];
  bytes: number;
  cancel: Cancel | undefined;
  isSending: boolean;
  /** A publish of the request on its way was answered in time, as unknown, and so was what waited behind it. */
  isAnswered: boolean;
};

export function batching(send: Send, options: BatchingOptions): Batching {
  const { clock, timeoutMs, delayMs, maxMessages, maxBytes } = options;
  const lanes = new Map<string, Lane>();
  const unanswered = new Set<Promise<unknown>>();

  const accept = (
    message: OutgoingMessage,
    late: (entry: Entry) => void,
  ): { entry: Entry; answer: Promise<string> } => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    let answered = false;
    const answer = (how: () => void): void => {
      answered = true;
      cancel();
      how();
    };
    const cancel = clock.after(timeoutMs, () => {
      answer(() => reject(timedOut(timeoutMs)));
      late(entry);
    });
    const entry: Entry = {
      message,
      bytes: messageBytes(message),
      isAnswered: () => answered,
      resolve: (id) => answer(() => resolve(id)),
      reject: (error) => answer(() => reject(error)),
    };
    return { entry, answer: promise };
  };

  const isFull = (lane: Lane): boolean => lane.waiting.length >= maxMessages || lane.bytes >= maxBytes;

  /** As many as fit in one request; one alone may be larger. */
  const take = (lane: Lane): Entry[] => {
    const taken: Entry[] = [];
    let bytes = 0;
    for (const entry of lane.waiting) {
      if (taken.length === maxMessages || (taken.length > 0 && bytes + entry.bytes > maxBytes)) break;
      bytes += entry.bytes;
      taken.push(entry);
    }
    lane.waiting = lane.waiting.slice(taken.length);
    lane.bytes -= bytes;
    return taken.filter((entry) => !entry.isAnswered());
  };

  const drain = async (name: string, lane: Lane): Promise<void> => {
    lane.isSending = true;
    while (lane.waiting.length > 0) {
      lane.isAnswered = false;
      await sendAll(send, take(lane), (failure) => {
        if (!lane.isAnswered) rejectFrom(lane, 0, failure);
      });
    }
    lanes.delete(name);
  };

  const rejectFrom = (lane: Lane, index: number, failure: unknown): void => {
    for (const entry of lane.waiting.splice(index)) {
      lane.bytes -= entry.bytes;
      entry.reject(behind(failure));
    }
  };

  /** One that was answered in time: on its way, or waiting. */
  const afterTimeout = (lane: Lane, entry: Entry): void => {
    if (!lane.isSending) return;
    const index = lane.waiting.indexOf(entry);
    lane.isAnswered ||= index < 0;
    rejectFrom(lane, index + 1, timedOut(timeoutMs));
  };

  const flush = (name: string, lane: Lane): void => {
    lane.cancel?.();
    lane.cancel = undefined;
    if (lane.waiting[0]?.message.orderingKey !== undefined) {
      void drain(name, lane);
    } else {
      lanes.delete(name);
      while (lane.waiting.length > 0) void sendAll(send, take(lane), () => {});
    }
  };

  return {
    publish(message) {
      const { topic, orderingKey } = message;
      const name = JSON.stringify(orderingKey === undefined ? [topic] : [topic, orderingKey]);
      const lane = lanes.get(name) ?? emptyLane();
      lanes.set(name, lane);
      const { entry, answer } = accept(message, (late) => afterTimeout(lane, late));
      const tracked = answer.catch(() => {}).finally(() => unanswered.delete(tracked));
      unanswered.add(tracked);
      lane.waiting.push(entry);
      lane.bytes += entry.bytes;
      if (lane.isSending) return answer;
      if (isFull(lane)) flush(name, lane);
      else lane.cancel ??= clock.after(delayMs, () => flush(name, lane));
      return answer;
    },
    async idle() {
      while (unanswered.size > 0) await Promise.all(unanswered);
    },
  };
}

const emptyLane = (): Lane => ({
  waiting: [],
  bytes: 0,
  cancel: undefined,
  isSending: false,
  isAnswered: false,
});

const timedOut = (timeoutMs: number): TransientError =>
  new TransientError('PUBLISH_TIMEOUT', `the publish was not confirmed within ${timeoutMs} ms`);
