/**
 * What the relay reads and writes, over the documents in memory.
 */
import type { Clock } from '../clock.ts';
import type { MemoryRow, MemoryWatch, Network, Table } from './memory-table.ts';

import type {
  CounterHead,
  PendingRow,
  RelayStore,
  StreamRow,
  StreamState,
  StreamWrite,
} from './outbox-store.ts';
import type { StreamRef } from './rows.ts';
import { shardOf } from '../shards.ts';

const STREAM = 'stream/';
const WATCH = 'watch/';
const BOUND = 'bound';

export function memoryRelayStore(table: Table, clock: Clock, network: Network, shards: number): RelayStore {
  const keyOf = ({ key, epoch }: StreamRef): string => JSON.stringify([key, epoch]);
  const nameOf = (ref: StreamRef): string => STREAM + keyOf(ref);
  const rowOf = (id: string): MemoryRow | undefined => table.get(`row/${id}`)?.value as MemoryRow | undefined;
  const change = (id: string, fields: Partial<MemoryRow>): void => {
    const row = rowOf(id);
    if (row !== undefined) table.put(`row/${id}`, { ...row, ...fields });
  };
  const sent = (ids: readonly string[]): void => {
    for (const id of ids) change(id, { state: 'sent', owner: undefined, dueMs: undefined });
  };
  const now = (): number => clock.now();
  const versionOf = (name: string): string | undefined => {
    const found = table.get(name);
    return found === undefined ? undefined : String(found.version);
  };
  const select = (ref: StreamRef, { parkedMs, nextTryMs, blocked, owner }: StreamWrite): void => {
    if (parkedMs === undefined || owner !== undefined) return;
    if (blocked !== undefined) return table.remove(WATCH + keyOf(ref));
    const watch: MemoryWatch = { ref, createdMs: parkedMs, dueMs: nextTryMs === 0 ? now() : nextTryMs };
    table.put(WATCH + keyOf(ref), watch);
  };
  const shardOfRow = ({ row: { place, group, id } }: MemoryRow): number =>
    shardOf(place === undefined ? (group ?? id) : keyOf(place), shards);
  const freeMsOf = ({ owner, untilMs, nextTryMs }: MemoryRow): number =>
    Math.max(owner === undefined ? 0 : untilMs, nextTryMs);
  const pendingIn = (shard: number): PendingRow[] => [
    ...table
      .rows()
      .filter((row) => shardOfRow(row) === shard)
      .flatMap((row): PendingRow[] => {
        const { createdMs, dueMs } = row;
        if (dueMs === undefined) return [];
        const { id, place } = row.row;
        const freeMs = place === undefined ? freeMsOf(row) : 0;
        const version = versionOf(`row/${id}`) ?? '';
        return [{ id, version, createdMs, dueMs, freeMs, ...(place !== undefined && { place }) }];
      }),
    ...table.named(WATCH).flatMap(({ name, value }): PendingRow[] => {
      const { ref, ...times } = value as MemoryWatch;
      // As in Firestore: the one that every relay asks.
      if (shard !== 0) return [];
      return [{ id: name, version: versionOf(name) ?? '', ...times, freeMs: 0, stream: ref }];
    }),
  ];
  const ofGroup = (prefix: string): MemoryRow[] =>
    table
      .rows()
      .filter(({ row }) => row.id.startsWith(prefix))
      .toSorted((left, right) => (left.row.id < right.row.id ? -1 : 1));

  return {
    shards,
    readStream: (ref) =>
      network('stream', async () => {
        const state = table.get(nameOf(ref))?.value as StreamState | undefined;
        return { state, version: versionOf(nameOf(ref)), nowMs: now() };
      }),
    writeStream: (ref, version, write, ids, { parked = [], isOver } = {}) =>
      network(nameOfWrite(write.owner, ids, parked, isOver), async () => {
        const { leaseMs, ...state } = write;
        if (versionOf(nameOf(ref)) !== version) return undefined;
        if ([...ids, ...parked].some((id) => rowOf(id) === undefined)) return undefined;
        sent(ids);
        for (const id of parked) change(id, { dueMs: undefined });
        if (isOver) table.remove(WATCH + keyOf(ref));
        else select(ref, write);
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
        const head = table.get(`counter/${key}`)?.value as CounterHead | undefined;
        return head === undefined ? undefined : { key, epoch: head.epoch };
      }),
    bound: () => network('bound', async () => Number(table.get(BOUND)?.value ?? 0)),
    raiseBound: (boundMs) =>
      network('raise', async () => {
        if (boundMs > Number(table.get(BOUND)?.value ?? 0)) table.put(BOUND, boundMs);
      }),
    pending: (shard, fromMs, after, limit) =>
      network('pending', async () => {
        const place = ({ dueMs, id }: PendingRow): string => `${String(dueMs).padStart(16, '0')}/${id}`;
        const readMs = now();
        const rows = pendingIn(shard)
          .filter(({ dueMs }) => dueMs >= fromMs && dueMs <= readMs)
          .filter((row) => after === undefined || place(row) > after)
          .toSorted((left, right) => (place(left) < place(right) ? -1 : 1))
          .slice(0, limit);
        const last = rows.at(-1);
        return { rows, readMs, ...(rows.length === limit && last !== undefined && { next: place(last) }) };
      }),
    defer: ({ id, version }, untilMs) =>
      network('defer', async () => {
        if (versionOf(`row/${id}`) === version) change(id, { dueMs: untilMs });
      }),
    countBlocked: () =>
      network(
        'blocked',
        async () =>
          table.named(STREAM).filter(({ value }) => (value as StreamState).blocked !== undefined).length,
      ),
    look: (id) =>
      network('look', async () => {
        const row = rowOf(id);
        if (row?.state !== 'pending') return undefined;
        const {
          createdMs,
          dueMs,
          owner,
          untilMs,
          row: { place },
        } = row;
        const nowMs = now();
        return {
          createdMs,
          nowMs,
          isSelected: dueMs !== undefined,
          isWriters: row.isWriters && owner !== undefined && untilMs > nowMs,
          ...(place !== undefined && { place }),
        };
      }),
    claim: (id, owner, leaseMs, { fromWriter = false } = {}) =>
      network('claim', async () => {
        const row = rowOf(id);
        const nowMs = now();
        if (row === undefined || row.state !== 'pending' || row.nextTryMs > nowMs) return undefined;
        const isOver = row.owner === undefined || row.owner === owner || row.untilMs <= nowMs;
        if (!isOver && !(fromWriter && row.isWriters)) return undefined;
        const leased = { ...row, owner, untilMs: nowMs + leaseMs, isWriters: false };
        const version = String(table.put(`row/${id}`, leased));
        return { row: row.row, version, attempts: row.attempts, createdMs: row.createdMs, nowMs };
      }),
    markSent: (ids) => network('sent', async () => sent(ids)),
    remove: (ids) =>
      network('remove', async () => {
        for (const id of ids) table.remove(`row/${id}`);
      }),
    reschedule: (id, version, how, { removed, next } = { removed: [], next: id }) =>
      network('reschedule', async () => {
        if (version !== undefined && versionOf(`row/${id}`) !== version) return;
        if (rowOf(next) === undefined) return;
        for (const gone of removed) table.remove(`row/${gone}`);
        const free = { owner: undefined, untilMs: 0 };
        if ('code' in how) change(next, { ...free, state: 'failed', dueMs: undefined, failure: how });
        else change(next, { ...free, ...how, dueMs: how.nextTryMs === 0 ? now() : how.nextTryMs });
      }),
    first: (prefix) =>
      network('first', async () => {
        const [row] = ofGroup(prefix);
        if (row === undefined) return undefined;
        return { id: row.row.id, isFailed: row.state === 'failed', freeMs: freeMsOf(row), nowMs: now() };
      }),
    behind: (group, id, limit) =>
      network('behind', async () =>
        ofGroup(`${group}.`)
          .map(({ row }) => row)
          .filter((row) => row.id > id)
          .slice(0, limit),
      ),
    listFailures: (limit) =>
      network('listFailures', async () => ({
        streams: table
          .named(STREAM)
          .flatMap(({ name, value }) => {
            const { blocked, sent: last } = value as StreamState;
            const [key = '', epoch = ''] = JSON.parse(name.slice(STREAM.length)) as string[];
            return blocked === undefined ? [] : [{ ref: { key, epoch }, blocked, sent: last }];
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
        table.put(`row/${id}`, { ...row, state: 'pending', dueMs: now(), attempts: 0, nextTryMs: 0 });
        return true;
      }),
  };
}

function nameOfWrite(
  owner: string | undefined,
  ids: readonly string[],
  parked: readonly string[],
  isOver: true | undefined,
): string {
  if (isOver) return 'unpark';
  if (parked.length > 0) return 'park';
  if (owner === undefined) return 'release';
  return ids.length > 0 ? 'record' : 'acquire';
}
