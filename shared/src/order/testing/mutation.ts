/**
 * Named mistakes, made around the protocol instead of in it: a store that hides something, an outcome that is changed
 * on its way out. The simulation must notice each.
 */
import type { Clock } from '../../clock.ts';
import { codeOf } from '../../errors.ts';
import type { Handler } from '../../handler.ts';
import type { Message } from '../../message.ts';
import { ack, type Outcome, retry } from '../../outcome.ts';
import { contentHash } from '../content.ts';
import type { KeyState } from '../key-state.ts';
import type { HeldMessage, OrderStore } from '../order-store.ts';

export type Mutation = Readonly<{
  /** Of everybody. */
  store?(store: OrderStore): OrderStore;
  /** As one delivery sees it. */
  deliveryStore?(store: OrderStore, message: Message): OrderStore;
  outcome?(outcome: Outcome): Outcome;
  handler?(handler: Handler, clock: Clock): Handler;
  /** What repeats does not reach the handler: what is done may have been done under an earlier lease. */
  behindOnce?: true;
  sweeps?: false;
}>;

/** The pointer moves in one commit, what is done is removed in another. */
export const twoCommits: Mutation = {
  store: (store) => ({
    ...store,
    async write(ref, expected, patch, remove = []) {
      const version = await store.write(ref, expected, patch);
      if (version === undefined || remove.length === 0) return version;
      const base = expected.base;
      await store.transact(ref, base, { numbers: [0] }, () => ({ result: undefined, remove }));
      return version;
    },
  }),
};

/** A key is let go of without a look at what is held. */
export const blindRelease: Mutation = {
  store: (store) => ({
    ...store,
    transact: (ref, base, query, decide) =>
      store.transact(ref, base, query, (state, held, nowMs) => {
        const isRelease = 'from' in query && query.limit === 1 && state.lease !== null;
        return decide(state, isRelease ? [] : held, nowMs);
      }),
  }),
};

/** What is held under a lease is not shown in the key, so that its owner does not look for it. */
export const unmarked: Mutation = {
  store: (store) => ({
    ...store,
    transact: (ref, base, query, decide) =>
      store.transact(ref, base, query, (state, held, nowMs) => {
        const { patch, ...decision } = decide(state, held, nowMs);
        const isHold = 'numbers' in query && state.lease !== null;
        return patch === undefined || isHold ? decision : { ...decision, patch };
      }),
  }),
};

/** Whoever has the lease reads the key as if nothing were held for it. */
export const unseen: Mutation = {
  store: (store) => ({
    ...store,
    async read(ref) {
      const view = await store.read(ref);
      const { state } = view;
      if (state === undefined || state.lease === null) return view;
      return { ...view, state: { ...state, waitingSince: null } };
    },
  }),
};

/** What was done before is acknowledged without a look at what waits behind it. */
export const staleWakesNobody: Mutation = {
  sweeps: false,
  deliveryStore: (store, message) => ({
    ...store,
    async read(ref) {
      const view = await store.read(ref);
      const isStale = view.state !== undefined && Number(message.attributes.sequence) <= view.state.last;
      return isStale && view.state !== undefined
        ? { ...view, state: { ...view.state, readyAt: null } }
        : view;
    },
  }),
};

/** Every message under a number counts as the one that came first. */
export const noIdentity: Mutation = {
  deliveryStore(store, message) {
    const hash = contentHash(message);
    const blind = (state: KeyState): KeyState => ({ ...state, run: null, ring: [] });
    const same = (held: readonly HeldMessage[]): readonly HeldMessage[] =>
      held.map((one) => (String(one.number) === message.attributes.sequence ? { ...one, hash } : one));
    return {
      ...store,
      async read(ref) {
        const view = await store.read(ref);
        return view.state === undefined ? view : { ...view, state: blind(view.state) };
      },
      transact: (ref, base, query, decide) =>
        store.transact(ref, base, query, (state, held, nowMs) => decide(blind(state), same(held), nowMs)),
    };
  },
};

/** Acknowledged although no commit shows the number as done, given up or held. */
export const ackWithoutCommit: Mutation = {
  outcome: (outcome) =>
    outcome.kind === 'retry' && ['LEASE_LOST', 'STORE_UNAVAILABLE'].includes(codeOf(outcome.error))
      ? ack()
      : outcome,
};

/** Deliveries run heads that have failed, as the sweep does. */
export const withoutRuleOfFailedHeads: Mutation = {
  store: (store) => ({
    ...store,
    async read(ref) {
      const view = await store.read(ref);
      return view.state === undefined ? view : { ...view, state: { ...view.state, attempts: 0 } };
    },
  }),
};

/** What another delivery is at work on counts as a failure of the message. */
export const countsElsewhere: Mutation = {
  handler: (handler) => async (message, context) => {
    const outcome = await handler(message, context);
    return outcome.kind === 'retry' && codeOf(outcome.error) === 'IN_PROGRESS_ELSEWHERE'
      ? retry(new Error('in progress elsewhere'))
      : outcome;
  },
};
