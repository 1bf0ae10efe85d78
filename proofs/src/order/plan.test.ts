/**
 * The plan as a table of situations: what is known, what has arrived, and what one cycle makes of it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compose } from '../../../shared/src/handler.ts';
import { ack } from '../../../shared/src/outcome.ts';
import { virtualClock } from '../../../shared/src/testing/virtual-clock.ts';
import { newProgress } from '../../../shared/src/order/batch.ts';
import type { Situation } from '../../../shared/src/order/draft.ts';
import { heldView } from '../../../shared/src/order/held-view.ts';
import { delivery, type Delivery, visit } from '../../../shared/src/order/mailbox.ts';
import { memoryStreams } from '../../../shared/src/order/memory.ts';
import { streamPolicy } from '../../../shared/src/order/options.ts';
import { plan } from '../../../shared/src/order/plan.ts';
import { freshStream, type StreamState } from '../../../shared/src/order/stream-state.ts';
import { kindOf, messageOf } from './bench.ts';
import { heldAs } from '../../../shared/src/testing/stream-samples.ts';
import { contextFor } from './schedule.ts';

const clock = virtualClock();
const NOW = clock.now();
const handler = compose(async () => ack(), []);
const policy = streamPolicy(memoryStreams({ clock }), { clock });

type Given = Readonly<{
  state?: Partial<StreamState>;
  /** What is held, as far as it is known; `unknown`: the document counts it, and nothing is known. */
  held?: readonly number[];
  unknown?: number;
  /** Numbers that wait; each is encoded already. */
  waiting?: readonly number[];
  isVisit?: boolean;
  isFresh?: boolean;
  /** Numbers that have run as deliveries under a lease of this worker. */
  ran?: readonly number[];
  /** Their batch still runs, and what waits has waited for two seconds. */
  isRunning?: boolean;
}>;

function waiting(number: number): Delivery {
  const message = messageOf(number);
  const parts = { context: contextFor(clock, 60_000), next: handler, clock, turn: undefined };
  const one = delivery(
    parts,
    { key: 'k', number, hash: `hash of ${number}`, epoch: undefined },
    message,
    () => undefined,
  );
  one.encoded(heldAs(number));
  return one;
}

/** What the cycle does, as a short text. */
function planned({
  state = {},
  held = [],
  unknown = 0,
  waiting: numbers = [],
  isVisit,
  isFresh = true,
  ran,
  isRunning,
}: Given) {
  const document = { ...freshStream(1), held: held.length + unknown, ...state };
  const view = heldView({ ...document, held: unknown });
  view.changed(held.map(heldAs), [], document.last);
  const entries = (ran ?? []).map((number) => ({
    number,
    hash: `hash of ${number}`,
    delivery: waiting(number),
  }));
  const batch = {
    owner: 'mine',
    entries,
    host: undefined,
    attempts: 0,
    isExhausted: false,
    needsTurn: false,
  };
  const progress = ran === undefined ? undefined : newProgress(batch);
  for (const entry of entries) progress?.done.push({ entry, outcome: ack() });
  const situation: Situation = {
    policy,
    state: document,
    isFresh,
    nowMs: NOW,
    monotonic: clock.monotonic() + (isRunning ? 2_000 : 0),
    view,
    progress,
    running: isRunning ? batch : undefined,
    mailbox: numbers.map(waiting),
    visit: isVisit
      ? visit(
          { context: contextFor(clock, 60_000), next: handler, clock, turn: undefined },
          () => undefined,
          () => undefined,
        )
      : undefined,
    isStopping: false,
    owner: 'next',
  };
  const step = plan(situation);
  if (step.kind === 'look') return { look: step.pages[0] };
  if (step.kind !== 'complete') return { needs: step.kind };
  const { fields, create, remove, answers, keep, batch: started, asksTurn, endsVisit, wakeAt } = step;
  return {
    ...(asksTurn !== undefined && { asksTurn: 'arrival' in asksTurn ? asksTurn.arrival.number : 'visit' }),
    ...(started !== undefined && { starts: started.entries.map(({ number }) => number) }),
    ...(create.length > 0 && { holds: create.map(({ number }) => number) }),
    ...(remove.length > 0 && { removes: remove.map(({ number }) => number) }),
    ...(answers.length > 0 && {
      answers: answers.map(({ delivery: { arrival }, outcome }) => `${arrival.number} ${kindOf(outcome)}`),
    }),
    ...(keep !== undefined && { keeps: keep.delivery.arrival.number }),
    ...(fields.last !== undefined && { last: fields.last }),
    ...(fields.lease !== undefined && { lease: fields.lease?.owner ?? null }),
    ...(fields.attempts !== undefined && fields.attempts > 0 && { attempts: fields.attempts }),
    ...(fields.readyAt !== undefined && { readyAt: fields.readyAt === null ? null : fields.readyAt - NOW }),
    ...(fields.waitingSince !== undefined && fields.waitingSince !== null && { gapAt: fields.gapAt }),
    ...(endsVisit && { endsVisit }),
    ...(wakeAt !== undefined && { wakeAt: wakeAt - NOW }),
  };
}

const MINE = { owner: 'mine', untilMs: NOW + 9_000, to: 2 };
const FOREIGN = { owner: 'another', untilMs: NOW + 9_000, to: 3 };
const DEAD = { owner: 'another', untilMs: NOW - 1, to: 3 };
const GAP = { waitingSince: NOW - 5_000, gapAt: 0 };

const situations: Readonly<Record<string, readonly [Given, object]>> = {
  'the next number of an idle stream starts': [
    { waiting: [1] },
    { starts: [1], lease: 'next', readyAt: 60_000 },
  ],
  'what follows without a gap starts with it; what does not waits': [
    { waiting: [2, 1, 4] },
    { starts: [1, 2], lease: 'next', readyAt: 60_000 },
  ],
  'what is ahead of an idle stream is held, and opens a gap': [
    { waiting: [3, 5] },
    { holds: [3, 5], answers: ['3 ack held', '5 ack held'], readyAt: null, gapAt: 0 },
  ],
  'behind a gap that is shown a hold needs no look': [
    { state: { ...GAP }, unknown: 7, waiting: [9] },
    { holds: [9], answers: ['9 ack held'] },
  ],
  'the missing number starts with what is held behind it': [
    { held: [2, 3], state: GAP, waiting: [1] },
    { starts: [1, 2, 3], lease: 'next', readyAt: 60_000 },
  ],
  'a held message of which nothing is known is looked for': [
    { unknown: 2, waiting: [1] },
    { look: { from: 1, limit: 2 } },
  ],
  'a finished batch is settled, and the next one starts, in one write': [
    { state: { lease: MINE, last: 0 }, ran: [1, 2], waiting: [3] },
    {
      starts: [3],
      answers: ['1 ack handled', '2 ack handled'],
      last: 2,
      lease: 'next',
      readyAt: 60_000,
    },
  ],
  'a finished batch with nothing behind it releases the stream': [
    { state: { lease: MINE }, ran: [1] },
    { answers: ['1 ack handled'], last: 1, lease: null, readyAt: null },
  ],
  'a copy that was held meanwhile is removed': [
    { state: { lease: MINE }, held: [1], ran: [1] },
    { answers: ['1 ack handled'], removes: [1], last: 1, lease: null, readyAt: null },
  ],
  'what is held behind a settled batch runs in the time of the delivery that is ready to be answered': [
    { state: { lease: MINE }, held: [2], ran: [1] },
    { starts: [2], keeps: 1, last: 1, lease: 'next', readyAt: 60_000 },
  ],
  'a batch that lost its lease is refused': [
    { state: { lease: FOREIGN }, ran: [1] },
    { answers: ['1 retry LEASE_LOST'] },
  ],
  'under the lease of another process a delivery is held, and nothing else changes': [
    { state: { lease: FOREIGN, readyAt: NOW + 9_000 }, waiting: [1, 2] },
    { holds: [1, 2], answers: ['1 ack held', '2 ack held'] },
  ],
  'a delivery at an expired lease is held, and a visit is asked for': [
    { state: { lease: DEAD, readyAt: NOW - 1 }, waiting: [1] },
    { holds: [1], answers: ['1 ack held'], wakeAt: 0 },
  ],
  'a visit at an expired lease takes over, counts the attempt, and starts one number': [
    { state: { lease: DEAD, readyAt: NOW - 1 }, held: [1, 2], isVisit: true },
    { starts: [1], lease: 'next', attempts: 1, readyAt: 60_000 },
  ],
  'a visit that takes over and finds nothing releases the stream': [
    { state: { lease: DEAD, readyAt: NOW - 1 }, isVisit: true },
    { lease: null, attempts: 1, readyAt: null, endsVisit: true },
  ],
  'a delivery does not start a number that has failed, held as it is': [
    { state: { attempts: 1, readyAt: NOW - 1 }, held: [1], waiting: [2] },
    { holds: [2], answers: ['2 ack held'], wakeAt: 0 },
  ],
  'a visit starts it, alone': [
    { state: { attempts: 1, readyAt: NOW - 1 }, held: [1, 2], isVisit: true },
    { starts: [1], lease: 'next', readyAt: 60_000 },
  ],
  'a visit before the next try leaves the stream alone': [
    { state: { attempts: 1, readyAt: NOW + 5_000, nextTryAt: NOW + 5_000 }, held: [1], isVisit: true },
    { endsVisit: true },
  ],
  'a suspect that is delivered is held, and due': [
    { state: { attempts: 1, suspectsTo: 3 }, waiting: [1] },
    { holds: [1], answers: ['1 ack held'], readyAt: 0, wakeAt: 0 },
  ],
  'a suspect with few attempts left waits for its turn': [
    { state: { attempts: 2, suspectsTo: 3, readyAt: NOW - 1 }, held: [1], isVisit: true },
    { asksTurn: 'visit', endsVisit: true },
  ],
  'and what comes for its stream is held as ever': [
    { state: { attempts: 2, suspectsTo: 3, readyAt: NOW - 1 }, held: [1], waiting: [3], isVisit: true },
    { asksTurn: 'visit', holds: [3], answers: ['3 ack held'], readyAt: 0, endsVisit: true },
  ],
  'a checkpoint holds what has waited, and counts what has run': [
    { state: { lease: { ...MINE, to: 9 } }, ran: [1], waiting: [4], isRunning: true },
    { holds: [4], answers: ['1 ack handled', '4 ack held'], last: 1 },
  ],
  'a checkpoint that finds its lease lost makes the stream due with the next number that it holds': [
    { state: { ...GAP }, held: [3], ran: [], waiting: [1], isRunning: true },
    { holds: [1], answers: ['1 ack held'], readyAt: 0, wakeAt: 0 },
  ],
  'a blocked stream holds what comes': [
    { state: { blocked: { code: 'BAD', text: '', atMs: NOW } }, held: [1], waiting: [2] },
    { holds: [2], answers: ['2 ack held'], readyAt: null },
  ],
  'a number that is done is stale, by a document that was read': [
    { state: { last: 1, recentHashes: ['hash of 1'] }, waiting: [1] },
    { answers: ['1 ack stale'] },
  ],
  'and not by one that is remembered': [
    { state: { last: 1, recentHashes: ['hash of 1'] }, waiting: [1], isFresh: false },
    { needs: 'read' },
  ],
  'a stale delivery is kept as the host of what is due': [
    { state: { last: 1, recentHashes: ['hash of 1'], readyAt: NOW - 1 }, held: [2], waiting: [1] },
    { starts: [2], keeps: 1, lease: 'next', readyAt: 60_000 },
  ],
};

for (const [name, [given, expected]] of Object.entries(situations)) {
  test(name, () => assert.deepEqual(planned(given), expected));
}
