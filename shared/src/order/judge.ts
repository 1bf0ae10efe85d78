/**
 * Step 2 of the plan: where an arriving number belongs, judged from the document and from what is held. Pure.
 */
import { identifierHash } from '../hash.ts';
import { leaseLost, PermanentError } from '../errors.ts';
import { ack, deadLetter, type Outcome, retry } from '../outcome.ts';
import { type Draft, heldAt, type Situation } from './draft.ts';
import type { Arrival, Delivery } from './mailbox.ts';
import { doneHash, isSkipped, runHash, type StreamState } from './stream-state.ts';

/** What is left to be run or held. */
export type Waiting = Readonly<{
  /** The first delivery of each number to arrive, by number, ascending. */
  first: ReadonlyMap<number, Delivery>;
  /** Further ones, whose identity is compared once that of the first is durable. */
  later: readonly Delivery[];
}>;

export function judgeAll(situation: Situation, draft: Draft): Waiting {
  const first = new Map<number, Delivery>();
  const later: Delivery[] = [];
  let { epoch } = draft.state;
  for (const one of situation.mailbox) {
    const { arrival } = one;
    if (one.isOver()) {
      draft.answers.push({ delivery: one, outcome: retry(leaseLost('the time of the delivery was over')) });
      continue;
    }
    const outcome = judge(situation, draft, one);
    if (outcome !== undefined) draft.answers.push({ delivery: one, outcome });
    else if (first.has(arrival.number) || !isOfEpoch(epoch, arrival)) later.push(one);
    else {
      first.set(arrival.number, one);
      epoch ??= arrival.epoch ?? null;
    }
  }
  return { first: new Map([...first].toSorted(([left], [right]) => left - right)), later };
}

const isOfEpoch = (epoch: string | null, arrival: Arrival): boolean =>
  epoch === null || arrival.epoch === undefined || arrival.epoch === epoch;

/** Undefined: it is to be run or held. */
function judge(situation: Situation, draft: Draft, delivery: Delivery): Outcome | undefined {
  const { arrival } = delivery;
  const { number, hash } = arrival;
  const { state } = draft;
  const { policy } = situation;
  // First: under another counter the number says nothing, so comparing it would be guessing.
  if (!isOfEpoch(state.epoch, arrival)) return deadLetter(otherEpoch(state, arrival));
  if (isSkipped(state, number)) {
    return refused('LATE_ARRIVAL', `${named(arrival)} came after the stream had gone on without it`);
  }
  if (number <= state.last) return judgeDone(situation, draft, delivery);
  if (number > state.last + policy.maxAhead) {
    return refused(
      'SEQUENCE_TOO_FAR_AHEAD',
      `${named(arrival)} is ${number - state.last} beyond the last number done, ${state.last}; accepted: at most ${policy.maxAhead}`,
    );
  }
  // A number that was started without being held has no document of its own; its identity is in the stream's.
  const started = runHash(state, number);
  if (started !== undefined && started !== hash) return deadLetter(conflict(arrival));
  const held = heldAt(draft, situation.view, number);
  if (held === 'unknown' || held === 'absent') return undefined;
  return held.hash === hash ? ack('held') : deadLetter(conflict(arrival));
}

function judgeDone({ policy }: Situation, draft: Draft, delivery: Delivery): Outcome {
  const { arrival } = delivery;
  const { number, hash } = arrival;
  const done = doneHash(draft.state, number);
  // Below the configured start: the stream begins behind it, by the operator's own word.
  if (done === hash || number < policy.start) return ack('stale');
  if (done !== undefined) return deadLetter(conflict(arrival));
  if (policy.onUnknownStale === 'ack') {
    draft.unknownStale.push(delivery);
    return ack('stale');
  }
  return refused(
    'SEQUENCE_STALE_UNKNOWN',
    `${named(arrival)} is done, and whether it had this content is not remembered any more`,
  );
}

/** The later copies whose number, or whose epoch, this commit makes durable. The others go on waiting. */
export function judgeLater(situation: Situation, draft: Draft, { later }: Waiting): void {
  for (const delivery of later) {
    const outcome = judge(situation, draft, delivery);
    if (outcome !== undefined) draft.answers.push({ delivery, outcome });
  }
}

const conflict = (arrival: Arrival): PermanentError =>
  new PermanentError('SEQUENCE_CONFLICT', `${named(arrival)} came before with other content`);

const otherEpoch = (state: StreamState, arrival: Arrival): PermanentError =>
  new PermanentError(
    'EPOCH_MISMATCH',
    `${named(arrival)} has sequenceEpoch ${JSON.stringify(arrival.epoch)}, but this stream began with ${JSON.stringify(state.epoch)}: its counter was reset or replaced`,
  );

const refused = (code: string, message: string): Outcome => deadLetter(new PermanentError(code, message));

const named = (arrival: Arrival): string =>
  `sequence ${arrival.number} of sequenceKey ${identifierHash(arrival.key)}`;
