/** Sizes of documents, values and requests. */
import { accepted, type FirestoreCase, int, of, refused, text } from '../expect.ts';
import { limit, write } from '../limit.ts';
import { QUOTAS, SIZE } from '../sources.ts';
import type { FirestoreWorld } from '../world.ts';

const size = of('Limits of size');
/** The name c/a has 20 bytes, each field name 2, each string one more than its characters, the document 32. */
const strings = (total: number): readonly [string, object] => [
  'c/a',
  { f: text('x'.repeat(600_000)), g: text('x'.repeat(total - 600_000 - 58)) },
];
const MIB = 1_048_576;
const VALUE = MIB - 89;
const one = (what: object): readonly [string, object] => ['c/a', { f: what }];

export const sizeLimitCases: readonly FirestoreCase[] = [
  ...limit(size, 'A document', SIZE, ['1 MiB', strings(MIB)], ['1 MiB and one byte', strings(MIB + 1)]),
  ...limit(
    size,
    'A string',
    QUOTAS,
    ['1 MiB - 89 bytes', one(text('x'.repeat(VALUE)))],
    ['one byte more', one(text('x'.repeat(VALUE + 1)))],
  ),
  ...limit(
    size,
    'Bytes',
    QUOTAS,
    ['1 MiB - 89 bytes', one({ bytesValue: Buffer.alloc(VALUE) })],
    ['one byte more', one({ bytesValue: Buffer.alloc(VALUE + 1) })],
  ),
  size('A document that grows past 1 MiB by an update answers INVALID_ARGUMENT', SIZE, async (world) => {
    const { commit, doc } = world;
    await write(world, ...strings(MIB - 10));
    const update = { name: doc('c/a'), fields: { h: text('too much') } };
    await refused(commit({ update, updateMask: { fieldPaths: ['h'] } }), 'INVALID_ARGUMENT', 'the update');
  }),
  size('A document that grows past 1 MiB by a transform answers INVALID_ARGUMENT', SIZE, async (world) => {
    const { commit, doc } = world;
    await write(world, ...strings(MIB - 5));
    const fieldTransforms = [{ fieldPath: 'n', increment: int(1) }];
    await refused(
      commit({ transform: { document: doc('c/a'), fieldTransforms } }),
      'INVALID_ARGUMENT',
      'the transform',
    );
  }),
  size('A request of less than 10 MiB is accepted', QUOTAS, async (world) => {
    await accepted(world.commit(...megabytes(world, 10)), 'ten documents of 1 MB');
  }),
  size('A request of more than 10 MiB answers INVALID_ARGUMENT', QUOTAS, async (world) => {
    await refused(world.commit(...megabytes(world, 11)), 'INVALID_ARGUMENT', 'eleven documents of 1 MB');
  }),
];

const megabytes = ({ doc }: FirestoreWorld, count: number): readonly object[] =>
  Array.from({ length: count }, (_, i) => ({
    update: { name: doc(`c/${i}`), fields: { f: { bytesValue: Buffer.alloc(1_000_000) } } },
  }));
