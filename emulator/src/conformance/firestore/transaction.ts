/** A transaction as plain calls, which hold it open for as long as a case wants. */
import { int } from './expect.ts';
import type { FirestoreWorld } from './world.ts';

type Transaction = Readonly<{ transaction: Buffer }>;

export const begin = async ({ one, database }: FirestoreWorld, options: object = {}): Promise<Buffer> =>
  ((await one('BeginTransaction', { database, options })) as Transaction).transaction;
export const read = ({ call, database, doc }: FirestoreWorld, transaction: Buffer, path: string) =>
  call('BatchGetDocuments', { database, documents: [doc(path)], transaction });
export const commit = ({ one, database }: FirestoreWorld, transaction: Buffer, ...writes: object[]) =>
  one('Commit', { database, transaction, writes });
export const rollback = ({ one, database }: FirestoreWorld, transaction: Buffer) =>
  one('Rollback', { database, transaction });
export const setting = ({ doc }: FirestoreWorld, path: string, n: number): object => ({
  update: { name: doc(path), fields: { n: int(n) } },
});
