/**
 * What the relay reads and writes, over the documents in memory.
 */
import type { Clock } from '../clock.ts';
import type { MemoryRow, Table } from './memory-table.ts';
import type { Network } from './memory.ts';
import type { Head, RelayStore, StreamRow, StreamState } from './outbox-store.ts';
import type { StreamRef } from './rows.ts';

const STREAM = 'stream/';
const BOUND = 'bound';

export function memoryRelayStore(table: Table, clock: Clock, network: Network): RelayStore {
  const nameOf = ({ key, epoch }: StreamRef): string => STREAM + JSON.stringify([key, epoch]);
  const rowOf = (id: string): MemoryRow | undefined => table.get(`row/${id}`)?.value as MemoryRow | undefined;
  const sent = (ids: readonly string[]): void => {
    for (const id of ids) {
      const row = rowOf(id);
      if (row !== undefined) table.put(`row/${id}`, { ...row, state: 'sent', owner: undefined });
    }
  };
  const now = (): number => clock.now();
  const change = (id: string, version: string, fields: Partial<MemoryRow>): void => {
    const found = table.get(`row/${id}`);
    if (found === undefined || String(found.version) !== version) return;
    table.put(`row/${id}`, { ...(found.value as MemoryRow), owner: undefined, ...fields });
  };

  return {
    readStream: (ref) =>
      network('stream', async () => {
        const found = table.get(nameOf(ref));
        const state = found?.value as StreamState | undefined;
        return { state, version: found === undefined ? undefined : String(found.version), nowMs: now() };
      }),
    writeStream: (ref, version, { leaseMs, ...state }, ids) =>
      network(nameOfWrite(state.owner, ids), async () => {
        const found = table.get(nameOf(ref));
        if ((found === undefined ? undefined : String(found.version)) !== version) return undefined;
        if (ids.some((id) => rowOf(id) === undefined)) return undefined;
        sent(ids);
        const untilMs = state.owner === undefined ? 0 : now() + leaseMs;
        return String(table.put(nameOf(ref), { ...state, untilMs }));
      }),
    after: (ref, number, limit) =>
      network('after', async () =>
        table
          .rows()
          .flatMap(({ row, state, createdMs }): StreamRow[] => {
            const { place } = row;
            if (place === undefined || place.key !== ref.key || place.epoch !== ref.epoch) return [];
            return place.number > number ? [{ ...row, place, createdMs, isSent: state === 'sent' }] : [];
          })
          .toSorted((left, right) => left.place.number - right.place.number)
          .slice(0, limit),
      ),
    streamOf: (key) =>
      network('counter', async () => {
        const head = table.get(`counter/${key}`)?.value as Head | undefined;
        return head === undefined ? undefined : { key, epoch: head.epoch };
      }),
    bound: () => network('bound', async () => Number(table.get(BOUND)?.value ?? 0)),
    raiseBound: (boundMs) =>
      network('raise', async () => {
        if (boundMs > Number(table.get(BOUND)?.value ?? 0)) table.put(BOUND, boundMs);
      }),
    pending: (fromMs, after, limit) =>
      network('pending', async () => {
        const place = ({ createdMs, row }: MemoryRow): string =>
          `${String(createdMs).padStart(16, '0')}/${row.id}`;
        const page = table
          .rows()
          .filter(({ state, createdMs }) => state === 'pending' && createdMs >= fromMs)
          .filter((row) => after === undefined || place(row) > after)
          .toSorted((left, right) => (place(left) < place(right) ? -1 : 1))
          .slice(0, limit);
        const last = page.at(-1);
        return {
          rows: page.map(({ row: { id, place: at }, createdMs }) => {
            return { id, createdMs, ...(at !== undefined && { place: at }) };
          }),
          readMs: now(),
          ...(page.length === limit && last !== undefined && { next: place(last) }),
        };
      }),
    look: (id) =>
      network('look', async () => {
        const row = rowOf(id);
        return row?.state === 'pending' ? { createdMs: row.createdMs, nowMs: now() } : undefined;
      }),
    claim: (id, owner, leaseMs) =>
      network('claim', async () => {
        const row = rowOf(id);
        const nowMs = now();
        if (row === undefined || row.state !== 'pending' || row.nextTryMs > nowMs) return undefined;
        if (row.owner !== undefined && row.owner !== owner && row.untilMs > nowMs) return undefined;
        const version = String(table.put(`row/${id}`, { ...row, owner, untilMs: nowMs + leaseMs }));
        return { row: row.row, version, attempts: row.attempts, createdMs: row.createdMs, nowMs };
      }),
    markSent: (ids) => network('sent', async () => sent(ids)),
    putOff: (id, version, how) =>
      network('put off', async () =>
        change(id, version, 'code' in how ? { state: 'failed', failure: how } : how),
      ),
    troubled: (limit) =>
      network('troubled', async () => ({
        streams: table
          .named(STREAM)
          .flatMap(({ name, value }) => {
            const { halted, sent: last } = value as StreamState;
            const [key = '', epoch = ''] = JSON.parse(name.slice(STREAM.length)) as string[];
            return halted === undefined ? [] : [{ ref: { key, epoch }, halted, sent: last }];
          })
          .slice(0, limit),
        rows: table
          .rows()
          .flatMap(({ row, failure }) => (failure === undefined ? [] : [{ id: row.id, ...failure }]))
          .slice(0, limit),
      })),
    reopen: (id) =>
      network('reopen', async () => {
        const { failure: _was, ...row } = rowOf(id) ?? { state: 'sent' };
        if (row.state !== 'failed') return false;
        table.put(`row/${id}`, { ...row, state: 'pending', attempts: 0, nextTryMs: 0 });
        return true;
      }),
  };
}

const nameOfWrite = (owner: string | undefined, ids: readonly string[]): string =>
  owner === undefined ? 'release' : ids.length > 0 ? 'record' : 'take';
