import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { freePort } from 'pubsub-guarantees-emulator';
import { systemClock } from '../../../shared/src/clock.ts';
import { codeOf } from '../../../shared/src/errors.ts';
import { compose } from '../../../shared/src/handler.ts';
import { ack } from '../../../shared/src/outcome.ts';
import { virtualClock } from '../../../shared/src/testing/index.ts';
import { claimed, request } from '../../../shared/src/dedup/contract.ts';
import { dedup } from '../../../shared/src/dedup/dedup.ts';
import { memoryClaims } from '../../../shared/src/dedup/memory.ts';
import { evictionWarning, redisClaims } from '../../../shared/src/dedup/redis.ts';
import type { DedupOptions } from '../../../shared/src/dedup/settings.ts';
import { aContext, aMessage } from '../../../shared/src/testing/deliveries.ts';
import { hasRedisServer, startRedis } from './redis-server.ts';

test('B10: copies that a publisher’s retries made run once by their dedupId, and not without one', async () => {
  const clock = virtualClock();
  const runs: string[] = [];
  const deliver = compose(
    async ({ id }) => {
      runs.push(id);
      return ack();
    },
    [dedup(memoryClaims({ clock }), { clock })],
  );
  // Stored, answered UNAVAILABLE, and sent again: three messages of the broker's, one of the publisher's.
  const copies = ['101', '102', '103'];
  const named = copies.map((id) => deliver(aMessage(id, { dedupId: 'order-7' }), aContext(clock)));
  const outcomes = await clock.until(Promise.all(named));
  assert.deepEqual(outcomes, [ack(), ack('duplicate'), ack('duplicate')]);
  assert.deepEqual(runs, ['101']);
  for (const id of copies) assert.deepEqual(await deliver(aMessage(id), aContext(clock)), ack());
  assert.deepEqual(runs, ['101', ...copies], 'the message ID says nothing of the copies');
});

test('B36: no server listens where Redis should be: a retry, or a marked run where that is asked for', async () => {
  const port = await freePort();
  const redis = new Redis(port, '127.0.0.1', { retryStrategy: () => 50 }).on('error', () => {});
  const marks: unknown[] = [];
  const deliver = (options: DedupOptions) =>
    compose(
      async (_message, { possibleDuplicate }) => {
        marks.push(possibleDuplicate);
        return ack();
      },
      [dedup(redisClaims(redis, { callTimeout: '200ms' }), options)],
    )(aMessage('1'), aContext(systemClock()));
  try {
    const refused = await deliver({});
    assert.equal(refused.kind === 'retry' && codeOf(refused.error), 'STORE_UNAVAILABLE');
    assert.deepEqual(marks, []);
    assert.deepEqual(await deliver({ onStoreUnavailable: 'process' }), ack());
    assert.deepEqual(marks, [true]);
  } finally {
    redis.disconnect();
  }
});

const EVICTED = 'B44: records that are evicted cost a rerun each and no error, and the policy is warned of';
if (!hasRedisServer()) {
  test(EVICTED, { skip: 'no redis-server on the PATH' }, () => {});
} else {
  test(EVICTED, async (t) => {
    const server = await startRedis(undefined, ['--maxmemory', '2mb', '--maxmemory-policy', 'volatile-lru']);
    const redis = new Redis(server.port, '127.0.0.1').on('error', () => {});
    try {
      assert.match((await evictionWarning(redis)) ?? '', /volatile-lru/);
      const store = redisClaims(redis);
      const asked = Array.from({ length: 10_000 }, () => request());
      const inBatches = async (work: (one: (typeof asked)[number]) => Promise<unknown>): Promise<void> => {
        for (let first = 0; first < asked.length; first += 500)
          await Promise.all(asked.slice(first, first + 500).map(work));
      };
      await inBatches(async (one) => store.complete((await claimed(store, one)).held));
      assert.ok((await redis.dbsize()) < asked.length, 'some are gone');
      const kinds: Record<string, number> = {};
      await inBatches(async ({ key }) => {
        const { kind } = await store.claim(request({ key }));
        kinds[kind] = (kinds[kind] ?? 0) + 1;
      });
      t.diagnostic(JSON.stringify(kinds));
      assert.deepEqual(
        Object.keys(kinds).filter((kind) => kind !== 'duplicate' && kind !== 'claimed'),
        [],
      );
      assert.ok((kinds['claimed'] ?? 0) > 0);
    } finally {
      redis.disconnect();
      await server.close();
    }
  });
}
