/**
 * Step 1 of the plan: what the commit writes about a batch that has run, and what its deliveries are answered. Pure.
 *
 * A delivery is acknowledged only by a commit, or a read, that shows its number as done, skipped or held.
 */
import assert from 'node:assert/strict';
import { leaseLost } from '../errors.ts';
import { ack, type Outcome, retry } from '../outcome.ts';
import type { BatchEnd, Entry, Progress } from './batch.ts';
import { type Draft, look, type Need, type Situation, addToCommit } from './draft.ts';
import type { Delivery } from './mailbox.ts';
import { blockedBy } from './failure.ts';
import { isSkipped, NO_GAP, progress as progressOver, skippingTo } from './stream-state.ts';

export function settle(situation: Situation, draft: Draft): Need | undefined {
  const { progress, running } = situation;
  if (progress === undefined) return undefined;
  const need = draft.isOwner ? settleOwned(situation, draft, progress) : settleLost(draft, progress);
  // A host that has been waiting for the batch alone is answered now, or is host to the next one.
  const host = progress.host !== undefined && 'kept' in progress.host ? progress.host : undefined;
  const kept = running === undefined ? host?.kept() : undefined;
  if (host !== undefined && kept !== undefined) answer(draft, host, kept);
  return need;
}

function settleOwned(situation: Situation, draft: Draft, progress: Progress): Need | undefined {
  const { running, state, view, policy } = situation;
  // A checkpoint has counted the first of them already, or its reply was lost.
  const fresh = progress.done.filter(({ entry }) => entry.number > state.last);
  assert.ok(
    fresh.every(({ entry }, index) => entry.number === state.last + 1 + index),
    'a batch without a gap',
  );
  for (const { entry } of fresh) {
    const need = removeHeld(situation, draft, entry);
    if (need !== undefined) return need;
  }
  addToCommit(
    draft,
    progressOver(
      state,
      fresh.map(({ entry }) => entry.hash),
    ),
    situation.nowMs,
  );
  draft.drained = fresh.length;
  for (const { entry, outcome } of progress.done) {
    if (entry.delivery !== undefined && entry.delivery !== running?.host)
      answer(draft, entry.delivery, outcome);
  }
  const { end } = progress;
  if (running !== undefined || end === undefined) return undefined;
  draft.ended = end;
  switch (end.kind) {
    case 'failed': {
      // Until here the lease was what kept other processes from the number.
      const isHeld = end.entry.held ?? view.at(end.entry.number);
      if (isHeld === 'unknown') return look(view, end.entry.number, policy.pageSize);
      return holdOrBlock(situation, draft, end, isHeld !== 'absent');
    }
    case 'skipped': {
      const need = removeHeld(situation, draft, end.entry);
      if (need !== undefined) return need;
      addToCommit(draft, skippingTo(draft.state, end.entry.number), situation.nowMs);
      answerEntry(draft, end.entry, end.outcome);
      return undefined;
    }
    case 'hung':
      // The lease stays, and expires: the handler has until then to come to its end.
      draft.isOwner = false;
      answerEntry(draft, end.entry, retry(leaseLost('the handler did not end with its time')));
      return undefined;
  }
}

/** The held message that has run; or a copy of a delivery that another process has held meanwhile. */
function removeHeld({ view, policy }: Situation, draft: Draft, entry: Entry): Need | undefined {
  const held = entry.held ?? view.at(entry.number);
  if (held === 'unknown') return look(view, entry.number, policy.pageSize);
  if (held !== 'absent') draft.remove.set(entry.number, held);
  return undefined;
}

/**
 * The number is held with its attempts, so that its retries do not use up the deliveries of its message. Poison under
 * `onPoison: 'block'` blocks its stream here, and nowhere else.
 */
function holdOrBlock(
  { policy, nowMs }: Situation,
  draft: Draft,
  { entry, verdict }: Extract<BatchEnd, { kind: 'failed' }>,
  isHeld: boolean,
): Need | undefined {
  const { attempts, failure, isPoison, pauseMs } = verdict;
  const form = entry.delivery?.form();
  if (!isHeld && entry.delivery !== undefined) {
    if (form === undefined) return { kind: 'encode', deliveries: [entry.delivery] };
    if (form !== 'tooLarge') draft.create.set(entry.number, form);
  }
  const isKept = isHeld || draft.create.has(entry.number);
  const isBlocked = isPoison && policy.onPoison === 'block';
  draft.isOwner = false;
  addToCommit(
    draft,
    {
      lease: null,
      attempts,
      // What could not be held is tried again by its redelivery, whenever that comes.
      nextTryAt: isBlocked || !isKept ? 0 : nowMs + pauseMs,
      ...(isBlocked && { blocked: blockedBy(failure.error, nowMs), ...NO_GAP }),
    },
    nowMs,
  );
  answerEntry(draft, entry, isKept ? ack('held') : retry(failure.error));
  return undefined;
}

/** Another process has the stream: only what the document shows as done is answered as done. */
function settleLost({ state, answers }: Draft, { done, end }: Progress): undefined {
  const lost = retry(
    leaseLost('another process took the stream over before its numbers were counted as done'),
  );
  for (const { entry, outcome } of done) {
    if (entry.delivery === undefined) continue;
    const isDone = entry.number <= state.last && !isSkipped(state, entry.number);
    answers.push({ delivery: entry.delivery, outcome: isDone ? outcome : lost });
  }
  if (end?.entry.delivery !== undefined) answers.push({ delivery: end.entry.delivery, outcome: lost });
}

function answerEntry(draft: Draft, { delivery }: Entry, outcome: Outcome): void {
  if (delivery !== undefined) answer(draft, delivery, outcome);
}

function answer({ answers }: Draft, delivery: Delivery, outcome: Outcome): void {
  if (!answers.some((one) => one.delivery === delivery)) answers.push({ delivery, outcome });
}
