/**
 * When a delayed message may go, and when it must wait: rules over clocks that may disagree (the stage's, the
 * republisher's, the task queue's and that of Pub/Sub).
 *
 * Never early because of one wrong clock, however wrong it is: the stage sends at once only what is due by its own clock
 * and by Pub/Sub's, and a task is published only when the queue, asked for the very due time, has dispatched it and the
 * republisher's clock is past it too. A clock that is slow makes a message late by as much, and never makes a loop that
 * does not sleep.
 */
import type { Clock } from '../clock.ts';
import type { Message } from '../message.ts';

/**
 * The longest time from now to a task's schedule time: 29.5 days. Cloud Tasks refuses more than 720 h
 * (https://cloud.google.com/tasks/docs/quotas); the rest is the margin for clocks and for the call itself.
 */
export const LONGEST_HOP_MS = 29.5 * 86_400_000;

/** A final task that seems early by no more than this waits in the process; otherwise it rests so long and goes back. */
export const REST_MS = 5_000;

/** The header with a task's schedule time may be cut to whole seconds. */
const ETA_ROUNDING_MS = 1_000;

export type AgreedTime = Readonly<{
  /** Remembers the publish time of a message that has come. */
  saw(message: Pick<Message, 'publishTime' | 'assumedPublishTime'>): void;
  /** Milliseconds since the epoch; undefined before the first message with a publish time of the server's. */
  nowMs(): number | undefined;
}>;

/**
 * A time that has come by two clocks: that of the process, and Pub/Sub's, which has reached the publish time of every
 * message that the process has seen. It may be behind the true time by as long as no message came; it is ahead of it only
 * when both clocks are. What a message asks for says nothing of the time at which it is delivered, so its publish time
 * and its delay together are no second clock.
 */
export function agreedTime(clock: Pick<Clock, 'now'>): AgreedTime {
  let latestMs: number | undefined;
  return {
    saw({ publishTime, assumedPublishTime }) {
      if (assumedPublishTime === undefined) latestMs = Math.max(latestMs ?? -Infinity, publishTime.getTime());
    },
    nowMs: () => (latestMs === undefined ? undefined : Math.min(latestMs, clock.now())),
  };
}

/** The schedule time of the next task: the due time itself where the queue takes it, else a hop on the way. */
export const scheduleTimeFor = (dueTimeMs: number, nowMs: number): number =>
  Math.min(dueTimeMs, nowMs + LONGEST_HOP_MS);

export type Step =
  | Readonly<{ kind: 'publish' }>
  /** Look again after so long. */
  | Readonly<{ kind: 'wait'; milliseconds: number }>
  /** Rest first, then make the next task. */
  | Readonly<{ kind: 'reschedule'; restMs: number }>;

export type Wake = Readonly<{
  dueTimeMs: number;
  /** The schedule time that the task was created with. */
  scheduleTimeMs: number;
  /** The schedule time that the queue says it had, where it says so: later than asked for on a repeat. */
  etaMs?: number;
  nowMs: number;
}>;

/**
 * Only a final task (one whose schedule time is the due time) may wait or fire. Everything else makes the next task,
 * even a hop that wakes seconds before the due time by the local clock, which may be fast.
 */
export function nextStep({ dueTimeMs, scheduleTimeMs, etaMs, nowMs }: Wake): Step {
  if (scheduleTimeMs !== dueTimeMs) return { kind: 'reschedule', restMs: 0 };
  // The queue ran it before the time that was asked for: by hand, or because it cut the schedule time short. Then the
  // local clock would be the only one to say that the time has come; the next task has the queue's word again.
  const ranAhead = etaMs !== undefined && etaMs < dueTimeMs - ETA_ROUNDING_MS;
  if (ranAhead) return { kind: 'reschedule', restMs: REST_MS };
  const early = dueTimeMs - nowMs;
  if (early <= 0) return { kind: 'publish' };
  return early <= REST_MS ? { kind: 'wait', milliseconds: early } : { kind: 'reschedule', restMs: REST_MS };
}
