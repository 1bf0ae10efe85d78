/**
 * Plays one schedule against a way of de-duplicating, on virtual time, and says which invariants it broke.
 *
 * Three processes share one store. Deliveries come round and round, with a back-off, until they are acked. After a
 * while nothing fails any more: by then everything must come to an end.
 */
import { type Clock, sleep } from '../../../shared/src/clock.ts';
import { codeOf } from '../../../shared/src/errors.ts';
import { compose, type Handler, type Middleware } from '../../../shared/src/handler.ts';
import type { Message } from '../../../shared/src/message.ts';
import { type Outcome, retry } from '../../../shared/src/outcome.ts';
import { virtualClock } from '../../../shared/src/testing/index.ts';
import { dedup } from '../../../shared/src/dedup/dedup.ts';
import { type ClaimDocuments, documentClaims } from '../../../shared/src/dedup/document-claims.ts';
import { memoryDocuments } from '../../../shared/src/dedup/memory.ts';
import { aContext, aMessage } from '../../../shared/src/testing/deliveries.ts';
import { faultyDocuments } from './fixture.ts';
import { type Violation, watch } from './invariants.ts';
import { type Fate, type Mortal, mortal, type Place } from './mortal.ts';
import { recorded } from './recorded.ts';
import type { Schedule } from './schedule.ts';

/** One process's way of de-duplicating over documents that may fail. */
export type Dedup = (documents: ClaimDocuments, parts: Parts) => Middleware;

/** `guardClock` is for bounds on calls to the store. */
type Parts = Readonly<{ clock: Clock; guardClock: Clock; newOwner: () => string }>;

export const asBuilt: Dedup = (documents, { clock, guardClock, newOwner }) =>
  dedup(documentClaims(documents, guardClock, STORE_TIMEOUT_MS), { clock, newOwner });

/** Where a process can be killed, and who hears that it was. */
export type Deaths = Readonly<{ places: readonly Place[]; died(place: Place): void }>;

export const STORE_TIMEOUT_MS = 5_000;
const WORKERS = 3;
const ACK_DEADLINE_MS = 60_000;
const BACK_OFF_MS = 10_000;
const REDRIVE_MS = 5_000;
const TROUBLE_MS = 300_000;
const ATTEMPTS = 200;
/** More than all attempts take. */
const LIMIT_MS = (ACK_DEADLINE_MS + BACK_OFF_MS + REDRIVE_MS) * ATTEMPTS;

export async function play(
  way: Dedup,
  schedule: Schedule,
  deaths: Partial<Deaths> = {},
): Promise<readonly Violation[]> {
  const { publishes, runs, faults, outages, pauses, crashes } = schedule;
  const clock = virtualClock();
  const isTrouble = (): boolean => clock.monotonic() < TROUBLE_MS;

  const store = recorded(memoryDocuments({ clock }), clock);
  let calls = 0;
  const documents = faultyDocuments(store.documents, clock, () => {
    calls += 1;
    if (!isTrouble()) return undefined;
    const now = clock.monotonic();
    const isOut = outages.some(({ at, milliseconds }) => now >= at && now < at + milliseconds);
    return isOut ? 'request lost' : faults[calls % faults.length];
  });

  const watched = watch(
    clock,
    store,
    publishes.map(({ key }) => `key-${key}`),
    runs,
    isTrouble,
  );

  const { places = [], died = () => {} } = deaths;
  const due = crashes.flatMap(({ site, hit, among }) => {
    const candidates = places.filter(({ name }) => name.includes(among));
    const place = candidates[site % candidates.length];
    return place === undefined ? [] : [{ place, hit }];
  });
  const fateOf = (index: number): Fate => ({
    isOpen: (call) => isTrouble() && due.some(({ place }) => place.call === call),
    dies({ site, point }) {
      const here = due.filter(({ place }) => place.site === site && place.point === point);
      for (const crash of here) crash.hit -= 1;
      const dead = here.find(({ hit }) => hit === 0);
      if (dead === undefined) return false;
      due.splice(due.indexOf(dead), 1);
      died(dead.place);
      start(index);
      return true;
    },
  });

  type Worker = Mortal & Readonly<{ deliver: Handler }>;
  const workers: Worker[] = [];
  let owners = 0;
  const start = (index: number): void => {
    const worker: Mortal = mortal(
      clock,
      documents,
      watched.handler(() => worker.clock),
      fateOf(index),
    );
    const newOwner = (): string => `owner-${(owners += 1)}`;
    const deliver = compose(worker.handler, [way(worker.documents, { ...worker, newOwner })]);
    workers[index] = { ...worker, deliver };
  };
  for (let index = 0; index < WORKERS; index += 1) start(index);
  for (const { at, worker, milliseconds } of pauses) {
    clock.after(at, () => {
      workers[worker]?.pause(milliseconds);
      // A dead process is replaced; a paused one is still there.
      if (milliseconds === 'for ever') start(worker);
    });
  }

  let deliveries = 0;
  const settleOne = async (message: Message, at: number): Promise<void> => {
    await sleep(clock, at);
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const worker = workers[(deliveries += 1) % WORKERS];
      if (worker === undefined) break;
      const deadline = clock.monotonic() + ACK_DEADLINE_MS;
      const noAnswer = sleep(clock, ACK_DEADLINE_MS).then((): Outcome => retry(new Error('no answer')));
      const outcome = await Promise.race([
        worker.deliver(message, aContext(worker.clock, { deadline })),
        noAnswer,
      ]);
      const isConflict = outcome.kind === 'deadLetter' && codeOf(outcome.error) === 'DEDUP_CONFLICT';
      if (outcome.kind === 'ack' || isConflict) return watched.settled(message, outcome);
      // A dead letter is looked at by somebody, and comes back.
      await sleep(clock, outcome.kind === 'deadLetter' ? REDRIVE_MS : BACK_OFF_MS);
    }
    watched.settled(message, undefined);
  };
  const all = publishes.map(({ key, at, copy, other }, index) => {
    const id = copy ? `copy-${key}` : String(index);
    const text = other && !copy ? 'other data' : 'data';
    return settleOne(aMessage(id, { text, dedupId: `key-${key}` }), at);
  });
  await clock.until(Promise.all(all), LIMIT_MS);
  return watched.violations();
}
