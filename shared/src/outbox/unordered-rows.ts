/**
 * Publishes rows without order, each under a lease of its own, or a group of them under that of its first.
 *
 * The process that commits them has that lease from the commit on, so its fast path costs one read and one write, and a
 * relay takes only what it leaves behind. A crash after the publish is one copy more, under the same `dedupId`. A row
 * that can never be published is set aside as failed and delays only those behind it in its group.
 */
import { withTimeLimit } from '../async/time-limit.ts';
import { elapsedMs, momentOf } from '../clock.ts';
import { codeOf, textOf, TransientError } from '../errors.ts';
import { permanentFailureOf, pauseOf } from './decide.ts';
import { load } from './large.ts';
import type { ClaimedRow, Takeover } from './outbox-store.ts';
import type { DrainPorts } from './stream-lease.ts';
import type { Row } from './rows.ts';
import { recordPublished, recordFailure } from './metrics.ts';

/**
 * What the writer of the rows does after its commit. Their content is at hand, but not whether they were committed: a
 * transaction's function may have run again and decided otherwise. So the first is looked for: a commit has all or none.
 * Rejects when the store does not answer.
 */
export async function publishOwn(ports: DrainPorts, rows: readonly Row[]): Promise<void> {
  const [first] = rows;
  const seen = first && (await ports.store.look(first.id));
  if (seen === undefined) return;
  const answers = await Promise.allSettled(rows.map((row) => publish(ports, row, seen)));
  const sent: string[] = [];
  for (const [index, { id }] of rows.entries()) {
    const answer = answers[index];
    if (answer?.status === 'fulfilled') sent.push(id);
    else
      ports.log.warn(
        'outbox: a row could not be published; a relay does it later',
        fieldsOf(id, answer?.reason),
      );
  }
  if (sent.length > 0) await ports.store.markSent(sent);
}

export type UnorderedAnswer = 'sent' | 'left' | 'failed';

/** `left`: another's, or not due. `failed`: not published this time, or never. Rejects when the store does not answer. */
export async function publishUnordered(
  ports: DrainPorts,
  id: string,
  {
    signal,
    owner = ports.newId(),
    ...how
  }: Takeover & Readonly<{ signal?: AbortSignal; owner?: string }> = {},
): Promise<UnorderedAnswer> {
  const { store, clock, leaseMs } = ports;
  const since = momentOf(clock);
  const claimed = await store.claim(id, owner, leaseMs, how);
  // Without a lease, or with one that is over: another relay has the row, or may have it.
  const isOver = (): boolean => signal?.aborted === true || elapsedMs(clock, since) >= leaseMs;
  if (claimed === undefined || isOver()) return 'left';
  const run = await publishRun(ports, claimed.row, claimed, isOver);
  if (run.at === undefined) {
    await (claimed.row.group === undefined ? store.markSent(run.done) : store.remove(run.done));
    return 'sent';
  }
  const nowMs = claimed.nowMs + elapsedMs(clock, since);
  await setAside(ports, { ...claimed, nowMs }, { ...run, at: run.at });
  return run.isFailed ? 'failed' : 'left';
}

/**
 * A group whose writer has just committed it and has its content. Answers what it could not publish the rest for; what
 * is left is due again later. Never rejects: what is not recorded is published again.
 */
export async function publishOwnGroup(
  ports: DrainPorts,
  rows: readonly Row[],
  signal: AbortSignal,
): Promise<unknown> {
  const [head] = rows;
  if (head === undefined) return undefined;
  const seen = { createdMs: 0, nowMs: 0 };
  const run = await publishAll(ports, rows, seen, () => signal.aborted);
  const { at } = run;
  try {
    if (at === undefined) await ports.store.remove(run.done);
    else {
      const { nowMs } = (await ports.store.look(head.id)) ?? {};
      if (nowMs !== undefined) await setAside(ports, { row: head, attempts: 0, nowMs }, { ...run, at });
    }
  } catch (error) {
    const fields = { rows: run.done.length, error: textOf(error) };
    const text = 'published messages stay in the outbox and will be published again';
    ports.log.warn(text, { event: 'outbox_not_removed', ...fields });
  }
  return at === undefined ? undefined : (run.error ?? signal.reason ?? new Error('aborted'));
}

type Seen = Readonly<{ createdMs: number; nowMs: number }>;

type Run = Readonly<{
  done: readonly string[];
  /** The row that is not published. Absent: all are. */
  at?: Row;
  isFailed: boolean;
  error?: unknown;
}>;

/** The row and, page by page, the rows behind it in its group. */
async function publishRun(ports: DrainPorts, row: Row, seen: Seen, isOver: () => boolean): Promise<Run> {
  const done: string[] = [];
  for (let rows: readonly Row[] = [row]; rows.length > 0; ) {
    const run = await publishAll(ports, rows, seen, isOver);
    done.push(...run.done);
    if (run.at !== undefined) return { ...run, done };
    const last = done.at(-1);
    if (row.group === undefined || last === undefined) break;
    rows = await ports.store.behind(row.group, last, ports.pageSize);
  }
  return { done, isFailed: false };
}

async function publishAll(
  ports: DrainPorts,
  rows: readonly Row[],
  seen: Seen,
  isOver: () => boolean,
): Promise<Run> {
  const done: string[] = [];
  for (const row of rows) {
    if (isOver()) return { done, at: row, isFailed: false };
    try {
      await publish(ports, row, seen);
    } catch (error) {
      return { done, at: row, isFailed: true, error };
    }
    done.push(row.id);
  }
  return { done, isFailed: false };
}

/** `at` waits, for itself and those behind it; those before it are published. */
async function setAside(
  ports: DrainPorts,
  { row, version, attempts: before, nowMs }: Omit<ClaimedRow, 'createdMs' | 'version'> & { version?: string },
  { done, at, isFailed, error }: Run & { at: Row },
): Promise<void> {
  const { store, log } = ports;
  const group = at.id === row.id ? undefined : { removed: done, next: at.id };
  if (!isFailed) return store.reschedule(row.id, version, { attempts: before, nextTryMs: 0 }, group);
  const failed = permanentFailureOf(0, error);
  const attempts = (at.id === row.id ? before : 0) + 1;
  const nextTryMs = nowMs + pauseOf(attempts, error, ports);
  await store.reschedule(row.id, version, failed ?? { attempts, nextTryMs }, group);
  const fields = { ...fieldsOf(at.id, error), attempts };
  if (failed === undefined) log.warn('outbox: a row could not be published; it is tried again', fields);
  else log.error('outbox: a row can never be published', { event: 'outbox_failed', ...fields });
}

async function publish(
  { publisher, payloads, clock, leaseMs, publishTimeoutMs }: DrainPorts,
  row: Row,
  { createdMs, nowMs }: Seen,
): Promise<void> {
  const began = clock.monotonic();
  const limitMs = Math.min(publishTimeoutMs, leaseMs);
  const late = (): TransientError =>
    new TransientError('PUBLISH_TIMEOUT', `the publish was not confirmed within ${limitMs} ms`);
  try {
    await withTimeLimit(clock, limitMs, async () => publisher.publish(await load(row, payloads)), late);
  } catch (error) {
    recordFailure(error);
    throw error;
  }
  recordPublished(nowMs - createdMs + clock.monotonic() - began);
}

const fieldsOf = (row: string, error: unknown) => ({ row, code: codeOf(error), error: textOf(error) });
