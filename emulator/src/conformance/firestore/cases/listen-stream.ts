/** Listen as it is on the wire. */
import assert from 'node:assert/strict';
import type { Answer, Listening } from '../calls.ts';
import { type FirestoreCase, of } from '../expect.ts';
import { LISTEN_CHANGES } from '../sources.ts';

const make = of('Listening');
type Change = Readonly<{
  targetChangeType: string;
  targetIds: readonly number[];
  cause: Readonly<{ code: number }> | null;
  resumeToken: Buffer;
}>;
const change = (answer: Answer): Change | undefined => answer['targetChange'] as Change | undefined;
const is = (type: string) => (answer: Answer) => change(answer)?.targetChangeType === type;
const add = (stream: Listening, database: string, collectionId: string, more: object = {}): void =>
  stream.send({
    database,
    addTarget: {
      targetId: 1,
      query: { parent: `${database}/documents`, structuredQuery: { from: [{ collectionId }] } },
      ...more,
    },
  });

export const listenStreamCases: readonly FirestoreCase[] = [
  make(
    'A target is answered ADD, its documents, CURRENT, then a snapshot of the stream',
    LISTEN_CHANGES,
    async ({ db, listen, database }) => {
      await db.doc('c/a').set({});
      const stream = listen();
      add(stream, database, 'c');
      await stream.until(is('ADD'), 'ADD');
      await stream.until(
        (answer) => answer['documentChange'] !== undefined && answer['documentChange'] !== null,
        'the document',
      );
      await stream.until(is('CURRENT'), 'CURRENT');
      const snapshot = await stream.until(
        (answer) => is('NO_CHANGE')(answer) && change(answer)?.targetIds.length === 0,
        'NO_CHANGE',
      );
      assert.ok((change(snapshot)?.resumeToken.length ?? 0) > 0, 'the snapshot has no resume token');
    },
  ),
  make(
    'A target that is removed is answered REMOVE, and hears nothing more',
    LISTEN_CHANGES,
    async ({ db, listen, database }) => {
      const stream = listen();
      add(stream, database, 'c');
      await stream.until(is('CURRENT'), 'CURRENT');
      stream.send({ database, removeTarget: 1 });
      await stream.until(is('REMOVE'), 'REMOVE');
      await db.doc('c/a').set({});
      assert.equal(
        stream.answers.some((answer) => answer['documentChange']),
        false,
      );
    },
  ),
  make(
    'A target with once set is removed when it is current',
    LISTEN_CHANGES,
    async ({ listen, database }) => {
      const stream = listen();
      add(stream, database, 'c', { once: true });
      await stream.until(is('CURRENT'), 'CURRENT');
      await stream.until(is('REMOVE'), 'REMOVE');
    },
  ),
  make(
    'A target whose query is not legal is removed with INVALID_ARGUMENT as the cause',
    LISTEN_CHANGES,
    async ({ listen, database }) => {
      const stream = listen();
      add(stream, database, '__c__');
      const removed = await stream.until(is('REMOVE'), 'REMOVE');
      assert.equal(change(removed)?.cause?.code, 3);
    },
  ),
  make(
    'A target that is resumed hears what has changed since',
    LISTEN_CHANGES,
    async ({ db, listen, database }) => {
      const first = listen();
      add(first, database, 'c');
      const snapshot = await first.until(
        (answer) => is('NO_CHANGE')(answer) && change(answer)?.targetIds.length === 0,
        'NO_CHANGE',
      );
      await db.doc('c/a').set({});
      const second = listen();
      add(second, database, 'c', { resumeToken: change(snapshot)?.resumeToken });
      await second.until(
        (answer) => answer['documentChange'] !== undefined && answer['documentChange'] !== null,
        'the document',
      );
      await second.until(is('CURRENT'), 'CURRENT');
    },
  ),
];
