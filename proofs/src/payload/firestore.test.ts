/**
 * The contract on Firestore: on the local stack's server, and on the one that TEST_FIRESTORE_EMULATOR_HOST names.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { Firestore } from '@google-cloud/firestore';
import { freePort, startFirestore, turnsDuring } from 'pubsub-guarantees-emulator';
import { systemClock } from '../../../shared/src/clock.ts';
import { bytesOf, payloadStoreContract } from '../../../shared/src/payload/contract.ts';
import { firestorePayloads } from '../../../shared/src/payload/firestore.ts';
import { GRACE_MS, UNFINISHED_MS } from '../../../shared/src/payload/payload-store.ts';
import { opened, type Opened } from './firestore-store.ts';
import { refusal } from '../../../shared/src/testing/refusal.ts';

const LARGE = 10_150_000;
/** The smallest that takes two commits. */
const TWO_COMMITS = 7_200_001;
const signal = new AbortController().signal;
const down = { code: 'STORE_UNAVAILABLE' };

/** The local server, with the indexes that docs/reference.md names and no other. */
const servers: [string, () => Promise<Opened>][] = [['Firestore of the local stack', () => opened()]];
const given = process.env['TEST_FIRESTORE_EMULATOR_HOST'];
if (given !== undefined) servers.push([`Firestore at ${given}`, () => opened(given)]);

for (const [name, open] of servers) {
  payloadStoreContract(name, open);

  describe(`payloads in ${name}`, () => {
    let subject: Opened;
    before(async () => {
      subject = await open();
    });
    after(() => subject.close());
    const put = (content: Uint8Array, owner: string = randomUUID()) =>
      subject.store.put(owner, content, subject.now());

    test('the requests of the largest message: under the limits of a document and of a commit, and a repeat is one read', async () => {
      const [owner, content] = [randomUUID(), bytesOf(LARGE)];
      const seen = subject.watch();
      const ref = await put(content, owner);
      assert.deepEqual(seen.operations(), { reads: 1, writes: 21, deletes: 0 });
      assert.ok(seen.largestCommit() < 10 * 1_048_576);
      assert.ok(seen.largestDocument() < 1_048_576);
      await put(content, owner);
      assert.deepEqual(seen.operations(), { reads: 1, writes: 0, deletes: 0 });
      await subject.store.get(ref);
      assert.deepEqual(seen.operations(), { reads: 13, writes: 0, deletes: 0 });
      assert.ok(seen.mostReadsAtOnce() <= 4);
      await subject.store.done(ref);
      assert.deepEqual(seen.operations(), { reads: 1, writes: 13, deletes: 0 });
      await subject.store.done(ref);
      assert.deepEqual(seen.operations(), { reads: 1, writes: 0, deletes: 0 });
      subject.pass(GRACE_MS + 1);
      await subject.store.sweep({ signal });
      assert.equal(seen.operations().deletes, 12);
    });

    test('queries of the sweep ask for times and the name of the payload, and not for bytes', async () => {
      await subject.store.done(await put(bytesOf(1_000)));
      subject.failCommit(2, 'refused');
      await assert.rejects(put(bytesOf(TWO_COMMITS)), down);
      subject.pass(UNFINISHED_MS + 60_000);
      const asked = subject.watchSelected();
      const { done } = await subject.store.sweep({ signal });
      const selected = asked();
      assert.ok(done > 2, `${done} documents`);
      assert.deepEqual(
        new Set(selected.map((fields) => fields?.join(' ') ?? 'whole documents')),
        new Set(['expiresAt payload', 'payload unfinishedAt']),
      );
      assert.equal(await subject.storedBytes(), 0);
    });

    test('a crash at any commit of a put: a repeat completes it, and no content can be read before', async () => {
      for (const how of ['refused', 'reply lost'] as const) {
        for (const commit of [1, 2]) {
          const [owner, content] = [randomUUID(), bytesOf(TWO_COMMITS)];
          subject.failCommit(commit, how);
          // The client may repeat a commit by itself; the failure must be one that it does not.
          await assert.rejects(put(content, owner), down, `${how} at commit ${commit}`);
          const ref = await put(content, owner);
          assert.ok(content.equals(await subject.store.get(ref)), `${how} at commit ${commit}`);
          await subject.store.done(ref);
        }
      }
    });

    test('a crash at any commit of done: the content can be read, or is marked as done', async () => {
      for (const how of ['refused', 'reply lost'] as const) {
        const ref = await put(bytesOf(2_000_000));
        subject.failCommit(1, how);
        await assert.rejects(subject.store.done(ref), down);
        if (how === 'refused') assert.equal((await subject.store.get(ref)).length, 2_000_000);
        await subject.store.done(ref);
        await assert.rejects(subject.store.get(ref), { code: 'PAYLOAD_DONE' });
      }
    });

    test('chunks whose manifest was never written are removed a day later, not before', async () => {
      const kept = await subject.storedBytes();
      subject.failCommit(2, 'refused');
      await assert.rejects(put(bytesOf(TWO_COMMITS)), down);
      assert.equal(await subject.storedBytes(), kept + 7_200_000);
      subject.pass(UNFINISHED_MS - 60_000);
      await subject.store.sweep({ signal });
      assert.ok((await subject.storedBytes()) >= 7_200_000);
      subject.pass(120_000);
      await subject.store.sweep({ signal });
      assert.equal(await subject.storedBytes(), 0);
    });

    test('a second put that died half way does not remove the chunks of the first', async () => {
      const [owner, content] = [randomUUID(), bytesOf(TWO_COMMITS)];
      // Both find nothing; the second one's first commit comes last, and then it dies.
      const held = subject.holdCommit(1);
      const second = put(content, owner);
      await held.reached;
      const ref = await put(content, owner);
      subject.failCommit(1, 'refused');
      held.release();
      await assert.rejects(second, down);
      subject.pass(UNFINISHED_MS + 1);
      await subject.store.sweep({ signal });
      assert.ok(content.equals(await subject.store.get(ref)));
      await subject.store.sweep({ signal });
      assert.ok(content.equals(await subject.store.get(ref)));
      await subject.store.done(ref);
      subject.pass(GRACE_MS + 1);
      await subject.store.sweep({ signal });
      assert.equal(await subject.storedBytes(), 0);
    });

    test('a put while the sweep removes the same: what it stored is there', async () => {
      const [owner, content] = [randomUUID(), bytesOf(1_900_000)];
      for (let round = 0; round < 5; round += 1) {
        await subject.store.done(await put(content, owner));
        subject.pass(GRACE_MS + 1);
        const [ref] = await Promise.all([put(content, owner), subject.store.sweep({ signal })]);
        assert.ok(content.equals(await subject.store.get(ref)));
      }
    });

    test('a chunk that is missing, changed or of another payload is reported as damage, and the payload can still be marked as done', async () => {
      const kept = await subject.storedBytes();
      for (const change of ['missing', 'changed', 'shorter', 'moved'] as const) {
        const ref = await put(bytesOf(2_000_000));
        await subject.spoil(ref, change);
        await assert.rejects(subject.store.get(ref), { code: 'PAYLOAD_DAMAGED' }, change);
        await subject.store.done(ref);
        await assert.rejects(subject.store.get(ref), { code: 'PAYLOAD_DONE' }, change);
      }
      subject.pass(GRACE_MS + 1);
      await subject.store.sweep({ signal });
      assert.equal(await subject.storedBytes(), kept);
    });

    test('documents of a later format wait for a reader that knows them', async () => {
      for (const kind of ['manifest', 'chunk'] as const) {
        const ref = await put(bytesOf(1_000));
        await subject.rewrite(ref, kind, { v: 2 });
        await assert.rejects(subject.store.get(ref), { code: 'UNREADABLE_STATE' });
        await subject.rewrite(ref, kind, { v: 1 });
        assert.equal((await subject.store.get(ref)).length, 1_000);
      }
    });

    test('an invalid manifest is reported as damage, and a repeat writes it again', async () => {
      const [owner, content] = [randomUUID(), bytesOf(1_000)];
      const ref = await put(content, owner);
      for (const fields of [{ bytes: '1000' }, { chunkBytes: 0 }, { digest: null }, { expiresAt: 5 }]) {
        await subject.rewrite(ref, 'manifest', fields);
        await assert.rejects(subject.store.get(ref), { code: 'PAYLOAD_DAMAGED' });
        assert.deepEqual(await put(content, owner), ref);
        assert.ok(content.equals(await subject.store.get(ref)));
      }
    });
  });
}

test('a server that is down gives STORE_UNAVAILABLE in time', async () => {
  const port = await freePort();
  const firestore = new Firestore({ projectId: 'demo-project', host: '127.0.0.1', port, ssl: false });
  const store = firestorePayloads(firestore, { callTimeout: '300ms' });
  const ref = { id: 'i', bytes: 1, digest: 'd' };
  const calls = () => [
    store.put('o', Buffer.from('c'), 0),
    store.get(ref),
    store.done(ref),
    store.sweep({ signal }),
  ];
  const turns = await turnsDuring(async () => {
    for (const call of await Promise.allSettled(calls())) {
      assert.equal(call.status === 'rejected' && (call.reason as { code: string }).code, 'STORE_UNAVAILABLE');
    }
  });
  assert.ok(turns < 5_000);
  // A client that is closed while it still retries has an unhandled rejection of its own: first it gets its answers.
  const server = await startFirestore({ port, clock: systemClock() });
  await firestorePayloads(firestore, { callTimeout: '30s' }).done(ref);
  await firestore.terminate();
  await server.close();
});

test('invalid settings are refused by name', async () => {
  const firestore = new Firestore({ projectId: 'demo-project' });
  assert.throws(() => firestorePayloads(firestore, { callTimeout: '1x' as never }), refusal('callTimeout'));
  await firestore.terminate();
});
