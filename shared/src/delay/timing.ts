/**
 * When a delayed message may go, and when it must wait: pure rules over three clocks that may disagree (the stage's,
 * the republisher's and the task queue's).
 *
 * Never early while no clock is off by more than 30 s: either the queue itself was asked for the very instant, or the
 * local clock is past it by more than the error that is allowed for. A clock that is slow makes a message late by as
 * much, and never makes a loop that does not sleep.
 */

/** How far a clock may be off. A message is due without a task only when it is due for longer than this. */
const CLOCK_ERROR_MS = 30_000;

/**
 * The longest time from now to a task's schedule time: 29.5 days. Cloud Tasks refuses more than 720 h
 * (https://cloud.google.com/tasks/docs/quotas); the rest is the margin for clocks and for the call itself.
 */
export const LONGEST_HOP_MS = 29.5 * 86_400_000;

/** A final task that seems early by no more than this waits in the process; otherwise it rests so long and goes back. */
export const REST_MS = 5_000;

/** The header with a task's schedule time may be cut to whole seconds. */
const ETA_ROUNDING_MS = 1_000;

/** Due for so long that no clock within its allowed error could call it early. */
export const isSurelyDue = (instantMs: number, nowMs: number): boolean => instantMs + CLOCK_ERROR_MS <= nowMs;

/** The schedule time of the next task: the instant itself where the queue takes it, else a hop on the way. */
export const scheduleTimeFor = (instantMs: number, nowMs: number): number =>
  Math.min(instantMs, nowMs + LONGEST_HOP_MS);

export type Step =
  | Readonly<{ kind: 'publish' }>
  /** Look again after so long. */
  | Readonly<{ kind: 'wait'; milliseconds: number }>
  /** Rest first, then make the next task. */
  | Readonly<{ kind: 'reschedule'; restMs: number }>;

export type Wake = Readonly<{
  instantMs: number;
  /** The schedule time that the task was created with. */
  scheduleTimeMs: number;
  /** The schedule time that the queue says it had, where it says so: later than asked for on a repeat. */
  etaMs?: number;
  nowMs: number;
}>;

/**
 * Only a final task (one whose schedule time is the instant) may wait or fire. Everything else makes the next task,
 * even a hop that wakes seconds before the instant by the local clock, which may be fast.
 */
export function nextStep({ instantMs, scheduleTimeMs, etaMs, nowMs }: Wake): Step {
  if (scheduleTimeMs !== instantMs) return { kind: 'reschedule', restMs: 0 };
  // The queue ran it before the time that was asked for: by hand, or because it cut the schedule time short.
  const ranAhead = etaMs !== undefined && etaMs < instantMs - ETA_ROUNDING_MS;
  if (ranAhead && !isSurelyDue(instantMs, nowMs)) return { kind: 'reschedule', restMs: REST_MS };
  const early = instantMs - nowMs;
  if (early <= 0) return { kind: 'publish' };
  return early <= REST_MS ? { kind: 'wait', milliseconds: early } : { kind: 'reschedule', restMs: REST_MS };
}
