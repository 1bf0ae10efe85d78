/**
 * Step 3 of the plan: which numbers the next batch runs, and in whose time. Pure.
 */
import type { Entry } from './batch.ts';
import { type Answer, type Draft, heldAt, look, type Need, type Situation } from './draft.ts';
import type { Waiting } from './judge.ts';
import type { Delivery, Visit } from './mailbox.ts';
import { hasLiveLease, isSuspect } from './stream-state.ts';

export type Choice = Readonly<{
  kind: 'choice';
  /** Empty: nothing starts in this cycle. */
  entries: readonly Entry[];
  host: Delivery | Visit | undefined;
  /** The lease of another process has expired, and this worker may take the stream over. */
  takesOver: boolean;
  /** The turn is kept until the batch is settled. */
  needsTurn: boolean;
  /** It would start a number for which it has no turn yet. */
  asksTurn?: Delivery | Visit;
}>;

/** A batch is one commit, and a hundred writes of it are well below any store's limit. */
const MOST = 50;

const NOTHING: Choice = { kind: 'choice', entries: [], host: undefined, takesOver: false, needsTurn: false };

/**
 * Consecutive numbers from the one after `last`, each of which is held or delivered. One alone where the first of them
 * has failed or has killed its process, so that it takes nothing with it.
 */
export function choose(situation: Situation, draft: Draft, waiting: Waiting): Choice | Need {
  const { view, policy, running, isStopping, nowMs } = situation;
  const { state } = draft;
  const takesOver = state.lease !== null && !draft.isOwner;
  const visit = hasTime(situation, situation.visit) ? situation.visit : undefined;
  if (running !== undefined || isStopping || state.blocked !== null || nowMs < state.nextTryAt)
    return NOTHING;
  if (takesOver && (hasLiveLease(state, nowMs) || visit === undefined)) return NOTHING;

  const startsAlone = takesOver || state.attempts > 0 || isSuspect(state);
  // With a single attempt, no number may be started together with others that could end its process.
  const most = startsAlone || policy.maxAttempts === 1 ? 1 : MOST;
  const entries: Entry[] = [];
  let host: Choice['host'];
  for (let number = state.last + 1; entries.length < most; number += 1) {
    const delivery = waiting.first.get(number);
    const held = heldAt(draft, view, number);
    if (held === 'unknown') {
      if (delivery === undefined) host ??= hostOf(situation, draft, waiting, entries);
      if (delivery === undefined && host === undefined) break;
      return look(view, number, policy.pageSize);
    }
    if (held !== 'absent') {
      // A number that has failed, or killed its process, must not use up the delivery attempts of other messages.
      if (startsAlone && visit === undefined) break;
      host ??= hostOf(situation, draft, waiting, entries);
      if (host === undefined) break;
      entries.push({ number, hash: held.hash, held });
      continue;
    }
    if (delivery === undefined) break;
    // Only a visit starts what has killed its process; what can be held is held until then.
    if (isSuspect(state) && visit === undefined && delivery.form() !== 'tooLarge') {
      if (delivery.form() === undefined) return { kind: 'encode', deliveries: [delivery] };
      break;
    }
    entries.push({ number, hash: delivery.arrival.hash, delivery });
  }
  const starts = state.attempts + (takesOver ? 1 : 0);
  const needsTurn =
    entries.length > 0 && (takesOver || isSuspect(state)) && starts >= Math.min(2, policy.maxAttempts - 1);
  const starter = visit ?? entries[0]?.delivery;
  if (needsTurn && starter?.hasTurn() === false) return { ...NOTHING, asksTurn: starter };
  return { kind: 'choice', entries, host, takesOver, needsTurn };
}

/**
 * A visit; or a delivery that is unanswered anyway, the one with most time; or else one whose answer is ready, and that
 * is kept unanswered for this.
 */
function hostOf(
  situation: Situation,
  draft: Draft,
  waiting: Waiting,
  entries: readonly Entry[],
): Choice['host'] {
  if (hasTime(situation, situation.visit)) return situation.visit;
  const own = entries.flatMap(({ delivery }) => delivery ?? []);
  const unanswered = [...own, ...waiting.first.values(), ...waiting.later];
  return (
    withMostTime(situation, unanswered) ??
    withMostTime(
      situation,
      draft.answers.filter(isSafe).map(({ delivery }) => delivery),
    )
  );
}

/** A delivery that is to come again is better answered at once. */
const isSafe = ({ outcome }: Answer): boolean => outcome.kind !== 'retry';

const withMostTime = (situation: Situation, deliveries: readonly Delivery[]): Delivery | undefined =>
  deliveries
    .filter((one) => hasTime(situation, one))
    .toSorted((left, right) => right.startUntil - left.startUntil)[0];

const hasTime = ({ monotonic }: Situation, host: Delivery | Visit | undefined): boolean =>
  host !== undefined && !host.isOver() && monotonic < host.startUntil;
