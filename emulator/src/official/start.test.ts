import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findOfficial } from './find.ts';
import { startOfficialFirestore, startOfficialPubsub } from './start.ts';
import { untilGone } from './testing.ts';

const found = findOfficial();

async function ask(url: string, init?: RequestInit): Promise<unknown> {
  const headers = { 'content-type': 'application/json' };
  const reply = await fetch(url, { headers, ...init });
  assert.ok(reply.ok, `${url} was answered ${reply.status}`);
  return reply.json();
}

test("Google's emulators start side by side, answer, reset and end", {
  skip: !found.ok && found.missing,
}, async () => {
  assert.ok(found.ok);
  const lines: string[] = [];
  const [pubsub, firestore] = await Promise.all([
    startOfficialPubsub({ found, log: (line) => lines.push(line) }),
    startOfficialFirestore({ found }),
  ]);
  try {
    assert.ok(lines.some((line) => line.includes(`listening on ${pubsub.port}`)));

    const topics = `http://${pubsub.address}/v1/projects/demo-project/topics`;
    await ask(`${topics}/orders`, { method: 'PUT', body: '{}' });
    assert.match(JSON.stringify(await ask(topics)), /topics\/orders/);
    await pubsub.reset();
    assert.deepEqual(await ask(topics), {});

    const documents = `http://${firestore.address}/v1/projects/demo-project/databases/(default)/documents/orders`;
    await ask(documents, { method: 'POST', body: '{}' });
    assert.match(JSON.stringify(await ask(documents)), /documents\/orders\//);
    await firestore.reset('demo-project');
    assert.deepEqual(await ask(documents), {});

    await Promise.all([
      assert.rejects(startOfficialPubsub({ found, port: pubsub.port }), {
        code: 'EADDRINUSE',
        message: `Google's Pub/Sub emulator cannot listen on ${pubsub.address}: the port is in use by another process`,
      }),
      assert.rejects(startOfficialFirestore({ found, port: firestore.port }), {
        code: 'EADDRINUSE',
        message: `Google's Firestore emulator cannot listen on ${firestore.address}: the port is in use by another process`,
      }),
    ]);
  } finally {
    await Promise.all([pubsub.close(), firestore.close()]);
  }
  const pids = [pubsub, firestore].flatMap(({ pid = 0, guardPid = 0 }) => [pid, guardPid]);
  await untilGone(pids, [pubsub.port, firestore.port]);
});

test('what is missing is said in one line', async () => {
  const nothing = { ok: false, missing: 'no java on the PATH: install Java 11 or newer' } as const;
  await assert.rejects(startOfficialPubsub({ found: nothing }), { message: nothing.missing });
});
