/**
 * Plays one schedule against a way of de-duplicating, on virtual time, and says which invariants it broke.
 *
 * Three processes share one store. Deliveries are repeated, with a backoff, until they are acked. After a
 * while nothing fails any more: by then everything must come to an end.
 */
import { type Clock, sleep } from '../../../shared/src/clock.ts';
import { codeOf, storeUnavailable } from '../../../shared/src/errors.ts';
import { compose, type Handler, type Middleware } from '../../../shared/src/handler.ts';
import type { Message } from '../../../shared/src/message.ts';
import { type Outcome, retry } from '../../../shared/src/outcome.ts';
import { virtualClock } from '../../../shared/src/testing/index.ts';
import { dedup } from '../../../shared/src/dedup/dedup.ts';
import { type ClaimDocuments, documentClaims } from '../../../shared/src/dedup/document-claims.ts';
import { memoryDocuments } from '../../../shared/src/dedup/memory.ts';
import { supervise } from '../engine/supervisor.ts';
import { inTurn, type NetworkFault } from '../engine/faults.ts';
import { plannedDeaths } from '../engine/places.ts';
import { startProcess } from '../engine/process.ts';
import { through } from '../engine/through.ts';
import { aContext, aMessage } from '../../../shared/src/testing/deliveries.ts';
import { faultyDocuments } from './fixture.ts';
import { type Violation, watch } from './invariants.ts';
import { type Call, type Place, siteOf } from './places.ts';
import { recorded } from './recorded.ts';
import type { Schedule } from './schedule.ts';

/** One process's way of de-duplicating over documents that may fail. */
export type Dedup = (documents: ClaimDocuments, parts: Parts) => Middleware;

/** `guardClock` is for bounds on calls to the store. */
type Parts = Readonly<{ clock: Clock; guardClock: Clock; newId: () => string }>;

export const asBuilt: Dedup = (documents, { clock, guardClock, newId }) =>
  dedup(documentClaims(documents, guardClock, STORE_TIMEOUT_MS), { clock, newId });

/** Where a process can be killed; each death is reported as `when site`. */
export type Deaths = Readonly<{ places: readonly Place[]; died(place: string): void }>;

export const STORE_TIMEOUT_MS = 5_000;
const WORKERS = 3;
const ACK_DEADLINE_MS = 60_000;
const BACK_OFF_MS = 10_000;
const REDRIVE_MS = 5_000;
const FAULTS_END_MS = 300_000;
const ATTEMPTS = 200;
/** Longer than all attempts take together. */
const LIMIT_MS = (ACK_DEADLINE_MS + BACK_OFF_MS + REDRIVE_MS) * ATTEMPTS;

export async function play(
  way: Dedup,
  schedule: Schedule,
  deaths: Partial<Deaths> = {},
): Promise<readonly Violation[]> {
  const { publishes, runs, faults, outages, pauses, crashes } = schedule;
  const clock = virtualClock();
  const hasFaults = (): boolean => clock.monotonic() < FAULTS_END_MS;

  const store = recorded(memoryDocuments({ clock }), clock);
  const nextFault = inTurn(faults);
  const documents = faultyDocuments(store.documents, clock, (): NetworkFault | undefined => {
    const fault = nextFault();
    if (!hasFaults()) return undefined;
    const now = clock.monotonic();
    const isOut = outages.some(({ at, milliseconds }) => now >= at && now < at + milliseconds);
    return isOut ? { kind: 'refused' } : fault;
  });

  const watched = watch(
    clock,
    store,
    publishes.map(({ key }) => `key-${key}`),
    runs,
    hasFaults,
  );

  const { places = [], died } = deaths;
  const planned = crashes.flatMap(({ site, hit, among }) => {
    const candidates = places.filter(({ name }) => name.includes(among));
    const place = candidates[site % candidates.length];
    return place === undefined ? [] : [{ ...place, place: `${place.when} ${place.site}`, hit }];
  });
  const due = plannedDeaths(planned, died);
  /** Only where a process may still die: to find out where a call comes from takes time. */
  const siteIfDue = (call: Call): string => {
    if (!hasFaults()) return call;
    const open = due.open();
    return planned.some((one) => one.call === call && open.includes(one.place)) ? siteOf(call) : call;
  };

  let owners = 0;
  const workers = supervise(WORKERS, (_slot, replace) => {
    const process = startProcess(clock, {
      dies: (site, when) => due.dies(`${when} ${site}`),
      died: replace,
      lost: (_site, how) => storeUnavailable(how),
    });
    const sleepy: Clock = {
      ...process.clock,
      after(milliseconds, callback) {
        process.pass(siteIfDue('sleep'), 'before');
        return process.clock.after(milliseconds, callback);
      },
    };
    const mine = through(process.call, documents, {
      create: () => siteIfDue('documents.create'),
      read: () => siteIfDue('documents.read'),
      update: () => siteIfDue('documents.update'),
      remove: () => siteIfDue('documents.remove'),
    });
    const watching = watched.handler(() => sleepy);
    const handler: Handler = (...delivery) =>
      process.call(siteIfDue('await next'), () => watching(...delivery));
    const newId = (): string => `owner-${(owners += 1)}`;
    const deliver = compose(handler, [way(mine, { clock: sleepy, guardClock: process.clock, newId })]);
    return { process, clock: sleepy, deliver };
  });
  for (const { at, worker, milliseconds } of pauses) {
    clock.after(at, () => {
      const { process } = workers.at(worker);
      if (milliseconds === 'for ever') process.crash();
      else process.pause(milliseconds);
    });
  }

  let deliveries = 0;
  const settleOne = async (message: Message, at: number): Promise<void> => {
    await sleep(clock, at);
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const worker = workers.at((deliveries += 1));
      const deadline = clock.monotonic() + ACK_DEADLINE_MS;
      const noAnswer = sleep(clock, ACK_DEADLINE_MS).then((): Outcome => retry(new Error('no answer')));
      const outcome = await Promise.race([
        worker.deliver(message, aContext(worker.clock, { deadline })),
        noAnswer,
      ]);
      const isConflict = outcome.kind === 'deadLetter' && codeOf(outcome.error) === 'DEDUP_CONFLICT';
      if (outcome.kind === 'ack' || isConflict) return watched.settled(message, outcome);
      // An operator inspects a dead letter and sends it again.
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
