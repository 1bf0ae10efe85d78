/**
 * The publish time of a delivery, or the time of its arrival where the sender names none.
 *
 * Senders fill what they do not know with a default of their language: an empty text, the Unix epoch (firebase-tools),
 * the year 1 (Go). None of these is a time at which Pub/Sub published anything, and a delay counted from one would be over
 * long ago. A time that is ahead of this process is kept for up to a day, because this process may have the slow clock.
 */
import type { Message } from '../message.ts';

export type PublishTime = Pick<Message, 'publishTime' | 'assumedPublishTime'>;

/** A clock that is further behind than this would fail at everything else first: certificates, tokens, leases. */
const MOST_AHEAD_MS = 86_400_000;

/**
 * `candidates` in milliseconds since the epoch: the message's own time, then that of the event around it. `nowMs` is the
 * wall clock at the arrival. A redelivery without a usable time counts a `delay` anew: late, and never early.
 */
export function publishTimeOf(candidates: readonly (number | undefined)[], nowMs: number): PublishTime {
  const usable = candidates.find((time) => isSet(time) && time <= nowMs + MOST_AHEAD_MS);
  if (usable !== undefined) return { publishTime: new Date(usable) };
  const isAhead = candidates.some(isSet);
  return { publishTime: new Date(nowMs), assumedPublishTime: isAhead ? 'too far ahead' : 'not set' };
}

const isSet = (time: number | undefined): time is number => time !== undefined && time > 0;
