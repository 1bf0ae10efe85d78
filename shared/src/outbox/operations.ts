/**
 * What an operator does about a blocked stream. Both are one conditional write; a crash leaves all of it or nothing.
 */
import { PermanentError, storeUnavailable } from '../errors.ts';
import { identifierHash } from '../hash.ts';
import { next } from './decide.ts';
import type { RelayStore, StreamState, StreamWrite } from './outbox-store.ts';
import type { StreamRef } from './rows.ts';

type Change = Readonly<{ state: Partial<StreamWrite>; sent: readonly string[] }>;

/** Changes in between that are followed up. */
const ROUNDS = 10;

/** Whether the stream was blocked: it goes on with the row that blocked it. */
export async function resume(store: RelayStore, stream: string | StreamRef): Promise<boolean> {
  const change = async (state: StreamState) =>
    state.blocked === undefined ? undefined : { state: {}, sent: [] };
  return (await changed(store, stream, change)) !== undefined;
}

/**
 * Answers the last number that was skipped: the one that blocks the stream, or those whose rows are missing. Where
 * `number` is given and the stream is not blocked at it, nothing is skipped: PermanentError where it is yet to be
 * published.
 */
export async function skip(
  store: RelayStore,
  stream: string | StreamRef,
  number?: number,
): Promise<number | undefined> {
  const written = await changed(store, stream, async (state, ref) => {
    if (number !== undefined && number <= state.sent) return undefined;
    const [row] = await store.after(ref, state.sent, 1);
    const isMissing = row !== undefined && next(row, state.sent) === 'missing';
    const at = isMissing ? row.place.after : row?.place.number;
    const isBlocked = isMissing || (at !== undefined && state.blocked?.number === at);
    if (number !== undefined && (!isBlocked || at !== number))
      throw notThere(ref, number, isBlocked ? at : undefined);
    if (!isBlocked || at === undefined) return undefined;
    return { state: { sent: at }, sent: isMissing || row === undefined ? [] : [row.id] };
  });
  return written?.sent;
}

/** What was written; undefined when there was nothing to change. */
async function changed(
  store: RelayStore,
  stream: string | StreamRef,
  change: (state: StreamState, ref: StreamRef) => Promise<Change | undefined>,
): Promise<StreamWrite | undefined> {
  const ref = typeof stream === 'string' ? await store.streamOf(stream) : stream;
  if (ref === undefined) return undefined;
  for (let round = 0; round < ROUNDS; round += 1) {
    const { state, version } = await store.readStream(ref);
    const wanted = state && (await change(state, ref));
    if (state === undefined || wanted === undefined) return undefined;
    const { untilMs: _until, ...before } = state;
    const open = { blocked: undefined, attempts: 0, nextTryMs: 0, owner: undefined, leaseMs: 0 };
    const write: StreamWrite = { ...before, ...open, ...wanted.state };
    if ((await store.writeStream(ref, version, write, wanted.sent)) !== undefined) return write;
  }
  throw storeUnavailable(`the stream of ${shown(ref)} changed ${ROUNDS} times in a row`);
}

const notThere = (ref: StreamRef, number: number, at: number | undefined): PermanentError =>
  new PermanentError(
    'STREAM_NOT_BLOCKED',
    `the stream of ${shown(ref)} is not blocked at ${number}; accepted: ` +
      (at === undefined ? 'the number at which it is blocked, and it is not now' : `${at}`),
  );

const shown = ({ key }: StreamRef): string => identifierHash(key);
