/** Traces in this process's memory, in the transactions of a `memoryInbox`: for tests. They do not expire. */
import type { Clock } from '../clock.ts';
import type { MemoryInbox, MemoryTransaction } from '../dedup/inbox-memory.ts';
import { checkOptions, clock as aClock, port, required } from '../options.ts';
import {
  inOrder,
  rowName,
  type TraceEnd,
  type TraceHead,
  type TraceRow,
  type TraceStore,
} from './saga-traces.ts';

type End = Readonly<{ end: TraceEnd; endedAtMs: number }>;

/**
 * Throws ConfigError for an option that is not valid.
 *
 * @example
 * const traces = memoryTraces(memoryInbox({ clock }), { clock });
 */
export function memoryTraces(
  inbox: Pick<MemoryInbox, 'peek' | 'put'>,
  options: Readonly<{ clock: Clock }>,
): TraceStore<MemoryTransaction> {
  port(['peek', 'put'], 'an inbox in memory, for example memoryInbox({ clock })')('inbox', inbox);
  checkOptions<typeof options>(options, { clock: required(aClock) });
  const { clock } = options;
  const correlations = new Set<string>();
  const rows = new Map<string, Set<string>>();
  const began = (id: string): string => `trace-begin/${id}`;
  const ended = (id: string): string => `trace-end/${id}`;

  const headOf = (correlationId: string): TraceHead | undefined => {
    const beganAtMs = inbox.peek(began(correlationId)) as number | undefined;
    const end = inbox.peek(ended(correlationId)) as End | undefined;
    if (beganAtMs === undefined && end === undefined) return undefined;
    return { correlationId, ...(beganAtMs !== undefined && { beganAtMs }), ...end };
  };

  return {
    async isKnownIn(transaction, id) {
      const [beginning, end] = [await transaction.get(began(id)), await transaction.get(ended(id))];
      return beginning !== undefined || end !== undefined;
    },
    beginIn: (transaction, id) =>
      transaction.set(began(id), (atMs: number) => {
        correlations.add(id);
        return atMs;
      }),
    endIn: (transaction, id, end) =>
      transaction.set(ended(id), (endedAtMs: number): End => {
        correlations.add(id);
        return { end, endedAtMs };
      }),
    writeIn(transaction, row) {
      const name = `trace-row/${rowName(row)}`;
      transaction.set(name, (atMs: number): TraceRow => {
        const names = rows.get(row.correlationId) ?? new Set<string>();
        rows.set(row.correlationId, names.add(name));
        return { ...row, atMs };
      });
    },
    async read(id) {
      const found = [...(rows.get(id) ?? [])].map((name) => inbox.peek(name) as TraceRow);
      return { head: headOf(id), rows: inOrder(found) };
    },
    async open(olderMs, limit, after) {
      const heads = [...correlations]
        .map((id) => headOf(id))
        .filter((head): head is TraceHead & { beganAtMs: number } => head?.beganAtMs !== undefined)
        .filter(({ end, beganAtMs }) => end === undefined && beganAtMs <= clock.now() - olderMs)
        .map((head) => ({ head, token: `${String(head.beganAtMs).padStart(16, '0')}/${head.correlationId}` }))
        .filter(({ token }) => after === undefined || token > after)
        .toSorted((one, other) => (one.token < other.token ? -1 : 1));
      const page = heads.slice(0, limit);
      const next = heads.length > limit ? page.at(-1)?.token : undefined;
      return { items: page.map(({ head }) => head), ...(next !== undefined && { next }) };
    },
  };
}
