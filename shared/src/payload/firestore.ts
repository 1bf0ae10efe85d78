/**
 * The payload store in Firestore.
 *
 *   <collection>/<ref.id>                               the manifest: length, digest, whether it is done
 *   <collection>-chunks/<hashOf(ref.id, index)>         900,000 bytes of the content
 *
 * Names are hashes of owner, content and index: well spread, and the same for every repeat. The manifest is written in the
 * last commit, so a crash leaves chunks that no record refers to: a repeat overwrites them, the sweep removes them. Both
 * collections want a TTL policy on `expiresAt`, an ascending index on it, one on `unfinishedAt` for the chunks, no other.
 *
 * Cost of n chunks: put 1 read and n + 1 writes (and a second write of the first eight where there are more), a repeat
 * 1 read; get n + 1 reads; done 1 read and n + 1 writes; n + 1 deletes in the end.
 */
import type { DocumentReference, Firestore, Timestamp, WriteBatch } from '@google-cloud/firestore';
import { FieldValue } from '@google-cloud/firestore';
import { PermanentError } from '../errors.ts';
import { hashOf } from '../hash.ts';
import { CALL_SHAPE, boundedCalls, type CallOptions } from '../firestore/calls.ts';
import { isRefused } from '../firestore/errors.ts';
import { sameFirestore } from '../firestore/copy.ts';
import { timestampAt } from '../firestore/timestamps.ts';
import { forEachAtMost } from '../async/pool.ts';
import {
  chunkFields,
  chunkIn,
  damaged,
  doneFields,
  type Found,
  type Manifest,
  manifestFields,
  manifestIn,
} from './firestore-documents.ts';
import { payloadSweep } from './firestore-sweep.ts';
import {
  GRACE_MS,
  KEEP_MS,
  keepUntil,
  type PayloadRef,
  payloadRef,
  type PayloadStore,
  REPEAT_MARGIN_MS,
} from './payload-store.ts';
import { checkOptions, text } from '../options.ts';

export type FirestorePayloadsOptions = CallOptions &
  Readonly<{
    /** Default `pubsub-guarantees-payload`; the chunks are in the collection of this name and `-chunks`. */
    collection?: string;
  }>;

/**
 * A document has at most 1,048,576 bytes with its name and all fields
 * (https://cloud.google.com/firestore/quotas#collections_documents_and_fields); the rest leaves room for those, for a
 * long name of the collection and for fields of later versions.
 */
const CHUNK_BYTES = 900_000;

/** 7.2 MB in a commit: a request has at most 10 MiB (https://cloud.google.com/firestore/quotas#writes_and_transactions). */
const CHUNKS_PER_COMMIT = 8;

/** How often a put is tried that conflicts with others of the same content each time. */
const TRIES = 3;

/** Chunks that a `get` has in memory besides the content itself. */
const READS_AT_ONCE = 4;

/**
 * The caller owns `firestore` and closes it. Throws ConfigError for a client of another copy of its package.
 *
 * @example
 * const later = delay(queue, { topic: 'projects/shop/topics/orders', payloads: firestorePayloads(new Firestore()) });
 */
export function firestorePayloads(
  firestore: Firestore,
  options: FirestorePayloadsOptions = {},
): PayloadStore {
  sameFirestore(firestore);
  checkOptions<FirestorePayloadsOptions>(options, { ...CALL_SHAPE, collection: text });
  const { collection = 'pubsub-guarantees-payload' } = options;
  const calls = boundedCalls(options);
  const { clock } = calls;
  const manifests = sameFirestore(firestore).collection(collection);
  const chunks = firestore.collection(`${collection}-chunks`);
  const chunkOf = (id: string, index: number): DocumentReference => chunks.doc(hashOf(id, String(index)));
  const chunksOf = (ref: PayloadRef, chunkBytes: number): readonly DocumentReference[] =>
    Array.from({ length: Math.ceil(ref.bytes / chunkBytes) }, (_, index) => chunkOf(ref.id, index));

  const read = (ref: PayloadRef): Promise<Found> =>
    calls.call('read of a manifest', async () => manifestIn(await manifests.doc(ref.id).get()));

  const commit = (name: string, fill: (batch: WriteBatch) => void): Promise<unknown> => {
    const batch = firestore.batch();
    fill(batch);
    return calls.call(name, () => batch.commit());
  };

  const write = async (
    ref: PayloadRef,
    content: Uint8Array,
    untilMs: number,
    found: Found,
  ): Promise<void> => {
    const documents = chunksOf(ref, CHUNK_BYTES);
    const lastFrom = Math.max(0, Math.ceil(documents.length / CHUNKS_PER_COMMIT) - 1) * CHUNKS_PER_COMMIT;
    const fieldsOf = (index: number) => {
      const start = index * CHUNK_BYTES;
      return chunkFields(ref, index, content.subarray(start, start + CHUNK_BYTES), untilMs);
    };
    for (let from = 0; from < lastFrom; from += CHUNKS_PER_COMMIT) {
      const unfinished = { unfinishedAt: FieldValue.serverTimestamp() };
      await commit('write of chunks', (batch) => {
        for (const [offset, document] of documents.slice(from, from + CHUNKS_PER_COMMIT).entries()) {
          batch.set(document, { ...fieldsOf(from + offset), ...unfinished });
        }
      });
    }
    await commit('write of a manifest', (batch) => {
      for (const [index, document] of documents.entries()) {
        if (index < lastFrom) batch.update(document, { unfinishedAt: FieldValue.delete() });
        else batch.set(document, fieldsOf(index));
      }
      const fields = manifestFields(ref, CHUNK_BYTES, untilMs);
      if (found.kind === 'absent') batch.create(manifests.doc(ref.id), fields);
      else batch.update(manifests.doc(ref.id), fields, { lastUpdateTime: updateTimeOf(found) });
    });
  };

  const mark = async (ref: PayloadRef, { chunkBytes, updateTime }: Manifest): Promise<void> => {
    const now = clock.now();
    const removable = { expiresAt: timestampAt(now + GRACE_MS) };
    const documents = chunksOf(ref, chunkBytes);
    const markManifest = (batch: WriteBatch): void =>
      void batch.update(manifests.doc(ref.id), doneFields(now + KEEP_MS), { lastUpdateTime: updateTime });
    try {
      await commit('mark of a payload', (batch) => {
        markManifest(batch);
        for (const document of documents) batch.update(document, removable);
      });
    } catch (error) {
      if (!isRefused(error)) throw error;
      const found = await read(ref);
      if (found.kind !== 'found' || found.manifest.isDone) return;
      // A chunk is missing, or another process stored it anew a moment ago: then it is not done.
      if (!found.manifest.updateTime.isEqual(updateTime)) return;
      await commit('mark of a manifest', markManifest);
      await forEachAtMost(READS_AT_ONCE, documents, (document) => markChunk(document, removable));
    }
  };
  const markChunk = async (document: DocumentReference, fields: object): Promise<void> => {
    try {
      await calls.call('mark of a chunk', () => document.update(fields));
    } catch (error) {
      if (!isRefused(error)) throw error;
    }
  };

  return {
    async put(owner, content, neededAtMs) {
      const ref = payloadRef(owner, content);
      const untilMs = keepUntil(neededAtMs, clock.now());
      let found = await read(ref);
      for (let tries = 1; !isKept(found, ref, untilMs); tries += 1) {
        try {
          await write(ref, content, untilMs + REPEAT_MARGIN_MS, found);
          break;
        } catch (error) {
          // Either this commit was applied and its reply lost, or another process wrote the same: the next read
          // decides.
          if (!isRefused(error) || tries === TRIES) throw error;
          found = await read(ref);
        }
      }
      return ref;
    },

    async get(ref) {
      const found = await read(ref);
      if (found.kind === 'absent') {
        throw new PermanentError('PAYLOAD_MISSING', `payload ${ref.id} of ${ref.bytes} bytes is not there`);
      }
      if (found.kind === 'damaged') throw damaged(ref, found.what);
      const { bytes, digest, chunkBytes, isDone } = found.manifest;
      if (isDone) throw new PermanentError('PAYLOAD_DONE', `payload ${ref.id} is marked as done`);
      if (bytes !== ref.bytes || digest !== ref.digest)
        throw damaged(ref, 'its manifest is of other content');
      const content = Buffer.allocUnsafe(bytes);
      await forEachAtMost(READS_AT_ONCE, chunksOf(ref, chunkBytes), async (document, index) => {
        const start = index * chunkBytes;
        const length = Math.min(chunkBytes, bytes - start);
        const snapshot = await calls.call('read of a chunk', () => document.get());
        content.set(chunkIn(snapshot, ref, index, length), start);
      });
      if (hashOf(content) !== digest) throw damaged(ref, 'its content has another digest');
      return content;
    },

    async done(ref) {
      const found = await read(ref);
      if (found.kind === 'found' && !found.manifest.isDone) await mark(ref, found.manifest);
    },

    sweep: payloadSweep({ manifests, chunks }, calls),
  };
}

const isKept = (found: Found, ref: PayloadRef, untilMs: number): boolean =>
  found.kind === 'found' &&
  !found.manifest.isDone &&
  found.manifest.digest === ref.digest &&
  found.manifest.expiresAtMs >= untilMs;

const updateTimeOf = (found: Exclude<Found, { kind: 'absent' }>): Timestamp =>
  found.kind === 'found' ? found.manifest.updateTime : found.updateTime;
