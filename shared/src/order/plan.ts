/**
 * What one cycle of a stream's worker does, worked out from what is known. Pure: no input, no output, no clock.
 *
 *   1. settle  what has run becomes part of the document (settle.ts)
 *   2. judge   each waiting delivery is answered, or is left to be run or held (judge.ts)
 *   3. choose  the run of numbers that starts next (choose.ts)
 *   4. hold    of what is left, what must not wait any longer
 *   5. write   all of it together, with the lease of the run, or with its release
 *
 * All of it is one commit. Where something must be known or made first, the plan says so instead, and is asked again.
 */
import { TransientError } from '../errors.ts';
import { ack, type Outcome, retry } from '../outcome.ts';
import type { Batch, BatchEnd } from './batch.ts';
import { choose, type Choice } from './choose.ts';
import {
  type Answer,
  type Draft,
  firstHeld,
  heldAt,
  isWritten,
  look,
  type Need,
  newDraft,
  type Situation,
  addToCommit,
} from './draft.ts';
import { judgeAll, judgeLater, type Waiting } from './judge.ts';
import type { Delivery, Visit } from './mailbox.ts';
import { settle } from './settle.ts';
import {
  gapFields,
  hasLiveLease,
  isDue,
  isSuspect,
  NO_GAP,
  startedRun,
  type StreamFields,
  type StreamState,
} from './stream-state.ts';
import type { HeldMessage } from './stream-store.ts';

export type Complete = Readonly<{
  kind: 'complete';
  /** Nothing is written where this, `create` and `remove` are empty. */
  fields: StreamFields;
  create: readonly HeldMessage[];
  remove: readonly HeldMessage[];
  /** Safe to give once the commit is applied, or at once where there is none. */
  answers: readonly Answer[];
  /** Safe too, but this delivery stays unanswered as the host of the batch. */
  keep: Answer | undefined;
  /** To be run once the commit is applied. */
  batch: Batch | undefined;
  /** Ends here, and comes again with a turn. */
  asksTurn: Delivery | Visit | undefined;
  /** Nothing is left for the visit to do. */
  endsVisit: boolean;
  /** When a visit should come, on the store's clock. */
  wakeAt: number | undefined;
  /** For logs and metrics. */
  events: Readonly<{
    ended: BatchEnd | undefined;
    takesOver: boolean;
    /** The first number of a gap that this commit opens. */
    missing: number | undefined;
    /** Numbers that this commit counts as done. */
    drained: number;
    /** Another process has the lease of the batch that is running. */
    lost: boolean;
    unknownStale: readonly Delivery[];
  }>;
}>;

export type Plan = Complete | Need;

/**
 * What one commit may hold: a request to Firestore has 10 MiB at most, over REST with its bytes in base64, and the
 * message that failed may be as large as a document (https://firebase.google.com/docs/firestore/quotas). The next cycle
 * goes on.
 */
const MOST_HELD_BYTES = 6_000_000;
/** Of a held message beside its content: names, hash and source. */
const HELD_FIELDS_BYTES = 1_000;

/** Beside a running batch a delivery waits for its turn so long, and is then held. */
export const WAIT_MS = 1_000;

export function plan(situation: Situation): Plan {
  const draft = newDraft(situation);
  const unsettled = settle(situation, draft);
  if (unsettled !== undefined) return unsettled;
  const waiting = judgeAll(situation, draft);
  const choice = choose(situation, draft, waiting);
  if (choice.kind !== 'choice') return choice;
  const unheld = hold(situation, draft, waiting, choice);
  if (unheld !== undefined) return unheld;
  if (choice.entries.length > 0) start(situation, draft, choice);
  else {
    const unknown = releaseOrWait(situation, draft, choice);
    if (unknown !== undefined) return unknown;
  }
  judgeLater(situation, draft, waiting);
  return complete(situation, draft, choice);
}

/** Step 4. What cannot be held is refused, and comes again. */
function hold(situation: Situation, draft: Draft, waiting: Waiting, choice: Choice): Need | undefined {
  const { isStopping } = situation;
  const held = [...waiting.first.values()].filter((one) => mustBeHeld(situation, waiting, choice, one));
  if (isStopping) {
    for (const delivery of [...held, ...waiting.later]) draft.answers.push({ delivery, outcome: STOPPING });
    return undefined;
  }
  const bare = held.filter((one) => one.form() === undefined);
  if (bare.length > 0) return { kind: 'encode', deliveries: bare };
  let bytes = 0;
  for (const delivery of held) {
    const { number } = delivery.arrival;
    const form = delivery.form();
    if (form === undefined || form === 'tooLarge') {
      draft.answers.push({ delivery, outcome: TOO_LARGE });
      continue;
    }
    bytes += form.message.length + HELD_FIELDS_BYTES;
    if (bytes > MOST_HELD_BYTES && draft.create.size > 0) break;
    draft.create.set(number, form);
    draft.answers.push({ delivery, outcome: ack('held') });
    if (draft.state.epoch === null && delivery.arrival.epoch !== undefined) {
      addToCommit(draft, { epoch: delivery.arrival.epoch }, situation.nowMs);
    }
  }
  return undefined;
}

function mustBeHeld(
  situation: Situation,
  waiting: Waiting,
  { entries, asksTurn }: Choice,
  delivery: Delivery,
): boolean {
  const { running, monotonic } = situation;
  const { number } = delivery.arrival;
  if (delivery === asksTurn) return false;
  if (entries.length === 0 && running === undefined) return true;
  const hasWaited = monotonic - delivery.arrivedAt >= WAIT_MS;
  if (running !== undefined) return hasWaited && !running.entries.some((one) => one.number === number);
  if (entries.some((one) => one.number === number)) return false;
  // What follows the batch without a gap is the next batch.
  let following = (entries.at(-1)?.number ?? 0) + 1;
  while (following < number && waiting.first.has(following)) following += 1;
  return following !== number && (hasWaited || delivery.wasPassedOver());
}

/** Step 5, with a batch: its lease, its identities, and the time at which a visit must come if this process dies. */
function start(situation: Situation, draft: Draft, { entries, takesOver }: Choice): void {
  const { nowMs, owner, policy } = situation;
  const { state } = draft;
  const epoch = entries.find(({ delivery }) => delivery?.arrival.epoch !== undefined)?.delivery?.arrival
    .epoch;
  const hashes = entries.map(({ hash }) => hash);
  addToCommit(
    draft,
    {
      lease: { owner, lengthMs: policy.leaseMs, to: state.last + entries.length },
      readyAt: nowMs + policy.leaseMs,
      ...(entries.some(({ delivery }) => delivery !== undefined) && {
        run: startedRun(state, state.last + 1, hashes),
      }),
      ...(state.epoch === null && epoch !== undefined && { epoch }),
      ...(takesOver && takenOver(state)),
    },
    nowMs,
  );
}

/** What a takeover says about the batch whose process died. */
const takenOver = (state: StreamState): StreamFields => ({
  attempts: state.attempts + 1,
  suspectsTo: Math.max(state.suspectsTo, state.lease?.to ?? 0),
});

/** Step 5, without a batch: the lease is released, and the document shows what the stream waits for. */
function releaseOrWait(situation: Situation, draft: Draft, { takesOver }: Choice): Need | undefined {
  const { nowMs, running, visit, view, policy, state: before } = situation;
  // The batch that is running has the lease, unless another process took it over.
  if (running !== undefined && draft.isOwner) return undefined;
  const isReleased = draft.isOwner || takesOver;
  // A takeover that finds nothing to run: its process died, and what it ran is not here.
  if (takesOver) addToCommit(draft, { lease: null, ...takenOver(before) }, nowMs);
  else if (draft.isOwner) addToCommit(draft, { lease: null }, nowMs);
  const { state } = draft;
  const isVisited = visit !== undefined && state.lease === null && isDue(state, nowMs);
  if (state.lease !== null || !(isWritten(draft) || isVisited)) return undefined;
  if (state.blocked !== null) {
    addToCommit(draft, { readyAt: null, ...NO_GAP }, nowMs);
    return undefined;
  }
  // Only holds: the document says already what the stream waits for, and a visit comes where one is due.
  const isAsBefore = before.lease === null && !isReleased && state.last === before.last && !isVisited;
  const hasGap = before.waitingSince !== null && before.gapAt === before.last;
  if (isAsBefore && (before.readyAt !== null || (hasGap && !draft.create.has(state.last + 1))))
    return undefined;
  const next = heldAt(draft, view, state.last + 1);
  if (next === 'unknown') return look(view, state.last + 1, policy.pageSize);
  if (next !== 'absent') {
    if (isWritten(draft)) addToCommit(draft, { readyAt: Math.max(nowMs, state.nextTryAt), ...NO_GAP }, nowMs);
    return undefined;
  }
  const first = firstHeld(draft, view);
  if (first === 'unknown') return look(view, state.last + 1, policy.pageSize);
  addToCommit(
    draft,
    { readyAt: null, ...gapFields(state, first === 'none' ? undefined : first, nowMs) },
    nowMs,
  );
  return undefined;
}

function complete(situation: Situation, draft: Draft, choice: Choice): Plan {
  const { entries, host, takesOver, needsTurn, asksTurn } = choice;
  const { state: before, nowMs, visit, isFresh, running, policy } = situation;
  const { state, create, remove, answers } = draft;
  if (create.size !== remove.size) {
    addToCommit(draft, { held: state.held + create.size - remove.size }, nowMs);
  }
  const isStarted = entries.length > 0;
  const endsVisit = visit !== undefined && running === undefined && (!isStarted || visit.isOver());
  // An answer that no commit confirms rests on the document as it is, not as this process remembers it.
  if ((endsVisit || answers.length > 0) && !isWritten(draft) && !isFresh) return { kind: 'read' };
  const inBatchTime = running?.host ?? host;
  const opensGap = draft.state.waitingSince !== null && draft.state.gapAt !== before.gapAt;
  const keep = answers.find(({ delivery }) => delivery === inBatchTime);
  return {
    kind: 'complete',
    fields: draft.fields,
    create: [...create.values()],
    remove: [...remove.values()],
    answers: answers.filter((one) => one !== keep),
    keep,
    batch: isStarted
      ? {
          owner: situation.owner,
          entries,
          host,
          attempts: draft.state.attempts,
          needsTurn,
          isExhausted: isSuspect(draft.state) && draft.state.attempts >= policy.maxAttempts,
        }
      : undefined,
    asksTurn,
    endsVisit,
    wakeAt: isStarted || asksTurn !== undefined ? undefined : wakeAt(situation, draft),
    events: {
      ended: draft.ended,
      takesOver,
      missing: opensGap ? draft.state.last + 1 : undefined,
      drained: draft.drained,
      lost: running !== undefined && !draft.isOwner,
      unknownStale: draft.unknownStale,
    },
  };
}

/** A stream that this commit leaves due, or that was met due and not started, should not wait for the next sweep. */
function wakeAt({ state: before, nowMs, visit }: Situation, { state }: Draft): number | undefined {
  if (state.readyAt === null || state.blocked !== null || hasLiveLease(state, nowMs)) return undefined;
  if (state.readyAt !== before.readyAt) return state.readyAt;
  return visit === undefined && isDue(state, nowMs) ? Math.max(nowMs, state.nextTryAt) : undefined;
}

export const STOPPING: Outcome = retry(new TransientError('DELIVERY_STOPPED', 'the process is about to end'));
const TOO_LARGE: Outcome = retry(
  new TransientError(
    'TOO_LARGE_TO_HOLD',
    'the message cannot run yet, and is too large to be held; accepted without a payload store: what the store can hold',
  ),
);
