/**
 * The port behind the claim check: a store for content that is too large for the task, row or document that refers to
 * it.
 *
 * Content is stored before anything refers to it, and is marked, not deleted, once its purpose is fulfilled: a
 * task may run twice. A crash between the two leaves content that is never asked for; its expiry and the sweep end it.
 */
import { hashOf } from '../hash.ts';
import type { Sweep } from '../sweep.ts';

export type PayloadRef = Readonly<{
  /** Names the owner and the content: `payloadRef`. */
  id: string;
  bytes: number;
  /** SHA-256 of the content, as `hashOf(content)`. */
  digest: string;
}>;

/** `due`: documents (or entries) that may be removed. `done`: those that were. */
export type PayloadSweep = Sweep<object, 'signal'>;

export type PayloadStore = Readonly<{
  /**
   * Idempotent: the same owner and content give the same ref, and a repeat costs one read. Resolves once everything is
   * stored for as long as `KEEP_MS` after `neededAtMs` (milliseconds since the epoch; one in the past means now), also
   * where the content had been marked as done. Until it resolves `get` does not find the content.
   *
   * `owner` names one delivery: two deliveries of one owner would end each other's content. Rejects with TransientError
   * `STORE_UNAVAILABLE`; what was stored by then is completed by a repeat, or removed by the sweep.
   */
  put(owner: string, content: Uint8Array, neededAtMs: number): Promise<PayloadRef>;
  /**
   * The content, with its length and digest checked. Rejects with PermanentError: `PAYLOAD_DONE` where `done` was
   * called for it, `PAYLOAD_MISSING`, `PAYLOAD_DAMAGED`; with TransientError `STORE_UNAVAILABLE` when nothing is known.
   */
  get(ref: PayloadRef): Promise<Uint8Array>;
  /**
   * The purpose of the content is fulfilled, for good. The content is removable `GRACE_MS` later, the mark itself
   * `KEEP_MS` later, so that a task that runs again finds the mark. Idempotent; for unknown content it does nothing.
   */
  done(ref: PayloadRef): Promise<void>;
  /**
   * Removes what has expired and what a crash left half written; nothing that is needed, whatever is written at the same
   * time. Ends when there is nothing more, or soon after `context.signal` is aborted. Rejects when the store cannot be
   * asked.
   */
  sweep: PayloadSweep;
}>;

const DAY_MS = 86_400_000;

/**
 * 60 days. Cloud Tasks keeps a task for at most 31 days (https://cloud.google.com/tasks/docs/quotas), so the last task
 * for a due time is gone by 31 days after it; the rest is for clocks and for a sweep that puts lost tasks back.
 */
export const KEEP_MS = 60 * DAY_MS;

/**
 * One day. A task that had succeeded runs again when its reply was lost, which is after the queue's backoff: one hour at
 * most by default (https://cloud.google.com/tasks/docs/configuring-queues#retry). A run that is already reading must end.
 */
export const GRACE_MS = DAY_MS;

/** What was half written for so long is not being written any more: a put takes seconds. */
export const UNFINISHED_MS = DAY_MS;

/** Beyond what was asked for, so that a repeat within a day finds its content kept for long enough. */
export const REPEAT_MARGIN_MS = DAY_MS;

export function payloadRef(owner: string, content: Uint8Array): PayloadRef {
  const digest = hashOf(content);
  return { id: hashOf(owner, digest), bytes: content.length, digest };
}

/** Until when content that is needed at `neededAtMs` must be there. */
export const keepUntil = (neededAtMs: number, nowMs: number): number => Math.max(neededAtMs, nowMs) + KEEP_MS;
