/**
 * The rules of the ledger: what each event makes of an entry. Pure, and run inside a transaction on the entry, so that
 * of two events at once each sees what the other left; a rule may be run again for an event that was already applied.
 *
 * `nowMs` is the store's time of the read. No caller's clock takes part.
 */
import type { Delayed } from '../tasks/task-body.ts';
import type { PayloadRef } from '../payload/payload-store.ts';
import {
  compareVersions,
  type Entry,
  isPending,
  isInFlight,
  type LedgerTimes,
  runsLeftBy,
  type ScheduleRef,
  sweepAtMs,
  topVersion,
  type Version,
} from './entry.ts';

export type Decision<Answer> = Readonly<{
  answer: Answer;
  /** To be written; absent: nothing changes. */
  entry?: Entry;
  /** A payload that nothing refers to once this is committed. */
  released?: PayloadRef;
  /** A pending delivery gave way to this one. */
  replaced?: true;
}>;

export type Rule<Answer> = (entry: Entry | undefined, nowMs: number) => Decision<Answer>;

type Writer = Readonly<{ ref: ScheduleRef; version: Version }>;
/** `generation` is random and made before the first run of the rule. */
type NewSchedule = Writer & Readonly<{ generation: string; delayed: Delayed }>;

/**
 * A message asks for a delivery. `enqueue`: create the task of the entry that is now current; `settled`: there is
 * nothing to do.
 */
export const scheduleByMessage =
  (asked: NewSchedule): Rule<Readonly<{ kind: 'enqueue'; entry: Entry }> | 'settled' | 'stale'> =>
  (entry, nowMs) => {
    const order = entry === undefined ? 1 : compareVersions(asked.version, topVersion(entry));
    // One that was refused has not become a dead letter for certain: it is tried again, and refused again.
    if (entry !== undefined && order === 0 && entry.state !== 'refused') {
      // It was here before: its task may not have been created, and must get the same name.
      const isWaiting = entry.state === 'scheduled' || entry.state === 'unscheduled';
      return { answer: isWaiting ? { kind: 'enqueue', entry } : 'settled' };
    }
    if (order < 0) return { answer: 'stale' };
    // Over one that is firing too: a message gets no answer that it came too late, so it is a delivery of its own.
    const fresh = begun(asked, 'scheduled', nowMs, entry);
    return { answer: { kind: 'enqueue', entry: fresh }, entry: fresh, ...givenWay(entry) };
  };

export type Scheduled = ReturnType<ReturnType<typeof scheduleByMessage>>['answer'];

/**
 * What `scheduleByMessage` answers, and nothing is written: for a message whose content has to be stored before its entry.
 * `needed` where it would write one; `after` is the generation of an entry of this very version that the queue refused,
 * or empty.
 */
export const lookByMessage =
  (asked: NewSchedule): Rule<Scheduled | Readonly<{ kind: 'needed'; after: string }>> =>
  (entry, nowMs) => {
    const decision = scheduleByMessage(asked)(entry, nowMs);
    if (decision.entry === undefined) return decision;
    return { answer: { kind: 'needed', after: refusedBefore(entry, asked.version) } };
  };

/**
 * `scheduleByMessage` with content that was stored for this version and `after`. `again` where another delivery of the
 * message has been refused since: its content is the same, and is about to be marked as done.
 */
export const scheduleStored =
  (asked: NewSchedule, after: string): Rule<Scheduled | 'again'> =>
  (entry, nowMs) => {
    const decision = scheduleByMessage(asked)(entry, nowMs);
    const isSame = decision.entry === undefined || refusedBefore(entry, asked.version) === after;
    return isSame ? decision : { answer: 'again' };
  };

const refusedBefore = (entry: Entry | undefined, version: Version): string =>
  entry !== undefined && compareVersions(version, topVersion(entry)) === 0 ? entry.generation : '';

/** A message withdraws. What was never there leaves a tombstone: what is older comes to nothing. */
export const cancelByMessage =
  (asked: Writer & Readonly<{ generation: string }>): Rule<'cancelled' | 'tooLate' | 'stale'> =>
  (entry, nowMs) => {
    if (entry !== undefined && compareVersions(asked.version, topVersion(entry)) <= 0) {
      return { answer: 'stale' };
    }
    return cancelled(entry, asked, nowMs);
  };

export type Answered<Done extends string> = Done | 'tooLate' | 'superseded';

/** A program schedules, in its own transaction. Nothing is written when a delivery is in flight. */
export const putByProgram =
  (asked: NewSchedule): Rule<Answered<'scheduled'>> =>
  (entry, nowMs) => {
    const ran = rerun(entry, asked.version);
    if (ran !== undefined) return { answer: ran === 'mine' ? 'scheduled' : ran };
    if (entry?.state === 'firing' || isInFlight(entry, nowMs)) return { answer: 'tooLate' };
    return { answer: 'scheduled', entry: begun(asked, 'unscheduled', nowMs), ...givenWay(entry) };
  };

export const cancelByProgram =
  (asked: Writer & Readonly<{ generation: string }>): Rule<Answered<'cancelled'>> =>
  (entry, nowMs) => {
    const ran = rerun(entry, asked.version);
    if (ran === 'mine') return { answer: isInFlight(entry, nowMs) ? 'tooLate' : 'cancelled' };
    if (ran !== undefined) return { answer: ran };
    return cancelled(entry, asked, nowMs);
  };

/** The task exists. Only of the same generation: what was cancelled or fired meanwhile stays so. */
export const markScheduled =
  ({ generation }: Readonly<{ generation: string }>): Rule<'marked' | 'movedOn'> =>
  (entry) => {
    if (entry?.generation !== generation || entry.state !== 'unscheduled') return { answer: 'movedOn' };
    const { tried: _tried, ...rest } = entry;
    return { answer: 'marked', entry: { ...rest, state: 'scheduled' } };
  };

type Firing = Readonly<{ generation: string; token: string }>;

/** A task wants to publish. `token` is random and made before the first run of the rule. */
export const fire =
  ({ generation, token, leaseMs }: Firing & Readonly<{ leaseMs: number }>): Rule<'fire' | 'busy' | 'drop'> =>
  (entry, nowMs) => {
    if (entry?.generation !== generation || !isPending(entry)) return { answer: 'drop' };
    if (entry.state === 'firing' && entry.firing?.token === token) return { answer: 'fire' };
    if (entry.state === 'firing' && (entry.firing?.untilMs ?? 0) > nowMs) return { answer: 'busy' };
    return {
      answer: 'fire',
      entry: { ...entry, state: 'firing', firing: { token, untilMs: nowMs + leaseMs } },
    };
  };

/** It is published. Only the one that fired says so: anything newer is a delivery of its own. */
export const markDelivered =
  ({ generation, token }: Firing): Rule<'delivered' | 'movedOn'> =>
  (entry, nowMs) => {
    const inFlight = (entry?.inFlight ?? []).filter((run) => run.token !== token);
    // Its schedule was replaced while it fired: nothing of that is in flight any more.
    if (entry?.inFlight?.some((run) => run.token === token)) {
      return { answer: 'movedOn', entry: { ...entry, inFlight } };
    }
    const isMine = entry?.generation === generation && entry.firing?.token === token;
    if (!isMine || entry.state !== 'firing') return { answer: 'movedOn' };
    return { answer: 'delivered', ...ended(entry, 'delivered', nowMs) };
  };

const markEnded =
  <State extends 'deadLettered' | 'refused'>(state: State) =>
  ({ generation }: Readonly<{ generation: string }>): Rule<State | 'movedOn'> =>
  (entry, nowMs) => {
    if (entry?.generation !== generation || !isPending(entry)) return { answer: 'movedOn' };
    return { answer: state, ...ended(entry, state, nowMs) };
  };

/** It can never be delivered, and its dead letter is published. */
export const markDeadLettered = markEnded('deadLettered');
/** No task of it can ever be stored. Its dead letter is still to come, and a redelivery must not take it for published. */
export const markRefused = markEnded('refused');

type OfGeneration = Readonly<{ generation: string }>;

/** The same where no message will come that could be dead-lettered: for a program's schedule, and for a lost task. */
export const markRefusedKept =
  ({ generation }: OfGeneration): Rule<'refused' | 'movedOn'> =>
  (entry, nowMs) => {
    if (entry?.generation !== generation || !isPending(entry)) return { answer: 'movedOn' };
    const { firing: _, ...rest } = entry;
    return { answer: 'refused', entry: { ...rest, state: 'refused', atMs: nowMs } };
  };

/** An operator, or a program, has removed the cause for which the queue refused. */
export const reopen: Rule<Readonly<{ kind: 'reopened'; entry: Entry }> | 'notRefused'> = (entry, nowMs) => {
  if (entry?.state !== 'refused' || entry.delayed === undefined) return { answer: 'notRefused' };
  // Under a name of its own: what the queue has once refused may be remembered under the old one.
  const attempt = entry.attempt + 1;
  const opened: Entry = { ...entry, state: 'unscheduled', attempt, atMs: nowMs };
  return { answer: { kind: 'reopened', entry: opened }, entry: opened };
};

/** The sweep. A lost task gets a name of its own; one that was never confirmed may still be there, under its name. */
export const recover =
  (times: LedgerTimes): Rule<Readonly<{ kind: 'enqueue'; entry: Entry }> | 'movedOn'> =>
  (entry, nowMs) => {
    const due = entry === undefined ? undefined : sweepAtMs(entry, times);
    if (entry === undefined || due === undefined || due > nowMs) return { answer: 'movedOn' };
    if (entry.state === 'unscheduled') return { answer: { kind: 'enqueue', entry } };
    const next: Entry = { ...entry, attempt: entry.attempt + 1, atMs: nowMs };
    return { answer: { kind: 'enqueue', entry: next }, entry: next };
  };

/** The sweep could not give it a task: it comes behind the others, under the same name. */
export const markTried =
  (times: LedgerTimes): Rule<'marked' | 'movedOn'> =>
  (entry, nowMs) => {
    // One that was lost has been moved on before its task was asked for.
    if (entry?.state !== 'unscheduled' || (sweepAtMs(entry, times) ?? nowMs) > nowMs)
      return { answer: 'movedOn' };
    const tried = { times: (entry.tried?.times ?? 0) + 1, atMs: nowMs };
    return { answer: 'marked', entry: { ...entry, tried } };
  };

function begun(
  { ref, version, generation, delayed }: NewSchedule,
  state: 'scheduled' | 'unscheduled',
  nowMs: number,
  before?: Entry,
): Entry {
  const inFlight = before === undefined ? [] : runsLeftBy(before, nowMs);
  const fresh = { ref, version, state, generation, attempt: 0, dueTimeMs: delayed.dueTimeMs, delayed };
  return { ...fresh, ...(inFlight.length > 0 && { inFlight }), atMs: nowMs };
}

function cancelled(
  entry: Entry | undefined,
  { ref, version, generation }: Writer & Readonly<{ generation: string }>,
  nowMs: number,
): Decision<'cancelled' | 'tooLate'> {
  if (entry === undefined) {
    return {
      answer: 'cancelled',
      entry: { ref, version, state: 'cancelled', generation, attempt: 0, atMs: nowMs },
    };
  }
  if (entry.state === 'firing' || entry.state === 'delivered' || entry.state === 'deadLettered') {
    // Its record must outlive what is older than this cancel and may still come.
    return { answer: 'tooLate', entry: { ...entry, floor: version, atMs: nowMs } };
  }
  const { entry: over, ...rest } = ended(entry, 'cancelled', nowMs);
  // What it withdraws is withdrawn, and yet what was replaced before may still be published.
  const answer = isInFlight(entry, nowMs) ? 'tooLate' : 'cancelled';
  return { answer, entry: { ...over, version }, ...rest };
}

function ended(
  entry: Entry,
  state: Entry['state'],
  nowMs: number,
): Omit<Decision<never>, 'answer'> & { entry: Entry } {
  const { delayed, firing: _, tried: _tried, ...rest } = entry;
  return { entry: { ...rest, state, atMs: nowMs }, ...releasedBy(delayed) };
}

/** Whether a transaction function runs again after a commit whose reply was lost, and whether it was overtaken since. */
function rerun(entry: Entry | undefined, version: Version): 'mine' | 'tooLate' | 'superseded' | undefined {
  if (entry === undefined) return undefined;
  if (compareVersions(entry.version, version) === 0) return 'mine';
  if (entry.floor !== undefined && compareVersions(entry.floor, version) === 0) return 'tooLate';
  return compareVersions(topVersion(entry), version) > 0 ? 'superseded' : undefined;
}

const givenWay = (entry: Entry | undefined): Pick<Decision<never>, 'released' | 'replaced'> =>
  entry === undefined ? {} : { ...releasedBy(entry.delayed), ...(isPending(entry) && { replaced: true }) };

const releasedBy = (delayed: Delayed | undefined): Pick<Decision<never>, 'released'> =>
  delayed?.payload === undefined ? {} : { released: delayed.payload };
