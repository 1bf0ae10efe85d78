/**
 * A change of a stream that no batch makes: a skip, a resume, a mark. It reads, decides, and commits if the version
 * is unchanged; otherwise it reads again.
 *
 * A commit whose outcome is unknown is recognised by its ID: in the document, or, where another commit has covered it,
 * by the decision itself, which finds its own work done.
 */
import { TransientError } from '../errors.ts';
import type { StreamPolicy } from './options.ts';
import type { StreamFields, StreamState } from './stream-state.ts';
import type {
  HeldMessage,
  StreamChange,
  StreamDocument,
  StreamRef,
  StreamTransaction,
} from './stream-store.ts';

/** What a decision looks at: the stream's document, and the first message that is held behind `last`. */
export type Looked = Readonly<{ state: StreamState; nowMs: number; first: HeldMessage | undefined }>;

export type Decided<Result> = Readonly<{
  result: Result;
  /** Absent: nothing is written. */
  fields?: StreamFields;
  remove?: readonly number[];
}>;

/** So many commits are refused or stay unknown, and the change goes on in transactions, which queue up. */
const CONDITIONAL = 3;
const MOST = 6;
/** Longer than two calls of a store that does not answer; a sweep has other streams. */
const BUDGET_MS = 20_000;

/**
 * `decide` is pure, and is called again after each commit that was refused. Undefined where no message of the stream has
 * come. Rejects with what the store rejects with; nothing is known then.
 */
export async function decidedCommit<Result>(
  { store, clock, newId }: Pick<StreamPolicy, 'store' | 'clock' | 'newId'>,
  ref: StreamRef,
  decide: (looked: Looked) => Decided<Result>,
): Promise<Result | undefined> {
  const tried = new Map<string, Result>();

  type Planned = Readonly<{ result: Result | undefined; change?: StreamChange; state?: StreamState }>;
  const plan = async (
    { state, nowMs }: StreamDocument,
    held: (from: number, limit: number) => Promise<readonly HeldMessage[]>,
  ): Promise<Planned> => {
    if (state === undefined) return { result: undefined };
    if (tried.has(state.commit)) return { result: tried.get(state.commit) };
    const [first] = await held(state.last + 1, 1);
    const { result, fields, remove } = decide({ state, nowMs, first });
    if (fields === undefined) return { result };
    const patch = { ...fields, commit: newId() };
    tried.set(patch.commit, result);
    return { result, state, change: { patch, ...(remove !== undefined && { remove }) } };
  };

  const conditional = async (): Promise<Readonly<{ done: boolean; result: Result | undefined }>> => {
    const document = await store.read(ref);
    const { result, state, change } = await plan(document, (from, limit) => store.held(ref, from, limit));
    if (state === undefined || change === undefined) return { done: true, result };
    const version = await store.commit(ref, { version: document.version, state }, change);
    return { done: version !== undefined, result };
  };
  const transactional = async (): Promise<Readonly<{ done: boolean; result: Result | undefined }>> => {
    const work = async ({ read, held, commit }: StreamTransaction): Promise<Result | undefined> => {
      const { result, state, change } = await plan(await read(), held);
      if (state !== undefined && change !== undefined) commit(state, change);
      return result;
    };
    const { applied, result } = await store.transact(ref, work);
    return { done: applied, result };
  };

  const until = clock.monotonic() + BUDGET_MS;
  let failure: unknown = new TransientError('STREAM_BUSY', 'the stream changed with each try; try again');
  for (let turn = 0; turn < MOST; turn += 1) {
    try {
      const { done, result } = await (turn < CONDITIONAL ? conditional() : transactional());
      if (done) return result;
    } catch (error) {
      failure = error;
      // Only what was sent and has no answer is worth another look.
      if (tried.size === 0 || clock.monotonic() >= until) throw error;
    }
  }
  throw failure;
}
