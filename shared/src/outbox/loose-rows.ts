/**
 * Publishes rows without order, each under a lease of its own.
 *
 * The process that commits them has that lease from the commit on, so its fast path costs one read and one write, and a relay takes
 * only what it leaves behind. A crash after the publish is one copy more, under the same `dedupId`. A row that can never
 * be published is set aside as failed and holds up no other.
 */
import { bounded } from '../bounded.ts';
import { elapsedMs, momentOf } from '../clock.ts';
import { codeOf, textOf, TransientError } from '../errors.ts';
import { haltOf, pauseOf } from './decide.ts';
import { readable } from './large.ts';
import type { DrainPorts } from './stream-lease.ts';
import type { Row } from './rows.ts';
import { told, toldFailure } from './told.ts';

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

export type Loose = 'sent' | 'left' | 'failed';

/** `left`: another's, or not due. `failed`: not published this time, or never. Rejects when the store does not answer. */
export async function publishLoose(ports: DrainPorts, id: string): Promise<Loose> {
  const { store, clock, leaseMs, newId } = ports;
  const since = momentOf(clock);
  const claimed = await store.claim(id, newId(), leaseMs);
  // Without a lease, or with one that is over: another relay has the row, or may have it.
  if (claimed === undefined || elapsedMs(clock, since) >= leaseMs) return 'left';
  try {
    await publish(ports, claimed.row, claimed);
  } catch (error) {
    const failed = haltOf(0, error);
    const attempts = claimed.attempts + 1;
    const nextTryMs = claimed.nowMs + pauseOf(attempts, error, ports);
    await store.putOff(id, claimed.version, failed ?? { attempts, nextTryMs });
    const fields = { ...fieldsOf(id, error), attempts };
    if (failed === undefined)
      ports.log.warn('outbox: a row could not be published; it is tried again', fields);
    else ports.log.error('outbox: a row can never be published', { event: 'outbox_failed', ...fields });
    return 'failed';
  }
  await store.markSent([id]);
  return 'sent';
}

type Seen = Readonly<{ createdMs: number; nowMs: number }>;

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
    await bounded(clock, limitMs, async () => publisher.publish(await readable(row, payloads)), late);
  } catch (error) {
    toldFailure(error);
    throw error;
  }
  told(nowMs - createdMs + clock.monotonic() - began);
}

const fieldsOf = (row: string, error: unknown) => ({ row, code: codeOf(error), error: textOf(error) });
