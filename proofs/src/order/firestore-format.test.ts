/**
 * Documents of another format, or that another program has written to: the store guesses nothing, and hides no other
 * document.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import type { DocumentReference } from '@google-cloud/firestore';
import { codeOf } from '../../../shared/src/errors.ts';
import { firestoreServers, type OpenedFirestore } from '../servers/firestore-servers.ts';
import { heldAs, newStream, patchOf } from '../../../shared/src/testing/stream-samples.ts';
import { firestoreStreams } from '../../../shared/src/order/firestore.ts';
import { freshStream, type StreamFields } from '../../../shared/src/order/stream-state.ts';
import type {
  HeldMessage,
  StreamAdmin,
  StreamRef,
  StreamStore,
} from '../../../shared/src/order/stream-store.ts';
import { refusal } from '../../../shared/src/testing/refusal.ts';

const FRESH = freshStream(1);

for (const [name, open] of firestoreServers('off')) {
  suite(`the format of streams on ${name}`, () => {
    let opened: OpenedFirestore;
    before(async () => {
      opened = await open();
    });
    after(() => opened.close());

    type Made = Readonly<{
      store: StreamStore & StreamAdmin;
      create(ref: StreamRef, fields: StreamFields, held?: readonly HeldMessage[]): Promise<unknown>;
      document(kind: 'streams' | 'held'): Promise<DocumentReference>;
    }>;
    /** In a collection of its own, so that a query of the group finds nothing else. */
    function made(): Made {
      const collection = `order-${randomUUID()}`;
      const store = firestoreStreams(opened.firestore, { collection });
      return {
        store,
        create: (ref, fields, create = []) =>
          store.commit(ref, { version: undefined, state: FRESH }, { patch: patchOf(fields), create }),
        async document(kind) {
          const [found] = (await opened.firestore.collectionGroup(`${collection}-${kind}`).get()).docs;
          return found?.ref ?? assert.fail('no document');
        },
      };
    }

    test('a stream in an older or newer format is answered with its error, and does not hide the others', async () => {
      for (const v of [1, 2, 99, '3', null]) {
        const { store, create, document } = made();
        const ref = newStream('old');
        await create(ref, { readyAt: 1, waitingSince: 1 });
        await (await document('streams')).update({ v });
        await create({ ...ref, key: 'new' }, { readyAt: 2, waitingSince: 2 });
        await assert.rejects(store.read(ref), { code: 'UNREADABLE_STATE', message: /accepted: 3/ });
        await assert.rejects(
          store.transact(ref, ({ read }) => read()),
          { code: 'UNREADABLE_STATE' },
        );
        for (const state of ['due', 'waiting'] as const) {
          const { streams } = await store.list(ref.consumer, { state, limit: 10 });
          assert.deepEqual(
            streams.map((one) => [one.ref.key, 'state' in one ? 'read' : codeOf(one.error)]),
            [
              ['old', 'UNREADABLE_STATE'],
              ['new', 'read'],
            ],
          );
        }
      }
    });

    test('a stream that another program has written to is refused as a whole', async () => {
      const wrongs: Record<string, unknown>[] = [
        { last: '4' },
        { last: null },
        { last: -1 },
        { held: null },
        { held: -1 },
        { commit: 7 },
        { suspectsTo: 'no' },
        { leaseTo: null },
        { attempts: NaN },
        { owner: 7 },
        { leasedAt: 'now' },
        { leaseMs: null },
        { readyAt: 5 },
        { readyAt: '07 2026' },
        { waitingSince: new Date() },
        { run: { number: 5 } },
        { skipped: [{ from: 1 }] },
        { recentHashes: ['x'] },
        { epoch: 1 },
        { blocked: true },
        { repairedAt: 7 },
      ];
      const { store, create, document } = made();
      const ref = newStream();
      await create(ref, { last: 1, readyAt: 5, waitingSince: 5 });
      const stream = await document('streams');
      const right = (await stream.get()).data() ?? {};
      for (const wrong of wrongs) {
        await stream.update(wrong);
        await assert.rejects(store.read(ref), { code: 'UNREADABLE_STATE' }, JSON.stringify(wrong));
        await stream.set(right);
      }
      assert.equal((await store.read(ref)).state?.last, 1);
    });

    test('a held message of another format, or that was written to, is refused', async () => {
      const { store, create, document } = made();
      const ref = newStream();
      await create(ref, { held: 1 }, [heldAs(2)]);
      const held = await document('held');
      const right = (await held.get()).data() ?? {};
      for (const wrong of [
        { v: 2 },
        { number: 2.5 },
        { message: 'text' },
        { payload: 'x' },
        { hash: null },
      ]) {
        await held.update(wrong);
        await assert.rejects(store.held(ref, 1, 9), { code: 'UNREADABLE_STATE' }, JSON.stringify(wrong));
        await held.set(right);
      }
      assert.deepEqual(await store.held(ref, 1, 9), [heldAs(2)]);
    });

    test('a document under another stream’s name is reported, and takes no number of that stream', async () => {
      for (const wrong of [{ key: 'another' }, { source: 'another' }]) {
        const { store, create, document } = made();
        const ref = newStream();
        await create(ref, { readyAt: 1 });
        await (await document('streams')).update(wrong);
        const { streams } = await store.list(ref.consumer, { state: 'due', limit: 10 });
        assert.equal(codeOf(streams[0]?.error), 'UNREADABLE_STATE');
      }
    });

    test('a page that no list has answered is refused', async () => {
      const { store } = made();
      for (const after of ['x', '', '["a/b"]', '["", "a/b"]', '["a"]']) {
        const token = Buffer.from(after).toString('base64url');
        for (const state of ['any', 'due'] as const)
          await assert.rejects(store.list('c', { state, limit: 1, after: token }), refusal('pageToken'));
      }
    });
  });
}
