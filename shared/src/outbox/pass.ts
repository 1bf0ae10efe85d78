/**
 * One pass over all pending rows that are due, whichever process committed them.
 *
 * Pending rows are selected by when they are due, shard by shard, from a stored bound that never passes a selected row:
 * a row that is committed late is not missed, however long all relays were down. A row that a pass could not publish is
 * due again later, behind the rest; rows behind a stream that is blocked or backs off leave the selection, and the
 * stream takes their place. So a pass begins with the rows that were not tried for longest. A long stream has one turn
 * at a time. A pass that dies has moved nothing but what it published or rescheduled.
 */
import { codeOf } from '../errors.ts';
import { drain, type Drained } from './drain.ts';
import { type UnorderedAnswer, publishUnordered } from './unordered-rows.ts';
import type { PendingRow } from './outbox-store.ts';
import { inParallel, type PassContext, attempt, withinPass } from './pass-work.ts';
import type { StreamRef } from './rows.ts';
import { type DrainPorts, park } from './stream-lease.ts';
import type { Swept, Tally } from '../sweep.ts';
import { recordPass } from './metrics.ts';

/** `due`: rows that were pending and due when they were seen, and streams that were tried in place of theirs. */
type Blocked = {
  /** Streams that are blocked by a row that can never be published. */
  blocked: number;
};
/**
 * `done`: messages that were published; those that one delivery of the inbox left behind count as one. `failed`:
 * streams and rows without order that could not be published, or whose store did not answer.
 */
export type OutboxSwept = Swept<Blocked>;

/**
 * Of each waiting row or stream: when it was committed, and until when it counts as waiting although no pass sees it.
 */
export type Waiting = Map<string, Readonly<{ createdMs: number; untilMs: number }>>;

/**
 * Firestore ends a transaction after 270 s: https://cloud.google.com/firestore/quotas#writes_and_transactions. A row
 * that is not visible in a read yet may be stamped so much earlier at most; the rest is for rounding.
 */
const LAG_MS = 300_000;
/** The bound is written when it moves by so much, not with each pass. */
const STEP_MS = 60_000;
/** Rows that are read at a time, of all shards together, and the fewest of one. */
const PAGES = 400;
const LEAST_PAGE = 25;
/** How long a stream is drained before other streams are. */
const TURN_MS = 10_000;
/** A row that cannot be read waits for a deployment that can. */
const UNREADABLE_PAUSE_MS = 600_000;
/** Rows that leave the selection in one commit. */
const PARKED_AT_ONCE = 400;

type Stream = {
  readonly ref: StreamRef;
  /** The last number that this pass has seen: a stream that goes on growing is left to the next one. */
  upTo: number;
  sent: number;
  /** Its turn ended before all of its rows were published. */
  isCut: boolean;
  /** How its last turn ended. Undefined: with an error, or it has had none. */
  kind: Drained['kind'] | undefined;
  isUnreadable: boolean;
  isOver: boolean;
  /** When the first row of its last turn was committed. */
  createdMs: number | undefined;
};

/** How far a shard was read. */
type Reading = { after: string | undefined; lastMs: number };

/** Rejects with STORE_UNAVAILABLE when the store cannot be asked. */
export async function passOver(
  ports: DrainPorts,
  context: PassContext,
  waiting: Waiting = new Map(),
): Promise<OutboxSwept> {
  const { store, clock, log, retryMaxMs } = ports;
  const { signal, deadline = Infinity } = context;
  const total: Tally<Blocked> = { due: 0, done: 0, failed: 0, isWhole: false, blocked: 0 };
  const isOver = (): boolean => signal.aborted || clock.monotonic() >= deadline;
  const streams = new Map<string, Stream>();
  const unordered = new Map<string, UnorderedAnswer | undefined>();
  const moved = new Set<string>();
  const unreadable = new Set<string>();
  const failed = (): void => void (total.failed += 1);
  const streamOf = ({ place, stream = place }: PendingRow): Stream | undefined =>
    stream && streams.get(nameOf(stream));

  const relayStream = async (stream: Stream): Promise<void> => {
    stream.isCut = false;
    const { ref } = stream;
    const turn = (limited: AbortSignal): Promise<Drained> => drain(ports, ref, limited);
    const drained = await attempt(
      log,
      { sequenceKey: ref.key },
      (error) => {
        failed();
        stream.isUnreadable = isUnreadable(error);
      },
      () => withinPass(clock, context, TURN_MS, turn),
    );
    stream.kind = drained?.kind;
    stream.isOver = drained?.isOver === true;
    stream.createdMs = drained?.createdMs;
    if (drained === undefined) return;
    // A turn in which nothing was published is not tried again: the store is slow, or gone.
    stream.isCut = drained.kind === 'stopped' && drained.sent > stream.sent;
    stream.sent = Math.max(stream.sent, drained.sent);
    total.done += drained.published;
    if (drained.kind === 'failed') total.failed += 1;
  };
  const relayRow = async (id: string): Promise<void> => {
    const fails = (error: unknown): void => {
      failed();
      if (isUnreadable(error)) unreadable.add(id);
    };
    const how = await attempt(log, { row: id }, fails, () => publishUnordered(ports, id, { signal }));
    unordered.set(id, how);
    if (how === 'sent') total.done += 1;
    if (how === 'failed') total.failed += 1;
  };
  const refuse = (problem: Error) => attempt(log, {}, failed, () => Promise.reject(problem));
  const jobOf = (row: PendingRow, readMs: number): (() => Promise<unknown>) | undefined => {
    const { id, place, stream: ref = place, problem } = row;
    if (problem !== undefined) return () => refuse(problem);
    if (ref === undefined) return row.freeMs > readMs ? undefined : () => relayRow(id);
    const known = streams.get(nameOf(ref));
    if (known !== undefined) {
      known.upTo = Math.max(known.upTo, place?.number ?? 0);
      return undefined;
    }
    const upTo = place?.number ?? 0;
    const stream = {
      ref,
      upTo,
      sent: 0,
      isCut: false,
      kind: undefined,
      isUnreadable: false,
      isOver: false,
      createdMs: undefined,
    };
    streams.set(nameOf(ref), stream);
    return () => relayStream(stream);
  };

  /** Rows that would stay first in the selection for ever, unless they are deferred. */
  const deferUnreadable = async (rows: readonly PendingRow[], readMs: number): Promise<void> => {
    const stuck = rows.filter(
      (row) => row.problem !== undefined || unreadable.has(row.id) || streamOf(row)?.isUnreadable,
    );
    await inParallel(
      stuck.map((row) => async () => {
        await attempt(log, { row: row.id }, failed, () => store.defer(row, readMs + UNREADABLE_PAUSE_MS));
      }),
    );
  };
  const parkBlocked = async (rows: readonly PendingRow[]): Promise<void> => {
    const behind = new Map<Stream, PendingRow[]>();
    for (const row of rows) {
      const stream = row.place && streamOf(row);
      if (stream === undefined || !isBlocked(stream) || (row.place?.number ?? 0) <= stream.sent) continue;
      behind.set(stream, [...(behind.get(stream) ?? []), row]);
    }
    await inParallel(
      [...behind].map(([{ ref }, all]) => async () => {
        for (let from = 0; from < all.length; from += PARKED_AT_ONCE) {
          const some = all.slice(from, from + PARKED_AT_ONCE);
          const fields = { sequenceKey: ref.key };
          if ((await attempt(log, fields, failed, () => park(ports, ref, some))) !== true) return;
          for (const { id } of some) moved.add(id);
        }
      }),
    );
  };
  const isDone = (row: PendingRow): boolean => {
    const stream = streamOf(row);
    if (row.stream !== undefined) return stream?.kind === 'drained';
    if (row.place !== undefined) return (stream?.sent ?? 0) >= row.place.number;
    return unordered.get(row.id) === 'sent';
  };
  /**
   * A row that may still be where this pass saw it keeps the bound below it. Only after a failure is it known that a
   * stream is selected later, or no more.
   */
  const isGone = (row: PendingRow): boolean => {
    if (row.stream !== undefined) {
      const stream = streamOf(row);
      return stream !== undefined && (stream.isOver || stream.kind === 'failed' || stream.kind === 'blocked');
    }
    return isDone(row) || moved.has(row.id) || unordered.get(row.id) === 'failed';
  };
  const createdMsOf = (row: PendingRow): number | undefined => {
    const stream = row.stream && streamOf(row);
    const isTried = stream?.kind !== undefined && stream.kind !== 'waiting' && stream.kind !== 'busy';
    return isTried ? stream.createdMs : row.createdMs;
  };
  const remember = (row: PendingRow, readMs: number): void => {
    const name = row.place ?? row.stream;
    const key = name === undefined ? row.id : nameOf(name);
    if (isDone(row)) return void waiting.delete(key);
    waiting.set(key, { createdMs: createdMsOf(row) ?? row.createdMs, untilMs: readMs + retryMaxMs });
  };
  let oldestMs = 0;

  const from = await store.bound();
  let bound = Infinity;
  let readMs = 0;
  let startMs: number | undefined;
  const limit = Math.max(Math.ceil(PAGES / store.shards), LEAST_PAGE);
  const open = new Map<number, Reading>();
  for (let shard = 0; shard < store.shards; shard += 1) open.set(shard, { after: undefined, lastMs: from });
  do {
    const pages = await Promise.all(
      [...open].map(
        async ([shard, { after }]) => [shard, await store.pending(shard, from, after, limit)] as const,
      ),
    );
    for (const [, page] of pages) readMs = Math.max(readMs, page.readMs);
    if (startMs === undefined) startMs = readMs;
    // Rows that were not tried for longest come first, whatever their shard. Rows that became due since this pass began
    // are left to the next pass.
    const rows = pages
      .flatMap(([, page]) => page.rows)
      .filter(({ dueMs }) => dueMs <= (startMs ?? readMs))
      .toSorted((left, right) => left.dueMs - right.dueMs);
    await inParallel(
      rows.map((row) => jobOf(row, readMs)),
      isOver,
    );
    await parkBlocked(rows);
    await deferUnreadable(rows, readMs);
    total.due += rows.length;
    for (const row of rows) {
      if (!isGone(row)) bound = Math.min(bound, row.dueMs);
      const createdMs = createdMsOf(row);
      if (createdMs !== undefined) oldestMs = Math.max(oldestMs, readMs - createdMs);
      remember(row, readMs);
    }
    unordered.clear();
    for (const [shard, page] of pages) {
      bound = Math.min(bound, page.readMs - LAG_MS);
      const lastMs = page.rows.at(-1)?.dueMs ?? from;
      if (page.next === undefined || lastMs > startMs) open.delete(shard);
      else open.set(shard, { after: page.next, lastMs });
    }
  } while (open.size > 0 && !isOver());
  // Rows behind the last page were not read: they are due no earlier than the rows of that page.
  for (const { lastMs } of open.values()) bound = Math.min(bound, lastMs);

  const unfinished = (): Stream[] =>
    [...streams.values()].filter(({ isCut, sent, upTo }) => isCut && sent < upTo);
  for (let rest = unfinished(); rest.length > 0 && !isOver(); rest = unfinished()) {
    await inParallel(
      rest.map((stream) => () => relayStream(stream)),
      isOver,
    );
  }
  total.isWhole = open.size === 0 && !isOver();
  total.blocked = await store.countBlocked();
  if (total.isWhole) recordPass(total.blocked, Math.max(oldestMs, oldestOf(waiting, readMs)));
  if (bound >= from + STEP_MS) await store.raiseBound(bound);
  return total;
}

/** It is blocked or backs off: its rows need not be seen. */
const isBlocked = ({ kind }: Stream): boolean => kind !== undefined && BLOCKED.has(kind);
const BLOCKED: ReadonlySet<Drained['kind']> = new Set(['failed', 'waiting', 'blocked']);

/** How long what waits has waited. What was to be seen again by now and was not is done by another. */
function oldestOf(waiting: Waiting, nowMs: number): number {
  for (const [name, { untilMs }] of waiting) if (untilMs < nowMs) waiting.delete(name);
  const created = [...waiting.values()].map(({ createdMs }) => createdMs);
  return created.length === 0 ? 0 : nowMs - created.reduce((least, one) => Math.min(least, one));
}

const isUnreadable = (error: unknown): boolean => codeOf(error) === 'UNREADABLE_ROW';

const nameOf = ({ key, epoch }: StreamRef): string => JSON.stringify([key, epoch]);
