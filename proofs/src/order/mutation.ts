/**
 * Named mistakes, made around the protocol instead of in it: a store that hides something, an outcome that is changed
 * on its way out. The simulation must notice each.
 */
import type { Clock } from '../../../shared/src/clock.ts';
import { codeOf } from '../../../shared/src/errors.ts';
import type { Handler } from '../../../shared/src/handler.ts';
import { ack, type Outcome, retry } from '../../../shared/src/outcome.ts';
import type { StreamOptions } from '../../../shared/src/order/options.ts';
import type { StreamState } from '../../../shared/src/order/stream-state.ts';
import type { HeldMessage, StreamChange } from '../../../shared/src/order/stream-store.ts';
import type { Store } from './faulty-store.ts';

export type Mutation = Readonly<{
  store?(store: Store): Store;
  outcome?(outcome: Outcome): Outcome;
  handler?(handler: Handler, clock: Clock): Handler;
  /** Repeats do not reach the handler: a number that is done may have been done under an earlier lease. */
  behindOnce?: true;
  sweeps?: false;
  options?: Partial<StreamOptions>;
}>;

/** Changes what every commit writes, in and outside of transactions. */
const writing = (change: (written: StreamChange) => StreamChange): Mutation => ({
  store: (store) => ({
    ...store,
    commit: (ref, seen, written) => store.commit(ref, seen, change(written)),
    transact: (ref, work) =>
      store.transact(ref, (inside) =>
        work({ ...inside, commit: (state, written) => inside.commit(state, change(written)) }),
      ),
  }),
});

/** Changes what every read of a document, and of held messages, answers. */
const reading = (
  change: (state: StreamState) => StreamState,
  held: (messages: readonly HeldMessage[]) => readonly HeldMessage[] = (messages) => messages,
): Mutation => {
  const over = <Access extends Pick<Store, 'read' | 'held'>>(
    store: Access,
  ): Pick<Store, 'read' | 'held'> => ({
    async read(ref) {
      const document = await store.read(ref);
      return document.state === undefined ? document : { ...document, state: change(document.state) };
    },
    held: async (...args) => held(await store.held(...args)),
  });
  return {
    store: (store) => ({
      ...store,
      ...over(store),
      transact: (ref, work) =>
        store.transact(ref, (inside) => {
          const hidden = over({ read: inside.read, held: (_, ...page) => inside.held(...page) });
          return work({
            read: () => hidden.read(ref),
            held: (...page) => hidden.held(ref, ...page),
            commit: inside.commit,
          });
        }),
    }),
  };
};

/** `last` moves in one commit, what is done is removed in another. */
export const twoCommits: Mutation = {
  store: (store) => ({
    ...store,
    async commit(ref, seen, { remove = [], ...change }) {
      const version = await store.commit(ref, seen, change);
      if (version === undefined || remove.length === 0) return version;
      const { state } = await store.read(ref);
      const patch = { commit: change.patch.commit };
      return state && store.commit(ref, { version, state }, { patch, remove });
    },
  }),
};

/** What is held is not counted in the document. */
export const uncountedHold: Mutation = writing(({ patch, create = [], ...rest }) => {
  const { held, ...uncounted } = patch;
  return { ...rest, create, patch: create.length > 0 || held === undefined ? uncounted : patch };
});

/** A lease is written without the time at which a visit must come. */
export const leaseWithoutVisit: Mutation = writing(({ patch, ...rest }) => ({
  ...rest,
  patch: patch.lease ? { ...patch, readyAt: null } : patch,
}));

/** A stream is released as if nothing were held for it. */
export const blindRelease: Mutation = writing(({ patch, ...rest }) => ({
  ...rest,
  patch:
    patch.lease === null && patch.blocked === undefined
      ? { ...patch, readyAt: null, waitingSince: null, gapAt: null }
      : patch,
}));

/** A look that hides held messages. */
export const blindLook: Mutation = reading(
  (state) => state,
  () => [],
);

/** The document is read as if nothing were held. */
export const unseen: Mutation = reading((state) => ({ ...state, held: 0 }));

/** The identities of what is done, and of what was started, are not remembered. */
export const noIdentity: Mutation = {
  ...reading((state) => ({ ...state, run: null, recentHashes: [] })),
  options: { onUnknownStale: 'ack' },
};

/** A commit is written whatever another process has committed meanwhile. */
export const unconditional: Mutation = {
  store: (store) => ({
    ...store,
    async commit(ref, seen, change) {
      const { version } = await store.read(ref);
      return store.commit(ref, { ...seen, version }, change);
    },
  }),
};

/** Acknowledged although no commit shows the number as done, skipped or held. */
export const ackWithoutCommit: Mutation = {
  outcome: (outcome) =>
    outcome.kind === 'retry' && ['LEASE_LOST', 'STORE_UNAVAILABLE'].includes(codeOf(outcome.error))
      ? ack()
      : outcome,
};

/** Deliveries start what has failed, or killed its process, as a visit does. */
export const withoutRuleOfFailedNumbers: Mutation = reading((state) => ({
  ...state,
  attempts: 0,
  suspectsTo: 0,
}));

/** Numbers of a batch whose process died are started like any others. */
export const suspectsAreForgotten: Mutation = reading((state) => ({ ...state, suspectsTo: 0 }));

/** Work of another delivery on the message counts as a failure of the message. */
export const countsElsewhere: Mutation = {
  handler: (handler) => async (message, context) => {
    const outcome = await handler(message, context);
    return outcome.kind === 'retry' && codeOf(outcome.error) === 'IN_PROGRESS_ELSEWHERE'
      ? retry(new Error('in progress elsewhere'))
      : outcome;
  },
};
