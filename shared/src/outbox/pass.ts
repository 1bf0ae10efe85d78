/**
 * One pass over everything that is pending, whoever left it behind.
 *
 * Rows are selected by their state, from a stored bound that never passes one that is pending: a row that is committed
 * late is not missed, however long all relays were down. A pass goes to the end, so the rows of a halted stream hide
 * nobody, and neither do those of a long one: it has one turn at a time. A pass that dies has moved nothing.
 */
import { drain, type Drained } from './drain.ts';
import { type Loose, publishLoose } from './loose-rows.ts';
import type { PendingRow } from './outbox-store.ts';
import { inParallel, type PassContext, tried, within } from './pass-work.ts';
import type { StreamRef } from './rows.ts';
import type { DrainPorts } from './stream-lease.ts';
import { toldPass } from './told.ts';

export type PassResult = Readonly<{
  /** Rows that were pending when they were seen. */
  pending: number;
  published: number;
  /** Streams and rows without order that could not be published, or whose store did not answer. */
  failed: number;
  /** Streams that are halted by a row that can never be published. */
  halted: number;
  /** Whether everything was looked at; otherwise the time was over. */
  isWhole: boolean;
}>;

/**
 * Firestore ends a transaction after 270 s: https://cloud.google.com/firestore/quotas#writes_and_transactions. What is
 * not visible in a read may be stamped so much earlier at most; more than that, for rounding.
 */
const LAG_MS = 300_000;
/** The bound is written when it moves by so much, not with each pass. */
const STEP_MS = 60_000;
const PAGE = 200;
/** How long a stream is drained before others have their turn. */
const TURN_MS = 10_000;

type Total = { -readonly [Field in keyof PassResult]: PassResult[Field] };

type Stream = {
  readonly ref: StreamRef;
  /** The last number that this pass has seen: a stream that goes on growing is left to the next one. */
  upTo: number;
  sent: number;
  /** Its turn was over before its rows were. */
  isCut: boolean;
};

/** Rejects with STORE_UNAVAILABLE when the store cannot be asked. */
export async function passOver(ports: DrainPorts, context: PassContext): Promise<PassResult> {
  const { store, clock, log } = ports;
  const { signal, deadline = Infinity } = context;
  const total: Total = { pending: 0, published: 0, failed: 0, halted: 0, isWhole: false };
  const isOver = (): boolean => signal.aborted || clock.monotonic() >= deadline;
  const streams = new Map<string, Stream>();
  const loose = new Map<string, Loose | undefined>();
  const failed = (): void => void (total.failed += 1);

  const relayStream = async (stream: Stream): Promise<void> => {
    stream.isCut = false;
    const { ref } = stream;
    const turn = (limited: AbortSignal): Promise<Drained> => drain(ports, ref, limited);
    const drained = await tried(log, { sequenceKey: ref.key }, failed, () =>
      within(clock, context, TURN_MS, turn),
    );
    if (drained === undefined) return;
    // A turn in which nothing was published is not tried again: the store is slow, or gone.
    stream.isCut = drained.kind === 'stopped' && drained.sent > stream.sent;
    stream.sent = Math.max(stream.sent, drained.sent);
    total.published += drained.published;
    if (drained.kind === 'failed') total.failed += 1;
    if (drained.kind === 'halted') total.halted += 1;
  };
  const relayRow = async (id: string): Promise<void> => {
    const how = await tried(log, { row: id }, failed, () => publishLoose(ports, id));
    loose.set(id, how);
    if (how === 'sent') total.published += 1;
    if (how === 'failed') total.failed += 1;
  };
  const jobOf = ({ id, place, problem }: PendingRow): (() => Promise<unknown>) | undefined => {
    if (problem !== undefined) return () => tried(log, { row: id }, failed, () => Promise.reject(problem));
    if (place === undefined) return () => relayRow(id);
    const known = streams.get(nameOf(place));
    if (known !== undefined) {
      known.upTo = Math.max(known.upTo, place.number);
      return undefined;
    }
    const stream = { ref: place, upTo: place.number, sent: 0, isCut: false };
    streams.set(nameOf(place), stream);
    return () => relayStream(stream);
  };
  const isSent = ({ id, place }: PendingRow): boolean =>
    place === undefined ? loose.get(id) === 'sent' : (streams.get(nameOf(place))?.sent ?? 0) >= place.number;

  const from = await store.bound();
  let bound = Infinity;
  let oldestMs: number | undefined;
  let cursor: string | undefined;
  do {
    const page = await store.pending(from, cursor, PAGE);
    bound = Math.min(bound, page.readMs - LAG_MS);
    oldestMs ??= page.readMs - (page.rows[0]?.createdMs ?? page.readMs);
    await inParallel(page.rows.map(jobOf), isOver);
    total.pending += page.rows.length;
    for (const row of page.rows) if (!isSent(row)) bound = Math.min(bound, row.createdMs);
    loose.clear();
    cursor = page.next;
    // What comes behind was not looked at, and is not older than what was.
    if (cursor !== undefined && isOver()) bound = Math.min(bound, page.rows.at(-1)?.createdMs ?? from);
  } while (cursor !== undefined && !isOver());
  const unfinished = (): Stream[] =>
    [...streams.values()].filter(({ isCut, sent, upTo }) => isCut && sent < upTo);
  for (let rest = unfinished(); rest.length > 0 && !isOver(); rest = unfinished()) {
    await inParallel(
      rest.map((stream) => () => relayStream(stream)),
      isOver,
    );
  }
  total.isWhole = cursor === undefined && !isOver();
  if (total.isWhole) toldPass(total.halted, oldestMs);
  if (bound >= from + STEP_MS) await store.raiseBound(bound);
  return total;
}

const nameOf = ({ key, epoch }: StreamRef): string => JSON.stringify([key, epoch]);
