/**
 * One cycle of a stream's worker, from what is known to a commit that is applied: read, plan, look, encode, commit.
 *
 * What is remembered of the stream belongs to one version of its document, and a commit under that version needs no
 * read before it. A commit that is refused says that another process has committed: then the cycles run in
 * transactions, in which the store lets the processes queue up, until the document shows this process's own last commit
 * again. A commit whose reply is lost is recognised by its ID, or by the name of the lease that it wrote.
 */
import { identifierHash } from '../hash.ts';
import { type Moment, momentOf, sleep } from '../clock.ts';
import { codeOf, storeUnavailable, TransientError } from '../errors.ts';
import { retry } from '../outcome.ts';
import type { Situation } from './draft.ts';
import { type HeldView, viewOf } from './held-view.ts';
import type { Delivery } from './mailbox.ts';
import { firstState } from './opening.ts';
import type { StreamPolicy } from './options.ts';
import { type Complete, plan, type Plan } from './plan.ts';
import { storedForm } from './stored-form.ts';
import { patched, type StreamState } from './stream-state.ts';
import type { Turns } from './turns.ts';
import type { StreamChange, StreamRef, StreamTransaction } from './stream-store.ts';

/** What the worker knows when a plan is made. It is asked each time, so that a plan has all that has arrived. */
export type Inputs = Pick<Situation, 'mailbox' | 'visit' | 'progress' | 'running' | 'isStopping'>;

/** A plan whose commit is applied. */
export type Committed = Readonly<{
  plan: Complete;
  /** The document's version behind the commit, which is the fencing token of a lease that it wrote. */
  token: string;
  /** When the commit was sent. A lease that it wrote is counted from here. */
  sentAt: Moment;
}>;

export type Cycle = Readonly<{
  /**
   * Rejects with `STORE_UNAVAILABLE` when the store has not answered for ten seconds, or sooner where `isWanted` says
   * that no answer is waited for any more; with `UNREADABLE_STATE`, and what `start` rejects with, at once.
   */
  next(inputs: () => Inputs, isWanted: () => boolean): Promise<Committed>;
  /** Bytes of messages that are remembered: of what is held, and of commits whose outcome is not known. */
  bytes(): number;
  forget(): void;
}>;

type Seen = Readonly<{
  state: StreamState;
  version: string | undefined;
  view: HeldView;
  /** The store's clock minus this process's monotonic one. */
  offsetMs: number;
  /** On both clocks of this process: one of them may stand still while the instance is frozen. */
  readAt: Readonly<{ monotonic: number; wall: number }>;
}>;

/** How one attempt reads: `assertOpen` throws once nobody waits for the attempt any more. */
type Access = Pick<StreamTransaction, 'read' | 'held'> & Readonly<{ assertOpen(): void }>;

type Sent = Readonly<{ plan: Complete; sentAt: Moment; isCheckpoint: boolean }>;
type Applied = Readonly<{ kind: 'applied'; committed: Committed }>;
type Decided = Exclude<Plan, { kind: 'read' | 'look' }> | Applied;

/** Of the retries of one cycle together. */
const BUDGET_MS = 10_000;
const PAUSE_MS = 500;
/** Commits whose outcome is not known: by far more than fit into the time of one that can still be applied. */
const MOST_UNKNOWN = 200;
/** What is older is read again: by then the difference between the clocks may be another one. */
const REMEMBERED_MS = 60_000;
/** Of held messages, in one stream: beyond this they are read again. */
const MOST_BYTES = 32_000_000;

export function streamCycle(policy: StreamPolicy, ref: StreamRef, suspects: Turns): Cycle {
  const { store, clock } = policy;
  let seen: Seen | undefined;
  /** Whether `seen` must be read again before anything rests on it. */
  let isDoubted = false;
  /** What the commit rested on that was refused last. */
  let refusedAt: Readonly<{ version: string | undefined }> | undefined;
  /** It was refused although its version stood: a message that was to be held exists already. */
  let isCautious = false;
  /** Other processes work on the stream too: what is remembered is read again before it is planned with. */
  let isShared = false;
  /** They commit between this process's reads and commits: its cycles run in transactions. */
  let isContended = false;
  let lastCommit = '';
  /** Ends the turn of this stream, where it has one. */
  let leave: (() => void) | undefined;
  /** By ID: commits that may have been applied, or may still be. */
  const unknown = new Map<string, Sent>();

  /** Reading, planning and looking, until the plan is complete or something must be encoded. */
  async function decide(access: Access, inputs: () => Inputs): Promise<Decided> {
    let isFresh = false;
    let disagreed: Seen | undefined;
    for (;;) {
      if (seen === undefined || isDoubted || isOld(seen)) {
        seen = await read(access);
        isFresh = true;
        const applied = recognised(seen);
        if (applied !== undefined) return applied;
      }
      const step = plan(situation(seen, isFresh, inputs()));
      switch (step.kind) {
        case 'read':
          isDoubted = true;
          break;
        case 'look': {
          const messages = await access.held(step.page.from, step.page.limit);
          access.assertOpen();
          seen.view.learned(step.page, messages);
          if (!seen.view.disagrees()) break;
          // Read at two versions, most likely. If not, one of the two cannot be what a commit has left.
          if (disagreed !== undefined && disagreed.version === seen.version)
            throw miscounted(ref, seen.state);
          disagreed = seen;
          seen = undefined;
          break;
        }
        case 'encode':
        case 'turn':
        case 'complete':
          return step;
      }
    }
  }

  async function read(access: Pick<Access, 'read' | 'assertOpen'>): Promise<Seen> {
    const before = seen;
    const document = await access.read();
    const { version } = document;
    const state = document.state ?? (await firstState(policy, ref));
    access.assertOpen();
    const isSame = before !== undefined && before.version === version && version !== undefined;
    isDoubted = false;
    if (state.commit === lastCommit) {
      isShared = false;
      isContended = false;
    }
    if (refusedAt !== undefined) {
      const stands = refusedAt.version === version;
      refusedAt = undefined;
      // Looked for under this very version, and not shown: no further look would be another one.
      if (stands && isCautious) throw hidden(ref);
      isCautious = stands;
    }
    const now = { monotonic: clock.monotonic(), wall: clock.now() };
    return {
      state,
      version,
      view: isSame && !isCautious ? before.view : viewOf(state, isCautious, before),
      offsetMs: document.nowMs - now.monotonic,
      readAt: now,
    };
  }

  const isOld = ({ readAt }: Seen): boolean =>
    clock.monotonic() - readAt.monotonic > REMEMBERED_MS || clock.now() - readAt.wall > REMEMBERED_MS;

  function situation(known: Seen, isFresh: boolean, inputs: Inputs): Situation {
    const monotonic = clock.monotonic();
    const { state, view, offsetMs } = known;
    const nowMs = monotonic + offsetMs;
    return {
      policy,
      state,
      view,
      nowMs,
      monotonic,
      isFresh,
      isCautious,
      hasTurn: leave !== undefined,
      owner: policy.newId(),
      ...inputs,
    };
  }

  /** The plan whose commit the document shows, although its reply was lost. */
  function recognised({ state, version }: Seen): Applied | undefined {
    for (const [id, { plan: sent, sentAt }] of unknown) {
      const isShown =
        id === state.commit || (sent.batch !== undefined && sent.batch.owner === state.lease?.owner);
      if (!isShown || version === undefined) continue;
      unknown.clear();
      lastCommit = state.commit;
      return { kind: 'applied', committed: { plan: sent, token: version, sentAt } };
    }
    return undefined;
  }

  function changeOf(complete: Complete, isCheckpoint: boolean): StreamChange & Readonly<{ id: string }> {
    const id = policy.newId();
    const [oldest] = unknown.keys();
    if (unknown.size >= MOST_UNKNOWN && oldest !== undefined) unknown.delete(oldest);
    unknown.set(id, { plan: complete, sentAt: momentOf(clock), isCheckpoint });
    const { fields, create, remove } = complete;
    return { id, patch: { ...fields, commit: id }, create, remove: remove.map(({ number }) => number) };
  }

  const direct: Access = {
    read: () => store.read(ref),
    held: (...page) => store.held(ref, ...page),
    assertOpen: () => undefined,
  };

  /** One attempt. Undefined: something has become known, and the next attempt has it. */
  async function attempt(inputs: () => Inputs): Promise<Committed | undefined> {
    const decided = await decide(direct, inputs);
    if (decided.kind === 'applied') return decided.committed;
    if (decided.kind !== 'complete') return prepare(decided);
    const { state, version } = known();
    const sentAt = momentOf(clock);
    if (!isCommit(decided)) return { plan: decided, token: version ?? '', sentAt };
    const { id, ...change } = changeOf(decided, inputs().running !== undefined);
    isDoubted = true;
    const committed = await store.commit(ref, { version, state }, change);
    if (committed === undefined) return refused(version);
    adopt(decided, id, committed);
    unknown.clear();
    return { plan: decided, token: committed, sentAt };
  }

  /**
   * The same in one transaction. The version of its commit is not known, so what rests on it is read afterwards. A
   * client may repeat a transaction whose caller has given it up: by then the worker is elsewhere, and a plan made of
   * what it has now would settle a batch that is still running.
   */
  async function attemptInTransaction(inputs: () => Inputs): Promise<Committed | undefined> {
    const sentAt = momentOf(clock);
    let version: string | undefined;
    let isOpen = true;
    const assertOpen = (): void => {
      if (!isOpen) throw storeUnavailable('the transaction was given up');
    };
    const transacted = store.transact(ref, async (transaction) => {
      assertOpen();
      isDoubted = true;
      const decided = await decide({ ...transaction, assertOpen }, inputs);
      if (decided.kind !== 'complete' || !isCommit(decided)) return { decided, id: undefined };
      const { state } = known();
      version = known().version;
      const { id, ...change } = changeOf(decided, inputs().running !== undefined);
      transaction.commit(state, change);
      return { decided, id };
    });
    const { applied, result } = await transacted.finally(() => (isOpen = false));
    const { decided, id } = result;
    if (decided.kind === 'applied') return decided.committed;
    if (decided.kind !== 'complete') return prepare(decided);
    if (id === undefined) return { plan: decided, token: known().version ?? '', sentAt };
    if (!applied) return refused(version);
    adopt(decided, id, undefined);
    isDoubted = true;
    if (decided.batch === undefined) {
      unknown.clear();
      return { plan: decided, token: '', sentAt };
    }
    // Shows the lease, and its token; or that another process has it already.
    seen = await read(direct);
    return recognised(seen)?.committed;
  }

  const known = (): Seen => {
    if (seen === undefined) throw new Error('a plan without a document');
    return seen;
  };

  function refused(version: string | undefined): undefined {
    isDoubted = true;
    // The first time it may have been no more than an old memory.
    isContended ||= isShared;
    isShared = true;
    refusedAt = { version };
    return undefined;
  }

  function adopt({ fields, create, remove }: Complete, id: string, version: string | undefined): void {
    const { state, view, offsetMs, readAt } = known();
    const next = patched({ ...state, commit: id }, fields, clock.monotonic() + offsetMs);
    view.changed(
      create,
      remove.map(({ number }) => number),
      next.last,
    );
    const kept = view.bytes() <= MOST_BYTES ? view : viewOf(next);
    seen = { state: next, version, view: kept, offsetMs, readAt };
    lastCommit = id;
    isDoubted = false;
    isCautious = false;
  }

  /** What a plan needs before it can be complete, other than knowledge. */
  async function prepare(need: Exclude<Decided, Complete | Applied>): Promise<undefined> {
    if (need.kind === 'encode') return encode(need.deliveries);
    leave = await suspects.enter();
    isDoubted = true;
    return undefined;
  }

  function endTurn(): void {
    leave?.();
    leave = undefined;
  }

  async function encode(deliveries: readonly Delivery[]): Promise<undefined> {
    await Promise.all(
      deliveries.map(async (one) => {
        try {
          one.encoded(await storedForm(policy, ref, one.arrival, one.message, one.context));
        } catch (error) {
          one.encoded('tooLarge');
          one.answer(retry(error));
        }
      }),
    );
    return undefined;
  }

  return {
    async next(inputs, isWanted) {
      const until = clock.monotonic() + BUDGET_MS;
      let failures = 0;
      // Under the lease the document changes seldom: only by what others hold.
      if (isShared && inputs().progress === undefined) isDoubted = true;
      for (const [id, { isCheckpoint }] of unknown) if (isCheckpoint) unknown.delete(id);
      for (;;) {
        try {
          const committed = await (isContended ? attemptInTransaction(inputs) : attempt(inputs));
          if (committed === undefined) continue;
          if (committed.plan.batch?.needsTurn !== true && inputs().running === undefined) endTurn();
          return committed;
        } catch (error) {
          const isLate = clock.monotonic() + PAUSE_MS >= until || !isWanted();
          if (codeOf(error) !== 'STORE_UNAVAILABLE' || isLate) {
            if (inputs().running === undefined) endTurn();
            throw error;
          }
          failures += 1;
          // One reply was lost, most likely: the document says at once what has become of the commit.
          if (failures > 1) await sleep(clock, PAUSE_MS);
        }
      }
    },
    bytes: () => (seen?.view.bytes() ?? 0) + contentBytes([...unknown.values()].map((sent) => sent.plan)),
    forget: () => void (seen = undefined),
  };
}

const isCommit = ({ fields, create, remove }: Complete): boolean =>
  Object.keys(fields).length > 0 || create.length > 0 || remove.length > 0;

/** Of all messages that the plans refer to, each counted once. */
function contentBytes(plans: readonly Complete[]): number {
  const contents = new Set<Uint8Array>();
  for (const { create, remove, answers, batch } of plans) {
    for (const { message } of [...create, ...remove]) contents.add(message);
    for (const { delivery } of answers) contents.add(delivery.message.data);
    for (const { delivery, held } of batch?.entries ?? [])
      contents.add(held === undefined ? delivery.message.data : held.message);
  }
  return [...contents].reduce((sum, { length }) => sum + length, 0);
}

const hidden = (ref: StreamRef): TransientError =>
  new TransientError(
    'UNREADABLE_STATE',
    `of the stream ${JSON.stringify(ref.key.slice(0, 60))} a message is held that its list does not show: another program has changed it`,
  );

const miscounted = (ref: StreamRef, { held }: StreamState): TransientError =>
  new TransientError(
    'UNREADABLE_STATE',
    `the stream ${identifierHash(ref.key)} counts ${held} held messages, and another number was found`,
  );
