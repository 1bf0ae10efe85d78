/**
 * Publishes the rows of one stream in their order, one publish outstanding. A relay's pass, a publisher's fast path
 * and the sweep all publish this way.
 *
 * The stream is leased, not its rows. What is confirmed is recorded in one commit with the lease's renewal; a publish of
 * unknown outcome ends the run, and its row is the first of the next one. A crash at any point leaves a lease that runs
 * out and rows that are published again under their `dedupId`; none is passed over, and none goes before another.
 */
import { withTimeLimit } from '../async/time-limit.ts';
import { elapsedMs } from '../clock.ts';
import { codeOf, PermanentError, textOf, TransientError } from '../errors.ts';
import type { Log } from '../log.ts';
import { released, next, type Availability } from './decide.ts';
import { load } from './large.ts';
import type { StreamRow, StreamWrite } from './outbox-store.ts';
import type { StreamRef } from './rows.ts';
import { commit, type DrainPorts, type Held, acquire, unpark } from './stream-lease.ts';
import { recordPublished, recordFailure } from './metrics.ts';

export type Drained = Readonly<{
  /** `drained`: nothing was left. `failed`: a row could not be published. `stopped`: the time or the lease was over. */
  kind: 'drained' | 'failed' | 'stopped' | Exclude<Availability, 'free'>;
  /** The last number that is known to be published. */
  sent: number;
  published: number;
  /** When the first row that was to be published had been committed. */
  createdMs?: number | undefined;
  /** The stream was selected in place of its rows, and is selected no more. */
  isOver?: boolean;
}>;

type Run = Readonly<{
  sent: number;
  ids: readonly string[];
  failure?: Readonly<{ number: number; error: unknown }>;
  /** Rows of the page were left for the next commit. */
  isCut: boolean;
}>;

/**
 * Rejects when the store does not answer: what was published until then is published again by the next one.
 * `progress` is called with what is published and recorded while more is to do.
 */
export async function drain(
  ports: DrainPorts,
  ref: StreamRef,
  signal: AbortSignal,
  progress: (sent: number) => void = () => {},
): Promise<Drained> {
  let published = 0;
  for (;;) {
    const { held, ...round } = await drainOnce(ports, ref, signal, progress);
    published += round.published;
    if (round.kind !== 'drained' || signal.aborted) return { ...round, published };
    // A publisher that committed a row while the stream was leased left it to the owner, which may have read before
    // that.
    if ((await ports.store.after(ref, round.sent, 1)).length === 0) {
      const isOver = held !== undefined && (await unpark(ports, ref, held));
      return { ...round, published, isOver };
    }
    progress(round.sent);
  }
}

async function drainOnce(
  ports: DrainPorts,
  ref: StreamRef,
  signal: AbortSignal,
  progress: (sent: number) => void,
): Promise<Drained & Readonly<{ held?: Held }>> {
  const { store, clock, leaseMs, pageSize } = ports;
  const held = await acquire(ports, ref);
  if ('kind' in held) return { ...held, published: 0 };
  let published = 0;
  let createdMs: number | undefined;
  for (;;) {
    // After a failure the first row is tried alone: the rows behind it need not be read again for that.
    const limit = held.state.attempts > 0 ? 1 : pageSize;
    const rows = await store.after(ref, held.state.sent, limit);
    createdMs ??= rows.find(({ isSent }) => !isSent)?.createdMs;
    const run = await publishRun(ports, rows, held, signal);
    published += run.ids.length;
    const isOver = signal.aborted || elapsedMs(clock, held.since) >= leaseMs;
    const isLast = run.failure !== undefined || isOver || (!run.isCut && rows.length < limit);
    const nowMs = storeTime(ports, held);
    const write: StreamWrite = isLast
      ? released(held.state, run.sent, run.failure, nowMs, ports)
      : { ...held.state, sent: run.sent, attempts: 0, nextTryMs: 0, leaseMs };
    if (run.failure !== undefined) report(ports.log, ref, run.failure, write);
    if (!(await commit(ports, ref, held, write, run.ids)))
      return { kind: 'stopped', sent: held.state.sent, published, createdMs };
    if (!isLast) {
      progress(run.sent);
      continue;
    }
    if (run.failure !== undefined)
      return {
        kind: write.blocked === undefined ? 'failed' : 'blocked',
        sent: run.sent,
        published,
        createdMs,
      };
    return { kind: isOver ? 'stopped' : 'drained', sent: run.sent, published, createdMs, held };
  }
}

/** Until the rows, the third of a lease, or the signal end, or a row cannot be published. */
async function publishRun(
  ports: DrainPorts,
  rows: readonly StreamRow[],
  held: Held,
  signal: AbortSignal,
): Promise<Run> {
  const { publisher, payloads, clock, leaseMs, publishTimeoutMs } = ports;
  const commitAt = clock.monotonic() + leaseMs / 3;
  const ids: string[] = [];
  // Of a stream that nothing is known of, what came before its first row has been sent and has expired.
  let sent = held.state.sent === 0 ? (rows[0]?.place.after ?? 0) : held.state.sent;
  for (const row of rows) {
    const leftMs = leaseMs - elapsedMs(clock, held.since);
    const isCut = signal.aborted || leftMs <= 0 || clock.monotonic() >= commitAt;
    if (isCut) return { sent, ids, isCut };
    const { number, after } = row.place;
    const step = next(row, sent);
    try {
      if (step === 'missing') throw missing(row, sent);
      if (step === 'publish' && row.problem !== undefined) throw row.problem;
      if (step === 'publish') {
        // Beyond the lease another may publish what comes after: its outcome would come too late to count.
        const limitMs = Math.min(publishTimeoutMs, leftMs);
        await withTimeLimit(
          clock,
          limitMs,
          async () => publisher.publish(await load(row, payloads)),
          () => timedOut(limitMs),
        );
        ids.push(row.id);
        recordPublished(storeTime(ports, held) - row.createdMs);
      }
    } catch (error) {
      recordFailure(error);
      return { sent, ids, failure: { number: step === 'missing' ? after : number, error }, isCut: true };
    }
    sent = number;
  }
  return { sent, ids, isCut: false };
}

function report(
  log: Log,
  ref: StreamRef,
  { number, error }: Readonly<{ number: number; error: unknown }>,
  { blocked, attempts }: StreamWrite,
): void {
  const fields = {
    sequenceKey: ref.key,
    sequence: number,
    attempts,
    code: codeOf(error),
    error: textOf(error),
  };
  if (blocked === undefined) log.warn('outbox: a row could not be published; its stream waits', fields);
  else
    log.error('outbox: a stream is blocked by a row that can never be published', {
      event: 'outbox_blocked',
      ...fields,
    });
}

const storeTime = ({ clock }: DrainPorts, { storeOffsetMs }: Held): number =>
  clock.monotonic() + storeOffsetMs;

/** Only an operator removes a pending row, and only an operator can say what follows. */
const missing = ({ place }: StreamRow, sent: number): PermanentError =>
  new PermanentError(
    'OUTBOX_ROW_MISSING',
    `the row of number ${place.after} is gone, and ${sent} is the last one published`,
  );
const timedOut = (ms: number): TransientError =>
  new TransientError('PUBLISH_TIMEOUT', `the publish was not confirmed within ${Math.ceil(ms)} ms`);
