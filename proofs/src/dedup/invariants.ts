/**
 * The handler of the model, which checks the promises at each of its steps, and the checks when a message is settled
 * and at the end.
 */
import { type Clock, sleep } from '../../../shared/src/clock.ts';
import type { Context, Handler } from '../../../shared/src/handler.ts';
import type { Message } from '../../../shared/src/message.ts';
import { ack, deadLetter, type Outcome, retry } from '../../../shared/src/outcome.ts';
import { identify } from '../../../shared/src/dedup/identity.ts';
import { aContext, aMessage } from '../../../shared/src/testing/deliveries.ts';
import type { Recorded } from './recorded.ts';
import type { Run } from './schedule.ts';

export type Invariant =
  /** Acked, or dead-lettered as a conflict, before any run of its key was complete. */
  | 'acked unworked'
  /**
   * Two runs of a key hold a live lease: both believe so, or one does while the store has given the claim to another
   * delivery.
   */
  | 'two live leases'
  /** Never acked, or its effect never happened, although nothing failed any more. */
  | 'effect lost'
  /** A run began although the store had the key as done. */
  | 'run after done'
  /** A later claim on a key had a token that was not greater. */
  | 'token not greater';

export type Violation = Readonly<{ invariant: Invariant; text: string }>;

export type Watched = Readonly<{
  /** The handler of a process with this clock of its own. */
  handler(own: () => Clock): Handler;
  /** Called with how each message was settled at last, or that it was not. */
  settled(message: Message, outcome: Outcome | undefined): void;
  /** At the end. */
  violations(): readonly Violation[];
}>;

const IDLE: Run = { steps: [], ends: 'ack', isDeaf: false };

/** `names` are the messages' `dedupId`s. While faults are on, a handler ends as its run says; afterwards it acks. */
export function watch(
  clock: Clock,
  store: Recorded,
  names: readonly string[],
  runs: readonly Run[],
  hasFaults: () => boolean,
): Watched {
  const violations: Violation[] = [];
  const broke = (invariant: Invariant, text: string): void =>
    void violations.push({ invariant, text: `${text}, at ${clock.monotonic()} ms` });
  /** By `dedupId`: the data of complete runs, the greatest token, the running handler. */
  const completed = new Map<string, Set<string>>();
  const tokens = new Map<string, bigint>();
  const running = new Map<string, Set<Context>>();
  let started = 0;

  const keys = new Map(
    names.map((name) => [name, identify(aMessage('', { dedupId: name }), aContext(clock)).key] as const),
  );
  const keyOf = (name: string): string => keys.get(name) ?? '';
  const look = (name: string): void => {
    const believing = [...(running.get(name) ?? [])].filter(({ signal }) => !signal.aborted);
    if (believing.length > 1) broke('two live leases', `${believing.length} runs of ${name} believe`);
    for (const { fencingToken } of believing) {
      const holder = store.holderOf(keyOf(name));
      const owner = fencingToken === undefined ? undefined : store.ownerOf(keyOf(name), fencingToken);
      if (owner === undefined || holder === undefined || holder === owner) continue;
      broke('two live leases', `${name}: ${owner} believes while ${holder} has the lease`);
    }
  };
  const handler =
    (own: () => Clock): Handler =>
    async (message, context) => {
      const name = nameOf(message);
      const { steps, ends, isDeaf } = runs[started % runs.length] ?? IDLE;
      started += 1;
      if (store.wasDone(keyOf(name))) broke('run after done', `${name} runs again`);
      const token = BigInt(context.fencingToken ?? '0');
      if (context.fencingToken !== undefined && token <= (tokens.get(name) ?? 0n))
        broke('token not greater', `${name}: token ${token}`);
      tokens.set(name, token);
      const others = running.get(name) ?? new Set();
      running.set(name, others.add(context));
      look(name);
      for (const step of steps) {
        await sleep(own(), step, isDeaf ? undefined : context.signal);
        look(name);
        if (!isDeaf && context.signal.aborted) break;
      }
      const isAborted = !isDeaf && context.signal.aborted;
      others.delete(context);
      if (isAborted) return retry(new Error('aborted'));
      if (hasFaults() && ends !== 'ack')
        return ends === 'retry' ? retry(new Error('failed')) : deadLetter('bad');
      completed.set(name, (completed.get(name) ?? new Set()).add(message.data.toString()));
      return ack();
    };

  return {
    handler,
    settled(message, outcome) {
      const name = nameOf(message);
      const what = `message ${message.id} of ${name}`;
      if (outcome === undefined) return broke('effect lost', `${what} was never acked`);
      const worked = [...(completed.get(name) ?? [])];
      const text = message.data.toString();
      const isWorked =
        outcome.kind === 'ack' ? worked.includes(text) : worked.some((other) => other !== text);
      if (!isWorked) broke('acked unworked', `${what} was settled`);
    },
    violations() {
      for (const name of names)
        if (!completed.has(name)) broke('effect lost', `no run of ${name} was complete`);
      return violations;
    },
  };
}

const nameOf = (message: Message): string => message.attributes['dedupId'] ?? '';
