/**
 * The lease of a stream: acquired, renewed and released by writes under the version that its holder has seen.
 *
 * The lease is believed from the send of the last confirmed write, so it is over here before it is in the store. Google's
 * client repeats commits by itself, so a refusal may be one's own write: it is read once, and adopted if it is.
 */
import { type Clock, type Moment, momentOf } from '../clock.ts';
import type { Log } from '../log.ts';
import type { PayloadStore } from '../payload/payload-store.ts';
import type { Publisher } from '../publish/publisher.ts';
import { type Pauses, availabilityOf, type Availability, UNKNOWN } from './decide.ts';
import type { RelayStore, StreamState, StreamWrite } from './outbox-store.ts';
import type { StreamRef } from './rows.ts';

export type DrainPorts = Pauses &
  Readonly<{
    store: RelayStore;
    publisher: Publisher;
    payloads: PayloadStore | undefined;
    clock: Clock;
    log: Log;
    leaseMs: number;
    publishTimeoutMs: number;
    /** Rows read, and kept in memory, at a time. */
    pageSize: number;
    newId: () => string;
  }>;

export type Held = {
  owner: string;
  version: string;
  state: StreamState;
  /** When the last confirmed write was sent. */
  since: Moment;
  storeOffsetMs: number;
};

export type NotAcquired = Readonly<{ kind: Exclude<Availability, 'free'>; sent: number }>;

/** Refusals of one's own writes that are followed up. */
const ROUNDS = 3;

/** By a conditional write; a refusal that is one's own write applied is recognised by its owner. */
export async function acquire(
  { store, clock, leaseMs, newId }: DrainPorts,
  ref: StreamRef,
): Promise<Held | NotAcquired> {
  const owner = newId();
  const since = momentOf(clock);
  let view = await store.readStream(ref);
  for (let round = 0; ; round += 1) {
    const { state = UNKNOWN, version } = view;
    const isMine = state.owner === owner && version !== undefined;
    const availability = isMine ? 'free' : availabilityOf(view);
    if (availability !== 'free') return { kind: availability, sent: state.sent };
    const storeOffsetMs = view.nowMs - since.monotonicMs;
    if (isMine) return { owner, version, state, since, storeOffsetMs };
    if (round === ROUNDS) return { kind: 'busy', sent: state.sent };
    const acquired = { ...state, owner };
    const written = await store.writeStream(ref, version, { ...acquired, leaseMs }, []);
    if (written !== undefined) return { owner, version: written, state: acquired, since, storeOffsetMs };
    view = await store.readStream(ref);
  }
}

/** Whether it is recorded, and the stream as it is then held. False: another has taken it, or may have. */
export async function commit(
  { store, clock }: DrainPorts,
  ref: StreamRef,
  held: Held,
  write: StreamWrite,
  ids: readonly string[],
): Promise<boolean> {
  for (let round = 0; round < ROUNDS; round += 1) {
    const since = momentOf(clock);
    const written = await store.writeStream(ref, held.version, write, ids);
    if (written !== undefined) {
      Object.assign(held, { version: written, state: { ...write, untilMs: 0 } });
      if (write.owner !== undefined) held.since = since;
      return true;
    }
    const { state, version } = await store.readStream(ref);
    if (state === undefined || version === undefined) return false;
    if (state.owner !== held.owner) {
      // The release may have been applied before; the process that has it now goes on from there.
      return write.owner === undefined && state.owner === undefined && state.sent === write.sent;
    }
    if (state.sent === write.sent && ids.length > 0 && write.owner !== undefined) {
      // Applied, and its reply lost. The lease counts from the first time that it was sent at the latest.
      Object.assign(held, { version, state });
      return true;
    }
    held.version = version;
  }
  return false;
}

/** Rows behind a stream that is blocked or backs off leave the selection, and the stream takes their place in it. */
export async function park(
  { store }: Pick<DrainPorts, 'store'>,
  ref: StreamRef,
  rows: readonly Readonly<{ id: string; createdMs: number }>[],
): Promise<boolean> {
  const view = await store.readStream(ref);
  const { state, version } = view;
  if (state === undefined || version === undefined) return false;
  const availability = availabilityOf(view);
  if (availability !== 'waiting' && availability !== 'blocked') return false;
  const oldestMs = rows.reduce((least, { createdMs }) => Math.min(least, createdMs), Infinity);
  const { untilMs: _over, ...rest } = state;
  const write = { ...rest, owner: undefined, leaseMs: 0, parkedMs: state.parkedMs ?? oldestMs };
  const parked = rows.map(({ id }) => id);
  return (await store.writeStream(ref, version, write, [], { parked })) !== undefined;
}

/**
 * The stream is drained to its end. The write is made under the version from before that was read: a relay that parked
 * a row since then has changed it, and the stream stays selected.
 */
export async function unpark(
  { store }: Pick<DrainPorts, 'store'>,
  ref: StreamRef,
  { version, state }: Pick<Held, 'version' | 'state'>,
): Promise<boolean> {
  if (state.parkedMs === undefined) return false;
  const { untilMs: _free, ...rest } = state;
  const write = { ...rest, owner: undefined, leaseMs: 0, parkedMs: undefined };
  return (await store.writeStream(ref, version, write, [], { isOver: true })) !== undefined;
}
