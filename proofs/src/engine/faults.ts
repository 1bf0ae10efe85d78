/**
 * What a network, and a client that repeats requests by itself, can do to one request. The request is a function that
 * applies it; what the caller learns is how the returned promise settles.
 */
import { type Clock, sleep } from 'pubsub-guarantees';
import type { Random } from './random.ts';

/** All times are milliseconds. A crash is the fault of a process: only `startProcess` plays it. */
export type Fault =
  /** Applied and answered, after a time on its way there and a time on its way back. */
  | Readonly<{ kind: 'none'; beforeMs?: number; afterMs?: number }>
  /** Not applied, and an error. */
  | Readonly<{ kind: 'refused' }>
  /** Applied, and an error. */
  | Readonly<{ kind: 'reply lost' }>
  /** An error now, applied later. */
  | Readonly<{ kind: 'delayed'; byMs: number }>
  /** Applied, its reply lost, and sent again by the client: the caller gets the answer to the second request. */
  | Readonly<{ kind: 'repeated' }>
  /** Applied and answered now, and applied once more later: the first one was in flight when the client repeated it. */
  | Readonly<{ kind: 'late copy'; byMs: number }>
  /** The process ends before or after the request is applied: nothing comes back. */
  | Readonly<{ kind: 'crash'; when: 'before' | 'after' }>;

export type NetworkFault = Exclude<Fault, { kind: 'crash' }>;

/** The error of a request that went wrong. `how` is a short text for people. */
export type Lost = (how: string) => Error;

/** Plays one request with its fault. `undefined` is `none` at once. */
export async function send<Value>(
  clock: Clock,
  fault: NetworkFault | undefined,
  apply: () => Promise<Value>,
  lost: Lost,
): Promise<Value> {
  if (fault === undefined) return apply();
  switch (fault.kind) {
    case 'none': {
      if (fault.beforeMs !== undefined) await sleep(clock, fault.beforeMs);
      const value = await apply();
      if (fault.afterMs !== undefined) await sleep(clock, fault.afterMs);
      return value;
    }
    case 'refused':
      throw lost('the request was lost');
    case 'reply lost':
      await apply();
      throw lost('the reply was lost');
    case 'delayed':
      applyLater(clock, fault.byMs, apply);
      throw lost('the request is on its way');
    case 'repeated':
      await apply();
      return apply();
    case 'late copy':
      applyLater(clock, fault.byMs, apply);
      return apply();
  }
}

/** No caller gets its answer. */
function applyLater(clock: Clock, milliseconds: number, apply: () => Promise<unknown>): void {
  clock.after(milliseconds, () => void apply().catch(() => undefined));
}

/** The faults of a list, one after the other, and again from its beginning: what a drawn schedule holds. */
export function inTurn<One>(faults: readonly One[]): () => One | undefined {
  let calls = 0;
  return () => faults[(calls += 1) % faults.length];
}

/** Faults at named calls: `{ 'commit 2': fault }` is the second call whose name is `commit`. */
export function atCalls<One>(faults: Readonly<Record<string, One>>): (name: string) => One | undefined {
  const calls = new Map<string, number>();
  return (name) => {
    const nth = (calls.get(name) ?? 0) + 1;
    calls.set(name, nth);
    return faults[`${name} ${nth}`];
  };
}

/** Draws one fault, each with the same probability. */
export function randomFault(random: Random): Fault {
  return random.pick<Fault>([
    { kind: 'refused' },
    { kind: 'reply lost' },
    { kind: 'delayed', byMs: random.upTo(32_000) },
    { kind: 'repeated' },
    { kind: 'crash', when: 'before' },
    { kind: 'crash', when: 'after' },
    { kind: 'none', beforeMs: random.upTo(40_000) },
    { kind: 'none', afterMs: random.upTo(40_000) },
  ]);
}
