import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Firestore } from '@google-cloud/firestore';
import { Redis } from 'ioredis';
import { startFirestore, systemClock as systemTime } from 'pubsub-guarantees-emulator';
import { systemClock } from '../../../shared/src/clock.ts';
import { compose } from '../../../shared/src/handler.ts';
import { codeOf } from '../../../shared/src/errors.ts';
import { ack, type Outcome } from '../../../shared/src/outcome.ts';
import type { ClaimStore } from '../../../shared/src/dedup/claim-store.ts';
import { dedup } from '../../../shared/src/dedup/dedup.ts';
import { documentClaims } from '../../../shared/src/dedup/document-claims.ts';
import { firestoreClaims } from '../../../shared/src/dedup/firestore.ts';
import { memoryDocuments } from '../../../shared/src/dedup/memory.ts';
import { redisClaims } from '../../../shared/src/dedup/redis.ts';
import { aContext, aMessage, memoryLog } from '../../../shared/src/testing/deliveries.ts';
import { faultyDocuments } from './fixture.ts';
import { hasRedisServer, startRedis } from './redis-server.ts';

// Otherwise the client looks for a machine of Google's to run on, and warns that there is none.
process.env['METADATA_SERVER_DETECTION'] ??= 'none';

const DUPLICATES = 300;
const WITHIN_MS = 1_000;
/** The shortest ack deadline there is: later, the burst would come again. */
const ACK_DEADLINE_MS = 10_000;
/** As many messages as duplicates, each of a few ten times, and one message alone. */
const IDS = [DUPLICATES, 30, 1] as const;
/** Bursts are sent until one is answered in time: a busy machine may need several. */
const BURSTS = 8;

/** As a subscription brings them long after a good ack: hundreds at once. */
async function burst(t: TestContext, store: ClaimStore, ids: number): Promise<void> {
  const clock = systemClock();
  const log = memoryLog();
  let runs = 0;
  const deliver = compose(async () => {
    runs += 1;
    return ack();
  }, [dedup(store)]);
  const context = (): ReturnType<typeof aContext> => aContext(clock, { log });
  const messages = Array.from({ length: ids }, (_, index) => aMessage(`done-${ids}-${index}`));
  const first = await Promise.all(messages.map((message) => deliver(message, context())));
  assert.deepEqual(
    first,
    messages.map(() => ack()),
  );
  const times: number[] = [];
  const ownTimes: number[] = [];
  while (times.length < BURSTS && !times.some((time) => time < WITHIN_MS)) {
    const [began, cpuBefore] = [performance.now(), process.cpuUsage()];
    const deliveries = Array.from({ length: DUPLICATES }, (_, index) =>
      deliver(messages[index % ids] ?? aMessage('none'), context()),
    );
    const outcomes = await Promise.all(deliveries);
    times.push(performance.now() - began);
    const { user, system } = process.cpuUsage(cpuBefore);
    ownTimes.push((user + system) / 1_000);
    assert.ok(outcomes.every((outcome) => outcome.kind === 'ack' && outcome.reason === 'duplicate'));
  }
  const shown = times.map(
    (time, index) => `${Math.round(time)} ms (CPU ${Math.round(ownTimes[index] ?? 0)})`,
  );
  t.diagnostic(`${DUPLICATES} duplicates of ${ids} messages: ${shown.join(', ')}`);
  assert.equal(runs, ids, 'no duplicate runs');
  assert.deepEqual(log.lines, [], 'nothing is contended');
  // Where the machine was never free enough, the test judges the CPU time of this process, which is client and server.
  const [fastest, cheapest] = [Math.min(...times), Math.min(...ownTimes)];
  const isInTime = fastest < WITHIN_MS || (fastest < ACK_DEADLINE_MS && cheapest < WITHIN_MS);
  assert.ok(isInTime, `never within ${WITHIN_MS} ms: ${shown.join(', ')}`);
}

const within = (store: string): string =>
  `B53: 300 duplicates of completed messages at once are 300 acks within a second: ${store}`;

test(within('Firestore'), async (t) => {
  const server = await startFirestore({ clock: systemTime() });
  const [host = '', port] = server.address.split(':');
  const firestore = new Firestore({ projectId: 'demo-project', host, port: Number(port), ssl: false });
  try {
    for (const ids of IDS) await burst(t, firestoreClaims(firestore), ids);
  } finally {
    await firestore.terminate();
    await server.close();
  }
});

if (!hasRedisServer()) {
  test(within('Redis'), { skip: 'no redis-server on the PATH' }, () => {});
} else {
  test(within('Redis'), async (t) => {
    const server = await startRedis();
    const redis = new Redis(server.port, '127.0.0.1').on('error', () => {});
    try {
      for (const ids of IDS) await burst(t, redisClaims(redis), ids);
    } finally {
      redis.disconnect();
      await server.close();
    }
  });
}

/** Deliveries of one key in one process, over documents that count what reaches them. */
function together(plan: Parameters<typeof faultyDocuments>[2] = () => undefined) {
  const clock = systemClock();
  const documents = faultyDocuments(memoryDocuments({ clock }), clock, plan);
  let runs = 0;
  const handler = compose(async () => {
    runs += 1;
    return ack();
  }, [dedup(documentClaims(documents, clock, 5_000), { clock })]);
  const deliver = (...texts: readonly string[]): Promise<Outcome[]> =>
    Promise.all(
      texts.map((text, index) => handler(aMessage(`m${index}`, { dedupId: 'k', text }), aContext(clock))),
    );
  return { deliver, calls: documents.calls, runs: () => runs };
}

test('deliveries of one key that arrive together ask once: one runs, the others wait for it', async () => {
  const { deliver, calls, runs } = together();
  assert.deepEqual(await deliver('x', 'x', 'x'), [ack(), ack('duplicate'), ack('duplicate')]);
  assert.equal(runs(), 1);
  assert.deepEqual(calls, ['create claim', 'update done', 'create claim', 'read']);
});

test('of deliveries of a done key that arrive together each is judged by its own data', async () => {
  const { deliver, calls, runs } = together();
  await deliver('x');
  const outcomes = await deliver('x', 'other', 'x');
  assert.deepEqual([outcomes[0], outcomes[2]], [ack('duplicate'), ack('duplicate')]);
  assert.ok(outcomes[1]?.kind === 'deadLetter' && codeOf(outcomes[1].error) === 'DEDUP_CONFLICT');
  assert.equal(runs(), 1);
  assert.deepEqual(calls.slice(2), ['create claim', 'read']);
});

test('deliveries of one key that arrive together are all retried when the store is down, and the next one asks anew', async () => {
  let isDown = true;
  const { deliver, runs } = together(() => (isDown ? { kind: 'refused' } : undefined));
  for (const outcome of await deliver('x', 'x', 'x')) {
    assert.ok(outcome.kind === 'retry' && codeOf(outcome.error) === 'STORE_UNAVAILABLE');
  }
  isDown = false;
  assert.deepEqual(await deliver('x'), [ack()]);
  assert.equal(runs(), 1);
});
