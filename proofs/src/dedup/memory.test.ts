import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../../../shared/src/clock.ts';
import { virtualClock } from '../../../shared/src/testing/index.ts';
import { claimed, claimStoreContract, request } from '../../../shared/src/dedup/contract.ts';
import { documentClaims } from '../../../shared/src/dedup/document-claims.ts';
import { faultyDocuments } from './fixture.ts';
import { memoryClaims, memoryDocuments } from '../../../shared/src/dedup/memory.ts';

claimStoreContract('memory', async () => {
  const clock = virtualClock();
  return { store: memoryClaims({ clock }), pass: (ms) => clock.advance(ms), close: async () => {} };
});

test('one operation of many slow calls is bounded as a whole', async () => {
  const clock = virtualClock();
  const slow = faultyDocuments(memoryDocuments({ clock }), clock, () => ({
    kind: 'none',
    beforeMs: 2_000,
  }));
  const refusing = { ...slow, create: () => sleep(clock, 2_000).then(() => ({ kind: 'refused' }) as const) };
  const claim = documentClaims(refusing, clock, 5_000).claim(request());
  await assert.rejects(clock.until(claim), { code: 'STORE_UNAVAILABLE' });
  assert.equal(clock.monotonic(), 5_000);
});

test('memory forgets what has expired and keeps what counts', async () => {
  const clock = virtualClock();
  const documents = memoryDocuments({ clock });
  const store = documentClaims(documents, clock, 5_000);
  const kept = request({ retentionMs: 600_000 });
  await store.complete((await claimed(store, kept)).held);
  for (let round = 0; round < 4; round += 1) {
    for (let i = 0; i < 1_024; i += 1) {
      await store.complete((await claimed(store, request({ retentionMs: 60_000 }))).held);
    }
    await clock.advance(60_000);
  }
  assert.ok(documents.size() <= 2_048, `${documents.size()} records are kept`);
  const again = await store.claim(request({ key: kept.key, retentionMs: 600_000 }));
  assert.equal(again.kind, 'duplicate');
});
