/**
 * Pages of documents in the order of one sorted text: what Firestore indexes by itself, and no index of several fields.
 */
import type { CollectionReference, Query, QueryDocumentSnapshot } from '@google-cloud/firestore';

/** `from` inclusive, `to` exclusive. */
type TextRange = Readonly<{ field: string; from: string; to: string }>;

export const inRange = (
  collection: CollectionReference,
  { field, from, to }: TextRange,
  limit: number,
  after?: string,
): Query => {
  const query = collection.where(field, '>=', from).where(field, '<', to).orderBy(field);
  return (after === undefined ? query : query.startAfter(after)).limit(limit);
};

/** `items`, made of these documents, and behind what the next page begins, where there may be one. */
export function pageOf<Item>(
  docs: readonly QueryDocumentSnapshot[],
  field: string,
  limit: number,
  items: readonly Item[],
): Readonly<{ items: readonly Item[]; next?: string }> {
  const last = docs.at(-1);
  return docs.length < limit || last === undefined ? { items } : { items, next: String(last.get(field)) };
}
