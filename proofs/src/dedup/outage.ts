/**
 * Deliveries under load while the store goes down and comes back: each message is delivered, by a few at a time, until
 * it is acked, and once more at the end.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { systemClock } from '../../../shared/src/clock.ts';
import { compose, type Handler } from '../../../shared/src/handler.ts';
import { ack } from '../../../shared/src/outcome.ts';
import type { ClaimStore } from '../../../shared/src/dedup/claim-store.ts';
import { dedup } from '../../../shared/src/dedup/dedup.ts';
import { aContext, aMessage } from '../../../shared/src/testing/deliveries.ts';

export type Outage = Readonly<{
  /** Gives up a call soon, so that deliveries go on while the store is down. */
  store: ClaimStore;
  /** The same store, and a call is waited for: on a busy machine an answer is late although the store is there. */
  patient: ClaimStore;
  /** Resolves when nothing answers any more. */
  takeDown(): Promise<void>;
  /** Resolves when the store answers again. */
  bringUp(): Promise<void>;
}>;

export type LoadResult = Readonly<{
  messages: number;
  acked: number;
  /** Acked although no run had ended with an ack before. */
  ackedUnworked: number;
  /** Runs that began while the store was down: with and without the mark of a possible duplicate. */
  whileDown: Readonly<{ marked: number; unmarked: number }>;
  /** Runs with the mark that began before it went down, and claims that the store did not answer in time by then. */
  markedBefore: number;
  unansweredBefore: number;
  /** Messages acked while it was down. */
  ackedWhileDown: number;
  /** Answers once everything is acked, to each message delivered again, and then once more. */
  again: readonly string[];
  andAgain: readonly string[];
}>;

const LEAST = 120;
/** Acked before the store goes down. */
const BEFORE = 40;
const AT_ONCE = 8;
const LEASE_MS = 2_000;
const DOWN_MS = 1_500;
const TRIES = 600;
/** Of the event loop. */
const TURNS = 20;

export async function loadThroughOutage(
  { store, patient, takeDown, bringUp }: Outage,
  onStoreUnavailable: 'retry' | 'process',
): Promise<LoadResult> {
  let state: 'before' | 'going' | 'down' | 'after' = 'before';
  const whileDown = { marked: 0, unmarked: 0 };
  const worked = new Set<string>();
  const acked = new Set<string>();
  let [markedBefore, unansweredBefore, ackedUnworked, ackedWhileDown] = [0, 0, 0, 0];

  const handler: Handler = async ({ id }, { possibleDuplicate = false }) => {
    if (state === 'down') whileDown[possibleDuplicate ? 'marked' : 'unmarked'] += 1;
    if (state === 'before' && possibleDuplicate) markedBefore += 1;
    await pause(10 + Math.random() * 20);
    worked.add(id);
    return ack();
  };
  const counted: ClaimStore = {
    ...store,
    async claim(request) {
      try {
        return await store.claim(request);
      } catch (error) {
        if (state === 'before') unansweredBefore += 1;
        throw error;
      }
    },
  };
  const through = (claims: ClaimStore): ((id: string) => ReturnType<Handler>) => {
    const deliver = compose(handler, [
      dedup(claims, { lease: `${LEASE_MS}ms`, waitBudget: '1s', onStoreUnavailable }),
    ]);
    return (id) => deliver(aMessage(id), aContext(systemClock()));
  };
  const [deliverSoon, deliverOnce] = [through(counted), through(patient)];
  const deliverAll = async (id: string): Promise<void> => {
    for (let attempt = 0; attempt < TRIES; attempt += 1) {
      const outcome = await deliverSoon(id);
      if (outcome.kind === 'ack') {
        if (!worked.has(id)) ackedUnworked += 1;
        if (state === 'down') ackedWhileDown += 1;
        acked.add(id);
        return;
      }
      await pause(20 + Math.random() * 50);
    }
  };

  const ids: string[] = [];
  /** Messages keep coming until the store has been down. */
  const publish = (): string | undefined => {
    if (state === 'after' && ids.length >= LEAST) return undefined;
    ids.push(`message-${ids.length}`);
    return ids.at(-1);
  };
  const work = async (): Promise<void> => {
    for (let id = publish(); id !== undefined; id = publish()) await deliverAll(id);
  };
  const interrupt = async (): Promise<void> => {
    for (let turn = 0; turn < 2_000 && acked.size < BEFORE; turn += 1) await pause(5);
    state = 'going';
    await takeDown();
    // What was begun under a claim got before is begun by now, and answers that had arrived are read.
    await pause(100);
    for (let turn = 0; turn < TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    state = 'down';
    // The first ones may all be busy with the completion of what they had.
    const more = Array.from({ length: AT_ONCE }, work);
    await pause(DOWN_MS);
    state = 'after';
    await bringUp();
    await Promise.all(more);
  };
  // The first call of a client makes its connection.
  await deliverOnce('warm-up');
  await Promise.all([interrupt(), ...Array.from({ length: AT_ONCE }, work)]);

  const kindOf = async (id: string): Promise<string> => {
    let outcome = await deliverOnce(id);
    // On a busy machine such a claim may arrive later still.
    for (let attempt = 0; attempt < TRIES && outcome.kind === 'retry'; attempt += 1) {
      await pause(LEASE_MS / 20);
      outcome = await deliverOnce(id);
    }
    return outcome.kind === 'ack' ? outcome.reason : outcome.kind;
  };
  const redeliver = async (): Promise<string[]> => {
    const kinds: string[] = [];
    for (let first = 0; first < ids.length; first += AT_ONCE)
      kinds.push(...(await Promise.all(ids.slice(first, first + AT_ONCE).map(kindOf))));
    return kinds;
  };
  // A claim that was sent into the outage may have arrived after it; no delivery works on it, and it lapses.
  await pause(LEASE_MS + 200);
  const again = await redeliver();
  return {
    messages: ids.length,
    acked: acked.size,
    ackedUnworked,
    whileDown,
    markedBefore,
    unansweredBefore,
    ackedWhileDown,
    again,
    andAgain: await redeliver(),
  };
}
