/**
 * One cycle of a stream's worker, from what is known to a commit that is applied: read, plan, look, encode, commit.
 *
 * What is known of the stream belongs to one version of its document, and a commit under that version needs no read
 * before it. It is in one of four states:
 *
 *   nothing   entered at first, from `forget`, and where what was looked up contradicts the document. A read ends it.
 *   current   entered by a read, and by a commit that was applied. Plans are made of it. A commit that is sent ends it,
 *             and so does its age, a plan that must not rest on memory, and other processes at the stream.
 *   doubted   entered when one of these ends `current`: the commit may have changed the document, or another process.
 *             A read ends it; one that shows the same version keeps what is known of held messages.
 *   refused   entered when a commit was refused. A read ends it. Where that shows the version on which the commit
 *             rested, one of the messages that were to be held exists already, and they are looked up.
 *
 * Other processes at the stream are met in three steps:
 *
 *   alone     nothing else commits, as far as is known.
 *   met       entered by a refusal, which may have been no more than an old memory. What is known is doubted at the
 *             beginning of each cycle that has no batch to settle.
 *   queued    entered by a second refusal. The cycles run in transactions, in which the store lets processes queue up.
 *
 * A read that shows this process's own last commit leads from both of them back to `alone`. A commit whose reply is lost
 * is recognised by its ID, or by the name of the lease that it wrote.
 */
import { identifierHash } from '../hash.ts';
import { type Moment, momentOf, sleep } from '../clock.ts';
import { codeOf, storeUnavailable, TransientError } from '../errors.ts';
import { retry } from '../outcome.ts';
import type { Need, Situation } from './draft.ts';
import { heldView, type HeldView, type Page } from './held-view.ts';
import type { StreamPolicy } from './options.ts';
import { type Complete, plan, type Plan } from './plan.ts';
import { storedForm } from './stored-form.ts';
import { freshStream, openingStream, applyPatch, type StreamState } from './stream-state.ts';
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
  forget(): void;
}>;

type Seen = Readonly<{
  state: StreamState;
  /** Undefined while the document is absent, and of a commit in a transaction, whose version is not known. */
  version: string | undefined;
  view: HeldView;
  /** The store's clock minus this process's monotonic one. */
  offsetMs: number;
  /** On both clocks of this process: one of them may stop while the instance is frozen. */
  readAt: Readonly<{ monotonic: number; wall: number }>;
}>;

type Known =
  | Readonly<{ kind: 'nothing' }>
  | Readonly<{ kind: 'current' | 'doubted'; seen: Seen }>
  /** `create`: the numbers that the commit was to hold, under the version of `seen`. */
  | Readonly<{ kind: 'refused'; seen: Seen; create: readonly number[] }>;

type Others = Readonly<{ kind: 'alone' } | { kind: 'met' | 'queued'; ownCommit: string }>;

/** How one attempt reads: `assertOpen` throws once nothing waits for the attempt any more. */
type Access = Pick<StreamTransaction, 'read' | 'held'> & Readonly<{ assertOpen(): void }>;

type Sent = Readonly<{ plan: Complete; sentAt: Moment; isCheckpoint: boolean }>;
type Applied = Readonly<{ kind: 'applied'; committed: Committed }>;
type Encode = Extract<Need, { kind: 'encode' }>;
type Decided = Complete | Applied;

/** Of the retries of one cycle together. */
const BUDGET_MS = 10_000;
const PAUSE_MS = 500;
/** Commits whose outcome is not known: by far more than fit into the time of one that can still be applied. */
const MOST_UNKNOWN = 200;
/** What is older is read again: by then the difference between the clocks may be another one. */
const REMEMBERED_MS = 60_000;

/**
 * `fits` gets, after each cycle, how many bytes of messages are remembered (held messages, and those of commits whose
 * outcome is not known), and answers whether they may be.
 */
export function streamCycle(policy: StreamPolicy, ref: StreamRef, fits: (bytes: number) => boolean): Cycle {
  const { store, clock } = policy;
  let known: Known = { kind: 'nothing' };
  let others: Others = { kind: 'alone' };
  /** By ID: commits that may have been applied, or may still be. */
  const unknown = new Map<string, Sent>();

  /** Reading, planning, looking and encoding, until the plan is complete. */
  async function decide(access: Access, inputs: () => Inputs): Promise<Decided> {
    let isFresh = false;
    let contradicted: Seen | undefined;
    for (;;) {
      const before = known;
      let existing: readonly number[] = [];
      if (before.kind !== 'current' || isOld(before.seen)) {
        const read = await readAgain(access);
        isFresh = true;
        const applied = recognised(read);
        if (applied !== undefined) return applied;
        if (before.kind === 'refused' && before.seen.version === read.version) existing = before.create;
      }
      const seen = current();
      const step: Plan = existing.length > 0 ? lookFor(existing) : plan(situation(seen, isFresh, inputs()));
      switch (step.kind) {
        case 'read':
          doubt();
          break;
        case 'look': {
          await look(access, seen, step.pages);
          const isFound = existing.length === 0 || existing.some((number) => isHeld(seen.view, number));
          if (isFound && !seen.view.disagrees()) break;
          // Read at two versions, most likely. If not, one of the two cannot be what a commit has left.
          if (contradicted !== undefined && contradicted.version === seen.version) throw contradiction(ref);
          contradicted = seen;
          known = existing.length > 0 ? { kind: 'refused', seen, create: existing } : { kind: 'nothing' };
          break;
        }
        case 'encode':
          await encode(step);
          access.assertOpen();
          break;
        case 'complete':
          return step;
      }
    }
  }

  async function readAgain(access: Pick<Access, 'read' | 'assertOpen'>): Promise<Seen> {
    const before = known.kind === 'nothing' ? undefined : known.seen;
    const document = await access.read();
    const { version } = document;
    const state = document.state ?? (await firstState(policy, ref));
    access.assertOpen();
    if (others.kind !== 'alone' && others.ownCommit === state.commit) others = { kind: 'alone' };
    const isSame =
      version !== undefined &&
      (before?.version === version ||
        (before?.version === undefined && before?.state.commit === state.commit));
    const now = { monotonic: clock.monotonic(), wall: clock.now() };
    const seen = {
      state,
      version,
      view: isSame && before !== undefined ? before.view : heldView(state),
      offsetMs: document.nowMs - now.monotonic,
      readAt: now,
    };
    known = { kind: 'current', seen };
    return seen;
  }

  async function look(access: Access, { view }: Seen, pages: readonly Page[]): Promise<void> {
    const found = await Promise.all(pages.map(({ from, limit }) => access.held(from, limit)));
    access.assertOpen();
    for (const [index, page] of pages.entries()) view.learned(page, found[index] ?? []);
  }

  const isOld = ({ readAt }: Seen): boolean =>
    clock.monotonic() - readAt.monotonic > REMEMBERED_MS || clock.now() - readAt.wall > REMEMBERED_MS;

  function situation({ state, view, offsetMs }: Seen, isFresh: boolean, inputs: Inputs): Situation {
    const monotonic = clock.monotonic();
    const nowMs = monotonic + offsetMs;
    return { policy, state, view, nowMs, monotonic, isFresh, owner: policy.newId(), ...inputs };
  }

  /** The plan whose commit the document shows, although its reply was lost. */
  function recognised({ state, version }: Seen): Applied | undefined {
    for (const [id, { plan: sent, sentAt }] of unknown) {
      const isShown =
        id === state.commit || (sent.batch !== undefined && sent.batch.owner === state.lease?.owner);
      if (!isShown || version === undefined) continue;
      unknown.clear();
      if (others.kind !== 'alone') others = { ...others, ownCommit: state.commit };
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

  /** One attempt. Undefined: the commit was refused, and the next attempt looks why. */
  async function attempt(inputs: () => Inputs): Promise<Committed | undefined> {
    const decided = await decide(direct, inputs);
    if (decided.kind === 'applied') return decided.committed;
    const seen = current();
    const { state, version } = seen;
    const sentAt = momentOf(clock);
    if (!isCommit(decided)) return { plan: decided, token: version ?? '', sentAt };
    const { id, ...change } = changeOf(decided, inputs().running !== undefined);
    doubt();
    const committed = await store.commit(ref, { version, state }, change);
    if (committed === undefined) return refused(seen, decided);
    adopt(seen, decided, id, committed);
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
    let isOpen = true;
    const assertOpen = (): void => {
      if (!isOpen) throw storeUnavailable('the transaction was abandoned');
    };
    const transacted = store.transact(ref, async (transaction) => {
      assertOpen();
      doubt();
      const decided = await decide({ ...transaction, assertOpen }, inputs);
      assertOpen();
      if (decided.kind !== 'complete') return { decided };
      const seen = current();
      if (!isCommit(decided)) return { decided, seen };
      const { id, ...change } = changeOf(decided, inputs().running !== undefined);
      transaction.commit(seen.state, change);
      return { decided, seen, id };
    });
    const { applied, result } = await transacted.finally(() => (isOpen = false));
    const { decided, seen, id } = result;
    if (decided.kind === 'applied') return decided.committed;
    if (id === undefined || seen === undefined) return { plan: decided, token: seen?.version ?? '', sentAt };
    if (!applied) return refused(seen, decided);
    adopt(seen, decided, id, undefined);
    if (decided.batch === undefined) {
      unknown.clear();
      return { plan: decided, token: '', sentAt };
    }
    // Shows the lease, and its token; or that another process has it already.
    return recognised(await readAgain(direct))?.committed;
  }

  const current = (): Seen => {
    if (known.kind !== 'current') throw new Error('a plan without a document');
    return known.seen;
  };

  function doubt(): void {
    if (known.kind === 'current') known = { kind: 'doubted', seen: known.seen };
  }

  function refused(seen: Seen, { create }: Complete): undefined {
    known = { kind: 'refused', seen, create: create.map(({ number }) => number) };
    others = others.kind === 'alone' ? { kind: 'met', ownCommit: '' } : { ...others, kind: 'queued' };
    return undefined;
  }

  function adopt(seen: Seen, { fields, create, remove }: Complete, id: string, version?: string): void {
    const state = applyPatch({ ...seen.state, commit: id }, fields, clock.monotonic() + seen.offsetMs);
    seen.view.changed(
      create,
      remove.map(({ number }) => number),
      state.last,
    );
    known = { kind: version === undefined ? 'doubted' : 'current', seen: { ...seen, state, version } };
    if (others.kind !== 'alone') others = { ...others, ownCommit: id };
  }

  async function encode({ deliveries }: Encode): Promise<void> {
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
  }

  /** What is forgotten is read again: a commit that only its ID would have shown counts as another process's. */
  function bound(): void {
    const held = known.kind === 'nothing' ? 0 : known.seen.view.bytes();
    if (fits(held + contentBytes([...unknown.values()].map((sent) => sent.plan)))) return;
    known = { kind: 'nothing' };
    unknown.clear();
    fits(0);
  }

  return {
    async next(inputs, isWanted) {
      const until = clock.monotonic() + BUDGET_MS;
      let failures = 0;
      // Under the lease the document changes seldom: only by what others hold.
      if (others.kind !== 'alone' && inputs().progress === undefined) doubt();
      for (const [id, { isCheckpoint }] of unknown) if (isCheckpoint) unknown.delete(id);
      for (;;) {
        try {
          const committed = await (others.kind === 'queued' ? attemptInTransaction(inputs) : attempt(inputs));
          if (committed === undefined) continue;
          bound();
          return committed;
        } catch (error) {
          const isLate = clock.monotonic() + PAUSE_MS >= until || !isWanted();
          if (codeOf(error) !== 'STORE_UNAVAILABLE' || isLate) {
            bound();
            throw error;
          }
          failures += 1;
          // One reply was lost, most likely: the document says at once what has become of the commit.
          if (failures > 1) await sleep(clock, PAUSE_MS);
        }
      }
    },
    forget: () => void (known = { kind: 'nothing' }),
  };
}

/**
 * What a stream that no commit has written yet starts from. A crash before it is written changes nothing: the next
 * delivery asks the counter again. Rejects with TransientError `COUNTER_MISSING` where the start is a counter that is not
 * there: beginning anywhere would be a guess.
 */
async function firstState(
  { start, counter, maxAhead }: StreamPolicy,
  { key }: StreamRef,
): Promise<StreamState> {
  if (counter === undefined) return freshStream(start);
  const found = await counter.read(key);
  if (found !== undefined) return openingStream(found, maxAhead);
  throw new TransientError(
    'COUNTER_MISSING',
    `sequenceKey ${identifierHash(key)} has no counter, at which its stream is to begin; accepted: a counter under the configured collection and scope, or a number as start`,
  );
}

const isCommit = ({ fields, create, remove }: Complete): boolean =>
  Object.keys(fields).length > 0 || create.length > 0 || remove.length > 0;

/** Each by itself: they need not follow each other. */
const lookFor = (numbers: readonly number[]): Need => ({
  kind: 'look',
  pages: numbers.map((from) => ({ from, limit: 1 })),
});

const isHeld = (view: HeldView, number: number): boolean => typeof view.at(number) === 'object';

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

const contradiction = (ref: StreamRef): TransientError =>
  new TransientError(
    'UNREADABLE_STATE',
    `what is held for the stream ${identifierHash(ref.key)} is not what its document counts: another program has changed it`,
  );
