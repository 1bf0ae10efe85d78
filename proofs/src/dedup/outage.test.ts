import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Firestore } from '@google-cloud/firestore';
import { Redis } from 'ioredis';
import { createFaults, freePort, startFirestore, systemClock } from 'pubsub-guarantees-emulator';
import { firestoreClaims } from '../../../shared/src/dedup/firestore.ts';
import { redisClaims } from '../../../shared/src/dedup/redis.ts';
import { type LoadResult, loadThroughOutage, type Outage } from './outage.ts';
import { hasRedisServer, startRedis } from './redis-server.ts';

// Otherwise the client looks for a machine of Google's to run on, and warns that there is none.
process.env['METADATA_SERVER_DETECTION'] ??= 'none';

type Policy = 'retry' | 'process';

/** A real process, which is killed. It saves nothing, so that completed records are lost too. */
async function withRedis(run: (outage: Outage) => Promise<void>): Promise<void> {
  const port = await freePort();
  let server = await startRedis(port);
  const redis = new Redis(port, '127.0.0.1', { retryStrategy: () => 50 }).on('error', () => {});
  try {
    await run({
      store: redisClaims(redis, { callTimeout: '300ms' }),
      patient: redisClaims(redis, { callTimeout: '60s' }),
      takeDown: () => server.close(),
      bringUp: async () => void (server = await startRedis(port)),
    });
  } finally {
    redis.disconnect();
    await server.close();
  }
}

/** The local stack's server, made unreachable by a fault, and back with all of its data. */
async function withFirestore(run: (outage: Outage) => Promise<void>): Promise<void> {
  const faults = createFaults();
  const server = await startFirestore({ clock: systemClock(), faults });
  const [host = '', port] = server.address.split(':');
  const firestore = new Firestore({ projectId: 'demo-project', host, port: Number(port), ssl: false });
  try {
    let up = Promise.resolve();
    await run({
      store: firestoreClaims(firestore, { callTimeout: '1s' }),
      patient: firestoreClaims(firestore, { callTimeout: '60s' }),
      async takeDown() {
        await faults.restart('firestore', { state: 'kept', downMs: DOWN_MS });
        up = pause(DOWN_MS);
      },
      bringUp: () => up,
    });
  } finally {
    await firestore.terminate();
    await server.close();
  }
}

/** Longer than the load treats the store as down, so that it is down for all of that time. */
const DOWN_MS = 2_000;

function check(policy: Policy, result: LoadResult, keepsRecords: boolean): void {
  const { messages, acked, ackedUnworked, whileDown, ackedWhileDown, again, andAgain } = result;
  const { markedBefore, unansweredBefore } = result;
  assert.deepEqual(
    [acked, ackedUnworked],
    [messages, 0],
    'nothing is lost, and nothing acked without its work',
  );
  assert.ok(
    markedBefore <= unansweredBefore,
    `${markedBefore} runs are marked while the store is there, which left ${unansweredBefore} claims without an answer`,
  );
  assert.equal(whileDown.unmarked, 0, 'no run begins without a claim or a mark');
  if (policy === 'retry') {
    assert.deepEqual([whileDown.marked, ackedWhileDown], [0, 0], 'without the store nothing is done');
    if (keepsRecords)
      assert.ok(
        again.every((kind) => kind === 'duplicate'),
        'every record is there',
      );
  } else {
    assert.ok(whileDown.marked > 0 && ackedWhileDown > 0, 'work goes on without the store');
  }
  assert.ok(
    again.every((kind) => kind === 'handled' || kind === 'duplicate'),
    again.join(' '),
  );
  assert.ok(
    andAgain.every((kind) => kind === 'duplicate'),
    'with the store the guarantee is back',
  );
}

// Side by side: most of the time goes by in waiting for servers and leases.
describe('a store that goes down and comes back under load', { concurrency: true }, () => {
  for (const policy of ['retry', 'process'] as const) {
    test(`Firestore, policy ${policy}`, (t) =>
      withFirestore(async (outage) => {
        const result = await loadThroughOutage(outage, policy);
        t.diagnostic(JSON.stringify({ ...result, again: undefined, andAgain: undefined }));
        check(policy, result, true);
      }));

    const name = `B36: a Redis that is killed and started again, policy ${policy}`;
    if (!hasRedisServer()) {
      test(name, { skip: 'no redis-server on the PATH' }, () => {});
    } else {
      test(name, (t) =>
        withRedis(async (outage) => {
          const result = await loadThroughOutage(outage, policy);
          t.diagnostic(JSON.stringify({ ...result, again: undefined, andAgain: undefined }));
          check(policy, result, false);
        }),
      );
    }
  }
});
