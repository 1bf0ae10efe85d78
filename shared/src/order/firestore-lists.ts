/**
 * Lists of streams in Firestore: each state is found by the single-field index of the time since when it lasts.
 *
 * Values of an index that only ascend are written by one server, some 500 a second at most
 * (https://cloud.google.com/firestore/docs/best-practices#hotspots). `readyAt` and `waitingSince` change with much of
 * the traffic, so a number made from the stream's name precedes them, and a list asks each of these shards.
 * It is part of the value, not a field beside it: that would need a composite index.
 */
import {
  type CollectionReference,
  FieldPath,
  type Query,
  type QueryDocumentSnapshot,
} from '@google-cloud/firestore';
import { refused } from '../errors.ts';
import { millisOf, sortable, sortedTime } from './firestore-documents.ts';
import type { ListedState, StreamQuery } from './stream-store.ts';

type Found = Readonly<{
  documents: readonly QueryDocumentSnapshot[];
  next?: string;
  /** The server's time; undefined where nothing was asked. */
  nowMs: number;
}>;

type TimedState = Exclude<ListedState, 'any'>;
/** Where a page ended: the time and the document's name. */
type Place = readonly [time: string, id: string];

const FIELD = { due: 'readyAt', waiting: 'waitingSince', blocked: 'blocked.at' } as const;
/** A shard is asked for its share of a page, and for so many at least: the shares differ. */
const SMALLEST_SHARE = 4;

/** Of a stream whose document has this name. */
export const shardOf = (id: string, shards: number): string =>
  shardName(Buffer.from(id, 'base64url').readUInt32BE() % shards);

const shardName = (index: number): string => `${String(index).padStart(2, '0')} `;

const shardsOf = (state: TimedState, shards: number): readonly string[] =>
  // A stream is blocked so seldom that its time needs no shard.
  state === 'blocked' ? [''] : Array.from({ length: shards }, (_, index) => shardName(index));

/**
 * One page, exactly in the order of the times: what is beyond the last answer of a shard that may have more is left to
 * the next page. Of every shard at least one document is read, which is what an empty answer costs too.
 */
export async function pageOf(
  streams: CollectionReference,
  query: StreamQuery,
  shards: number,
  nowMs: number,
): Promise<Found> {
  const { state, forMs = 0, limit, after } = query;
  const place = after === undefined ? undefined : placeOf(after);
  if (state === 'any') return anyPage(streams, limit, place);
  const until = nowMs - forMs;
  const names = shardsOf(state, shards);
  const share = Math.min(limit, Math.max(SMALLEST_SHARE, Math.ceil(limit / names.length)));
  const answers = await Promise.all(
    names.map((shard) => {
      const all = within(streams, state, shard, until).orderBy(FieldPath.documentId()).limit(share);
      if (place === undefined) return all.get();
      return all.startAfter(`${shard}${place[0]}`, streams.doc(place[1])).get();
    }),
  );
  const at = (document: QueryDocumentSnapshot): string =>
    `${sortedTime(document.get(FIELD[state]))} ${document.id}`;
  const ends = answers
    .filter(({ size }) => size === share)
    .flatMap(({ docs }) => docs.slice(-1).map(at))
    .toSorted();
  const sorted = answers
    .flatMap(({ docs }) => docs)
    .map((document) => ({ document, at: at(document) }))
    .toSorted((left, right) => (left.at < right.at ? -1 : 1));
  const [end] = ends;
  const known = end === undefined ? sorted : sorted.filter((one) => one.at <= end);
  const page = known.slice(0, limit);
  const last = page.at(-1);
  const more = last !== undefined && (end !== undefined || known.length > limit);
  return {
    documents: page.map(({ document }) => document),
    nowMs: Math.max(...answers.map(({ readTime }) => millisOf(readTime))),
    ...(more && { next: tokenOf(last.at.split(' ')) }),
  };
}

async function anyPage(
  streams: CollectionReference,
  limit: number,
  place: Place | undefined,
): Promise<Found> {
  const all = streams.orderBy(FieldPath.documentId()).limit(limit + 1);
  const found = await (place === undefined ? all : all.startAfter(streams.doc(place[1]))).get();
  const documents = found.docs.slice(0, limit);
  const last = documents.at(-1);
  return {
    documents,
    nowMs: millisOf(found.readTime),
    ...(last !== undefined && found.size > limit && { next: tokenOf(['', last.id]) }),
  };
}

export async function countOf(
  streams: CollectionReference,
  state: ListedState,
  shards: number,
  nowMs: number,
): Promise<number> {
  const queries =
    state === 'any'
      ? [streams]
      : shardsOf(state, shards).map((shard) => within(streams, state, shard, nowMs));
  const counts = await Promise.all(queries.map(async (query) => (await query.count().get()).data().count));
  return counts.reduce((sum, count) => sum + count, 0);
}

function within(streams: CollectionReference, state: TimedState, shard: string, untilMs: number): Query {
  const until = sortable(shard, Math.max(0, Math.floor(untilMs)));
  return streams.where(FIELD[state], '>=', shard).where(FIELD[state], '<=', until).orderBy(FIELD[state]);
}

const tokenOf = (parts: readonly string[]): string =>
  Buffer.from(JSON.stringify(parts)).toString('base64url');

function placeOf(token: string): Place {
  try {
    const parts: unknown = JSON.parse(Buffer.from(token, 'base64url').toString());
    if (Array.isArray(parts) && parts.length === 2 && /^[\w-]{1,100}$/.test(String(parts[1])))
      return [String(parts[0]), String(parts[1])];
  } catch {
    // Not ours: below.
  }
  throw refused('pageToken', token, 'the nextPageToken of a list of the same state');
}
