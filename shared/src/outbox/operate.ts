/**
 * What somebody does about a stream that stands still. Both are one conditional write; a crash leaves all of it or nothing.
 */
import { storeUnavailable } from '../errors.ts';
import { next } from './decide.ts';
import type { RelayStore, StreamState, StreamWrite } from './outbox-store.ts';
import type { StreamRef } from './rows.ts';

type Change = Readonly<{ state: Partial<StreamWrite>; sent: readonly string[] }>;

/** Changes in between that are followed up. */
const ROUNDS = 10;

/** Whether the key was halted: it goes on with the row that halted it. */
export async function resume(store: RelayStore, key: string): Promise<boolean> {
  const change = async (state: StreamState) =>
    state.halted === undefined ? undefined : { state: {}, sent: [] };
  return (await changed(store, key, change)) !== undefined;
}

/** The last number that was given up: the one that halts the key, or those whose rows are missing. */
export async function skip(store: RelayStore, key: string): Promise<number | undefined> {
  const written = await changed(store, key, async (state, ref) => {
    const [row] = await store.after(ref, state.sent, 1);
    if (row !== undefined && next(row, state.sent) === 'missing') {
      return { state: { sent: row.place.after }, sent: [] };
    }
    const isHalted = row !== undefined && state.halted?.number === row.place.number;
    return isHalted ? { state: { sent: row.place.number }, sent: [row.id] } : undefined;
  });
  return written?.sent;
}

/** What was written; undefined when there was nothing to change. */
async function changed(
  store: RelayStore,
  key: string,
  change: (state: StreamState, ref: StreamRef) => Promise<Change | undefined>,
): Promise<StreamWrite | undefined> {
  const ref = await store.streamOf(key);
  if (ref === undefined) return undefined;
  for (let round = 0; round < ROUNDS; round += 1) {
    const { state, version } = await store.readStream(ref);
    const wanted = state && (await change(state, ref));
    if (state === undefined || wanted === undefined) return undefined;
    const { untilMs: _until, ...before } = state;
    const open = { halted: undefined, attempts: 0, nextTryMs: 0, owner: undefined, leaseMs: 0 };
    const write: StreamWrite = { ...before, ...open, ...wanted.state };
    if ((await store.writeStream(ref, version, write, wanted.sent)) !== undefined) return write;
  }
  throw storeUnavailable(
    `the stream of ${JSON.stringify(key.slice(0, 60))} changed ${ROUNDS} times in a row`,
  );
}
