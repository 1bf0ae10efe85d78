/**
 * Which request may go on and which waits: locks on documents, present or missing, and on what queries would return.
 * Guarantees that the work of owners, each holding its locks to its end, has the effect of one after the other (strict
 * two-phase locking).
 *
 * An owner that looks shares a lock with others that look; a change, which is the last request of its owner, waits until
 * no other owner has a share of what it changes
 * (https://firebase.google.com/docs/firestore/transaction-data-contention). A request gets everything it asks for at once
 * or waits holding nothing new. It waits for holders, and behind earlier requests that it cannot share with unless those
 * wait for its own owner. A cycle of owners that wait for each other is found when it closes (two that have read one
 * document and both want to change it), and the youngest of them aborts at once.
 */
import { status } from '@grpc/grpc-js';
import type { Cancel, Clock } from '../clock.ts';
import { StatusError } from '../grpc-server.ts';
import { documentQueues } from './lock-queues.ts';
import { rangeLocks } from './lock-ranges.ts';
import {
  type Attempt,
  isBlocked,
  type LockRules,
  type Owner,
  type Request,
  type Waiting,
} from './lock-types.ts';
import { breakCycle } from './wait-graph.ts';

export type Locks<R, C> = Readonly<{
  /** `retry`: it is tried again, and shares what it looks at with its predecessor alone, where that is still known. */
  owner(age: number, onAbort: Owner['onAbort'], retry?: Readonly<{ predecessor: Owner | undefined }>): Owner;
  /**
   * Resolves with what `run` gave. Rejects with `plan`'s error, the error given to `release`, or ABORTED when
   * the owner was chosen to end a deadlock or a wait took LOCK_WAIT_MS; the owner has ended then.
   */
  request<T>(owner: Owner, attempt: Attempt<R, C, T>, signal?: AbortSignal): Promise<T>;
  /** Ends an owner: its locks are freed, its waiting requests fail with the error. May be called twice. */
  release(owner: Owner, error?: Error): void;
  /** What waits fails with the error; what is held stays. */
  refuseWaiting(error: Error): void;
  held(): number;
  waiting(): number;
}>;

/** Waits longer than this end as under contention in the service; the client's own limits are 60 s and more. */
export const LOCK_WAIT_MS = 30_000;

export function lockTable<R, C>(clock: Clock, rules: LockRules<R, C>): Locks<R, C> {
  const waiting = new Set<Waiting<R, C>>();
  const queues = documentQueues();
  const ranges = rangeLocks(rules, waiting);
  /** Owners whose locks or waits changed since requests that wait for them were last tried, and owners that have ended. */
  const changed = new Set<Owner>();
  const ended = new Set<Owner>();
  let numbers = 0;
  let isDraining = false;

  /** Tries the request now. True when it is settled, one way or the other. */
  function attempt(request: Waiting<R, C>): boolean {
    request.holders = new Set();
    request.ahead = new Set();
    try {
      ranges.block(request);
      // What a query would lock is looked up only when its range is free: looking is what costs.
      const found = isBlocked(request) ? undefined : request.attempt.look();
      queues.move(request, found?.documents ?? []);
      queues.block(request);
      if (found === undefined || isBlocked(request)) return false;
      if (request.attempt.plan !== undefined) {
        request.changes = request.attempt.plan();
        ranges.blockChanges(request);
        if (isBlocked(request)) return false;
      }
      grant(request, found.range);
    } catch (error) {
      settle(request, () => request.reject(error));
    }
    return true;
  }

  function grant(request: Waiting<R, C>, range: R | undefined): void {
    const { owner } = request;
    if (request.attempt.isLast !== true) {
      owner.hasHeld = true;
      queues.hold(owner, request.documents);
      if (range !== undefined) ranges.hold(owner, range);
      if (owner.requests.size > 0) changed.add(owner);
    }
    const value = request.attempt.run();
    settle(request, () => request.resolve(value));
    if (request.attempt.isLast === true) release(owner);
  }

  function settle(request: Waiting<R, C>, answer: () => void): void {
    if (request.settled) return;
    request.settled = true;
    request.forget();
    queues.move(request, []);
    if (waiting.delete(request)) changed.add(request.owner);
    request.owner.requests.delete(request);
    answer();
  }

  function release(owner: Owner, error: Error = aborted('the transaction has ended')): void {
    for (const request of waiting) {
      if (request.owner === owner) settle(request, () => request.reject(error));
    }
    queues.free(owner);
    ranges.free(owner);
    ended.add(owner);
    drain();
  }

  /** Tries, in arrival order, every request that the changes may concern, until nothing changes. */
  function drain(): void {
    if (isDraining) return;
    isDraining = true;
    try {
      while (changed.size + ended.size > 0) {
        const [altered, gone] = [new Set(changed), new Set(ended)];
        changed.clear();
        ended.clear();
        // Waiting requests are in arrival order. One that others still block is not tried: looking costs.
        for (const request of [...waiting].filter((each) => isConcerned(each, altered, gone))) {
          if (!request.settled && !attempt(request)) resolveDeadlock(request);
        }
      }
    } finally {
      isDraining = false;
    }
  }

  function resolveDeadlock(request: Waiting<R, C>): void {
    breakCycle(request, {
      retry(other) {
        const theirs = [...waiting].find((each) => each === other);
        if (theirs !== undefined && !attempt(theirs)) changed.add(theirs.owner);
      },
      abort: (owner) => abort(owner, 'the transaction was chosen to end a deadlock'),
    });
  }

  function abort(owner: Owner, why: string): void {
    const error = aborted(`Too much contention on these documents. Please try again: ${why}`);
    owner.onAbort(error);
    release(owner, error);
  }

  /** Ends the wait when it takes too long or when the client cancels the call. */
  function limitWait(request: Waiting<R, C>, signal: AbortSignal | undefined): Cancel {
    const leave = (): void => {
      settle(request, () => request.reject(cancelled()));
      drain();
    };
    const cancelTimer = clock.after(LOCK_WAIT_MS, () =>
      abort(request.owner, `a lock was not free for ${LOCK_WAIT_MS} ms`),
    );
    signal?.addEventListener('abort', leave);
    return () => {
      cancelTimer();
      signal?.removeEventListener('abort', leave);
    };
  }

  return {
    owner: (age, onAbort, retry) => ({
      age,
      onAbort,
      isExclusive: retry !== undefined,
      predecessor: retry?.predecessor,
      documents: new Set(),
      requests: new Set(),
      hasHeld: false,
    }),
    request<T>(owner: Owner, wanted: Attempt<R, C, T>, signal?: AbortSignal) {
      if (signal?.aborted === true) return Promise.reject<T>(cancelled());
      return new Promise<T>((resolve, reject) => {
        const request: Waiting<R, C> = {
          number: ++numbers,
          owner,
          isChange: wanted.isLast === true || owner.isExclusive,
          attempt: wanted,
          documents: [],
          changes: [],
          holders: new Set(),
          ahead: new Set(),
          settled: false,
          resolve: (value) => resolve(value as T),
          reject,
          forget: () => undefined,
        };
        if (!attempt(request)) {
          waiting.add(request);
          owner.requests.add(request);
          request.forget = limitWait(request, signal);
          resolveDeadlock(request);
        }
        drain();
      });
    },
    release,
    refuseWaiting(error) {
      for (const request of waiting) settle(request, () => request.reject(error));
    },
    held: () => queues.held(),
    waiting: () => waiting.size,
  };
}

const aborted = (message: string): Error => new StatusError(status.ABORTED, message);
const cancelled = (): Error =>
  new StatusError(status.CANCELLED, 'the call was cancelled while it waited for a lock');

/** Whether it may go on now, or get another place: takes owners that have ended out of what it waits for. */
function isConcerned(request: Request, altered: ReadonlySet<Owner>, gone: ReadonlySet<Owner>): boolean {
  const { owner, holders, ahead } = request;
  let [wasHeldUp, wasBehind] = [false, false];
  for (const each of gone) {
    wasHeldUp = holders.delete(each) || wasHeldUp;
    // Then another may be the nearest before it.
    wasBehind = ahead.delete(each) || wasBehind;
  }
  if (wasBehind || altered.has(owner) || intersects(ahead, altered)) return true;
  return wasHeldUp && !isBlocked(request);
}

function intersects<T>(some: ReadonlySet<T>, others: ReadonlySet<T>): boolean {
  for (const one of some) if (others.has(one)) return true;
  return false;
}
