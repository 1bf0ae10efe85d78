/**
 * Hooks into the client's two kinds of requests: to count what is billed, to see what is asked for, and to lose replies.
 */
import type { Firestore } from '@google-cloud/firestore';

type Call = (method: string, ...rest: unknown[]) => Promise<unknown>;
type Client = Record<'request' | 'requestStream', Call>;

/** Documents read (a query at least one) and written. A query that finds something is counted by its limit of one. */
export function countOperations(firestore: Firestore): () => { reads: number; writes: number } {
  const client = firestore as unknown as Client;
  const { request, requestStream } = client;
  let [reads, writes] = [0, 0];
  client.request = (method, ...rest) => {
    if (method === 'commit') writes += (rest[0] as { writes: unknown[] }).writes.length;
    return request.call(firestore, method, ...rest);
  };
  client.requestStream = (method, ...rest) => {
    const body = rest[1] as { documents?: unknown[] };
    reads += method === 'batchGetDocuments' ? (body.documents?.length ?? 0) : 1;
    return requestStream.call(firestore, method, ...rest);
  };
  return () => {
    Object.assign(client, { request, requestStream });
    return { reads, writes };
  };
}

/** Names of the fields that each query asks for, sorted: undefined where it asks for whole documents. */
export function watchSelected(firestore: Firestore): () => readonly (readonly string[] | undefined)[] {
  const client = firestore as unknown as Client;
  const { requestStream } = client;
  const asked: (readonly string[] | undefined)[] = [];
  type Query = Readonly<{ select?: Readonly<{ fields: readonly Readonly<{ fieldPath: string }>[] }> }>;
  client.requestStream = (method, ...rest) => {
    const { structuredQuery } = rest[1] as { structuredQuery?: Query };
    if (method === 'runQuery')
      asked.push(structuredQuery?.select?.fields.map(({ fieldPath }) => fieldPath).toSorted());
    return requestStream.call(firestore, method, ...rest);
  };
  return () => {
    Object.assign(client, { requestStream });
    return asked;
  };
}

/** The n-th request of this kind from now on is applied, and the caller is told that no server answers. */
export function loseReply(firestore: Firestore, lost: string, nth: number): () => void {
  const client = firestore as unknown as Client;
  const { request } = client;
  let seen = 0;
  client.request = async (method, ...rest) => {
    const answer = await request.call(firestore, method, ...rest);
    if (method !== lost || (seen += 1) !== nth) return answer;
    throw Object.assign(new Error('made for a test'), { code: 14 });
  };
  return () => void Object.assign(client, { request });
}
