/** Names of collections and documents: the documented limits, and what is refused. */
import { accepted, type FirestoreCase, of, refused } from '../expect.ts';
import { limit, write } from '../limit.ts';
import { QUOTAS } from '../sources.ts';

const name = of('Limits of names');
const path = (id: string): readonly [string] => [`c/${id}`];
const refusedName = (what: string, at: string): FirestoreCase =>
  name(`${what} answers INVALID_ARGUMENT`, QUOTAS, async (world) => {
    await refused(write(world, at), 'INVALID_ARGUMENT', at);
  });
const deep = (levels: number): string => Array.from({ length: levels }, () => 'c/d').join('/');
/** A path of so many bytes, of IDs that are not too long themselves. */
const long = (bytes: number): string =>
  `${['a', 'b', 'c'].map((id) => id.repeat(1_400)).join('/')}/${'d'.repeat(bytes - 4_203)}`;

export const nameLimitCases: readonly FirestoreCase[] = [
  ...limit(
    name,
    'A document ID',
    QUOTAS,
    ['1,500 bytes', path('x'.repeat(1_500))],
    ['1,501 bytes', path('x'.repeat(1_501))],
  ),
  ...limit(
    name,
    'A document ID of three-byte characters',
    QUOTAS,
    ['500', path('日'.repeat(500))],
    ['501', path('日'.repeat(501))],
  ),
  ...limit(
    name,
    'A collection ID',
    QUOTAS,
    ['1,500 bytes', [`${'x'.repeat(1_500)}/a`]],
    ['1,501 bytes', [`${'x'.repeat(1_501)}/a`]],
  ),
  ...limit(name, 'Subcollections', QUOTAS, ['100 levels', [deep(100)]], ['101 levels', [deep(101)]]),
  // Whether the database is counted is not said: both are clear of it either way.
  ...limit(
    name,
    'A document name of 6 KiB',
    QUOTAS,
    ['somewhat less', [long(5_600)]],
    ['somewhat more', [long(6_200).replace(/d/, 'dd')]],
  ),
  refusedName('A document ID of one period', 'c/.'),
  refusedName('A document ID of two periods', 'c/..'),
  refusedName('A document ID that matches __.*__', 'c/__a__'),
  refusedName('The document ID ____', 'c/____'),
  refusedName('A collection ID of one period', './a'),
  refusedName('A collection ID that matches __.*__', '__c__/a'),
  refusedName('An empty document ID', 'c/'),
  refusedName('The name of a collection', 'c'),
  name('IDs with other characters are accepted', QUOTAS, async (world) => {
    for (const id of ['...', '__a', 'a__', '_', ' ', 'ü', '🙂', 'a.b', '`', '"', '#%?&', '0']) {
      await accepted(write(world, `c/${id}`), `the ID ${id}`);
    }
  }),
];
