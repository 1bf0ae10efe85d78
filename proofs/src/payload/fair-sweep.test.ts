/** Documents that cannot be removed do not keep the sweep from the rest, however short it is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Firestore, Timestamp } from '@google-cloud/firestore';
import { createFaults, startFirestore } from 'pubsub-guarantees-emulator';
import { systemClock } from '../../../shared/src/clock.ts';
import { boundedCalls } from '../../../shared/src/firestore/calls.ts';
import { payloadSweep } from '../../../shared/src/payload/firestore-sweep.ts';

const [STUCK, GOOD] = [40, 60];
/** How many removals a sweep has time for. */
const REMOVALS = 16;

test(`${STUCK} payloads that cannot be removed do not keep ${GOOD} others, in sweeps that have time for ${REMOVALS}`, async (t) => {
  process.env['METADATA_SERVER_DETECTION'] ??= 'none';
  const faults = createFaults();
  const clock = systemClock();
  const server = await startFirestore({ clock, faults });
  const [host = '', port] = server.address.split(':');
  const firestore = new Firestore({ projectId: 'demo-project', host, port: Number(port), ssl: false });
  t.after(async () => {
    await firestore.terminate();
    await server.close();
  });
  const manifests = firestore.collection('payload');
  const chunks = firestore.collection('payload-chunks');
  const batch = firestore.batch();
  for (let n = 0; n < STUCK + GOOD; n += 1) {
    const name = n < STUCK ? `stuck-${n}` : `good-${n}`;
    batch.set(chunks.doc(name), { expiresAt: Timestamp.fromMillis(1_000 + n) });
  }
  await batch.commit();
  const action = { type: 'fail', code: 'PERMISSION_DENIED' };
  faults.set({ rules: [{ service: 'firestore', method: 'Commit', resource: '*/stuck-*', action }] });

  const calls = boundedCalls({ clock });
  let left = 0;
  let end = new AbortController();
  const sweep = payloadSweep(
    { manifests, chunks },
    {
      ...calls,
      call(name, work) {
        if (name === 'removal' && (left -= 1) <= 0) end.abort();
        return calls.call(name, work);
      },
    },
  );
  let removed = 0;
  for (let round = 0; round < 8; round += 1) {
    [left, end] = [REMOVALS, new AbortController()];
    removed += (await sweep({ signal: end.signal })).done;
  }
  const names = (await chunks.get()).docs.map(({ id }) => id);
  assert.deepEqual([removed, names.filter((name) => name.startsWith('good'))], [GOOD, []]);
  assert.equal(names.length, STUCK);
  // Once the store accepts them, they are removed as well.
  faults.set({ rules: [] });
  for (let round = 0; round < 2; round += 1) {
    [left, end] = [1_000, new AbortController()];
    await sweep({ signal: end.signal });
  }
  assert.equal((await chunks.get()).size, 0);
});
