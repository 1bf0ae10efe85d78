/**
 * Traces in Firestore, in one collection: a document for each correlation, named by a hash, and one for each message of it
 * that was handled, whose name begins with that hash.
 *
 * What is open is found by one field (`openSince`), which Firestore indexes by itself; all others should be exempt from
 * indexing, and `expiresAt` wants a TTL policy.
 */
import {
  type DocumentData,
  type DocumentSnapshot,
  FieldPath,
  FieldValue,
  type Firestore,
  Timestamp,
  type Transaction,
} from '@google-cloud/firestore';
import { TransientError } from '../errors.ts';
import { boundedCalls, CALL_SHAPE, type CallOptions } from '../firestore/calls.ts';
import { sameFirestore } from '../firestore/copy.ts';
import { toTime, toVersion } from '../firestore/timestamps.ts';
import { checkOptions, text } from '../options.ts';
import {
  correlationName,
  inOrder,
  rowName,
  TRACE_RETENTION_MS,
  type TraceHead,
  type TraceRow,
  type TraceStore,
} from './saga-traces.ts';

export type FirestoreTracesOptions = CallOptions &
  Readonly<{
    /** Default `pubsub-guarantees-saga-traces`. */
    collection?: string;
  }>;

const VERSION = 1;
/** Behind every character of a hash. */
const LAST = '~';

/**
 * The caller makes the client and terminates it. Throws ConfigError for an invalid option.
 *
 * @example
 * const traces = firestoreTraces(firestore);
 * const stock = correlated({ traces })(handler);
 */
export function firestoreTraces(
  firestore: Firestore,
  options: FirestoreTracesOptions = {},
): TraceStore<Transaction> {
  sameFirestore(firestore);
  checkOptions<FirestoreTracesOptions>(options, { ...CALL_SHAPE, collection: text });
  const { collection = 'pubsub-guarantees-saga-traces' } = options;
  const calls = boundedCalls(options);
  const traces = sameFirestore(firestore).collection(collection);
  const at = (correlationId: string) => traces.doc(correlationName(correlationId));
  const common = (correlationId: string): DocumentData => ({
    v: VERSION,
    correlationId,
    expiresAt: Timestamp.fromMillis(Math.ceil(calls.clock.now()) + TRACE_RETENTION_MS),
  });

  return {
    isKnownIn: async (transaction, id) => (await transaction.get(at(id))).exists,
    beginIn(transaction, id) {
      const now = FieldValue.serverTimestamp();
      const fields = { ...common(id), beganAt: now, openSince: now, end: null, endedAt: null };
      transaction.set(at(id), fields);
    },
    endIn(transaction, id, end) {
      const fields = { ...common(id), end, endedAt: FieldValue.serverTimestamp(), openSince: null };
      transaction.set(at(id), fields, { merge: true });
    },
    writeIn(transaction, row) {
      const { correlationId, consumer, dedupId, causationId, outcome, sent } = row;
      const own = { consumer, dedupId, causationId: causationId ?? null, outcome, sent: [...sent] };
      const fields = { ...common(correlationId), ...own, at: FieldValue.serverTimestamp() };
      transaction.set(traces.doc(rowName(row)), fields);
    },
    read: (id) =>
      calls.call('read of a trace', async () => {
        const name = correlationName(id);
        const [head, { docs }] = await Promise.all([
          at(id).get(),
          traces
            .where(FieldPath.documentId(), '>=', `${name}.`)
            .where(FieldPath.documentId(), '<', `${name}.${LAST}`)
            .get(),
        ]);
        return { head: headOf(head), rows: inOrder(docs.map(rowOf)) };
      }),
    open: (olderMs, limit, after) =>
      calls.call('query of open traces', async () => {
        const until = Timestamp.fromMillis(calls.clock.now() - olderMs);
        const query = traces
          .where('openSince', '<=', until)
          .orderBy('openSince')
          .orderBy(FieldPath.documentId())
          .limit(limit);
        const [version = '', last = ''] = (after ?? '').split('/');
        const { docs } = await (after === undefined ? query : query.startAfter(toTime(version), last)).get();
        const items = docs.map((document) => headOf(document)).filter((head) => head !== undefined);
        const final = docs.at(-1);
        if (docs.length < limit || final === undefined) return { items };
        return { items, next: `${toVersion(final.get('openSince') as Timestamp)}/${final.id}` };
      }),
  };
}

const millisOf = (value: unknown): number | undefined =>
  value instanceof Timestamp ? value.toMillis() : undefined;

function headOf(snapshot: DocumentSnapshot): TraceHead | undefined {
  const data = snapshot.data();
  if (data === undefined) return undefined;
  const { v, correlationId, end, beganAt, endedAt } = data;
  const [beganAtMs, endedAtMs] = [millisOf(beganAt), millisOf(endedAt)];
  const isEnd = end === 'completed' || end === 'compensated';
  if (v !== VERSION || typeof correlationId !== 'string' || (!isEnd && beganAtMs === undefined))
    throw unreadable(snapshot);
  return {
    correlationId,
    ...(beganAtMs !== undefined && { beganAtMs }),
    ...(isEnd && { end }),
    ...(endedAtMs !== undefined && { endedAtMs }),
  };
}

function rowOf(snapshot: DocumentSnapshot): TraceRow {
  const { v, correlationId, consumer, dedupId, causationId, outcome, sent, at } = snapshot.data() ?? {};
  const atMs = millisOf(at);
  const isWhole =
    [correlationId, consumer, dedupId, outcome].every((field) => typeof field === 'string') &&
    (causationId === null || typeof causationId === 'string') &&
    Array.isArray(sent);
  if (v !== VERSION || !isWhole || atMs === undefined) throw unreadable(snapshot);
  const cause = causationId === null ? {} : { causationId };
  return { correlationId, consumer, dedupId, ...cause, outcome, sent, atMs };
}

const unreadable = ({ ref }: DocumentSnapshot): TransientError =>
  new TransientError('UNREADABLE_TRACE', `document ${ref.path} is no trace of format ${VERSION}`);
