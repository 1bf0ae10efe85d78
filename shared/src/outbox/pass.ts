/**
 * One pass over everything that is pending, whoever left it behind.
 *
 * Rows are selected by their state, from a stored bound that never passes one that is pending: a row that is committed
 * late is not missed, however long all relays were down. A pass goes to the end, so the rows of a halted stream hide
 * nobody. A pass that dies has moved nothing.
 */
import { codeOf, textOf } from '../errors.ts';
import { drain, type Drained } from './drain.ts';
import { type Loose, publishLoose } from './loose-rows.ts';
import type { PendingRow } from './outbox-store.ts';
import type { StreamRef } from './rows.ts';
import type { DrainPorts } from './stream-lease.ts';

export type PassContext = Readonly<{
  signal: AbortSignal;
  /** Monotonic instant at which the pass ends. Default: none. */
  deadline?: number;
}>;

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
/** Streams, and rows without order, at work at once. */
const CONCURRENCY = 8;

type Total = { -readonly [Field in keyof PassResult]: PassResult[Field] };

/** Rejects with STORE_UNAVAILABLE when the store cannot be asked. */
export async function passOver(
  ports: DrainPorts,
  { signal, deadline = Infinity }: PassContext,
): Promise<PassResult> {
  const { store, clock, log } = ports;
  const total: Total = { pending: 0, published: 0, failed: 0, halted: 0, isWhole: false };
  const isOver = (): boolean => signal.aborted || clock.monotonic() >= deadline;
  const streams = new Map<string, Drained | undefined>();

  const attempt = async <Result>(fields: Record<string, string>, work: () => Promise<Result>) => {
    try {
      return await work();
    } catch (error) {
      total.failed += 1;
      log.warn('outbox: not relayed; the next pass tries again', {
        ...fields,
        code: codeOf(error),
        error: textOf(error),
      });
      return undefined;
    }
  };
  const relayStream = async (name: string, ref: StreamRef): Promise<void> => {
    const drained = await attempt({ sequenceKey: ref.key }, () => drain(ports, ref, signal));
    streams.set(name, drained);
    total.published += drained?.published ?? 0;
    if (drained?.kind === 'failed') total.failed += 1;
    if (drained?.kind === 'halted') total.halted += 1;
  };
  const loose = new Map<string, Loose | undefined>();
  const relayRow = async (id: string): Promise<void> => {
    const how = await attempt({ row: id }, () => publishLoose(ports, id));
    loose.set(id, how);
    if (how === 'sent') total.published += 1;
    if (how === 'failed') total.failed += 1;
  };
  const isSent = ({ id, place }: PendingRow): boolean =>
    place === undefined ? loose.get(id) === 'sent' : (streams.get(nameOf(place))?.sent ?? 0) >= place.number;

  const from = await store.bound();
  let bound = Infinity;
  let cursor: string | undefined;
  do {
    const page = await store.pending(from, cursor, PAGE);
    bound = Math.min(bound, page.readMs - LAG_MS);
    const jobs: (() => Promise<void>)[] = [];
    for (const { id, place } of page.rows) {
      if (place === undefined) jobs.push(() => relayRow(id));
      else if (!streams.has(nameOf(place))) {
        streams.set(nameOf(place), undefined);
        jobs.push(() => relayStream(nameOf(place), place));
      }
    }
    await inParallel(jobs, isOver);
    total.pending += page.rows.length;
    for (const row of page.rows) if (!isSent(row)) bound = Math.min(bound, row.createdMs);
    loose.clear();
    cursor = page.next;
    total.isWhole = cursor === undefined && !isOver();
    // What comes behind was not looked at, and is not older than what was.
    if (cursor !== undefined && isOver()) bound = Math.min(bound, page.rows.at(-1)?.createdMs ?? from);
  } while (cursor !== undefined && !isOver());
  if (bound >= from + STEP_MS) await store.raiseBound(bound);
  return total;
}

const nameOf = ({ key, epoch }: StreamRef): string => JSON.stringify([key, epoch]);

async function inParallel(jobs: readonly (() => Promise<void>)[], isOver: () => boolean): Promise<void> {
  const queue = jobs.values();
  const work = async (): Promise<void> => {
    for (const job of queue) {
      if (isOver()) return;
      await job();
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, jobs.length) }, work));
}
