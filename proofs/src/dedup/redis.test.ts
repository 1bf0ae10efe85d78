import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect as connectTo, createServer } from 'node:net';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { turnsDuring } from 'pubsub-guarantees-emulator';
import { codeOf } from '../../../shared/src/errors.ts';
import type { ClaimStore } from '../../../shared/src/dedup/claim-store.ts';
import { claimed, claimStoreContract, request } from '../../../shared/src/dedup/contract.ts';
import { evictionWarning, redisClaims } from '../../../shared/src/dedup/redis.ts';
import { LINGER_MS } from '../../../shared/src/dedup/redis-scripts.ts';
import { recordKey } from '../../../shared/src/dedup/redis-records.ts';
import { hasRedisServer, type RunningRedis, startRedis } from './redis-server.ts';

const PREFIX = 'test:claims:';

function connect(server: RunningRedis): Redis {
  const redis = new Redis(server.port, '127.0.0.1', { retryStrategy: () => 50 });
  redis.on('error', () => {});
  return redis;
}

/**
 * A server, a client and a store for one test. A call of `store` is waited for: on a busy machine an answer is late
 * although the server is there. `hasty` is for a server that gives none.
 */
async function withRedis(
  run: (parts: { server: RunningRedis; redis: Redis; store: ClaimStore; hasty: ClaimStore }) => Promise<void>,
  flags: readonly string[] = [],
): Promise<void> {
  const server = await startRedis(undefined, flags);
  const redis = connect(server);
  try {
    const of = (callTimeout: '500ms' | '60s') => redisClaims(redis, { prefix: PREFIX, callTimeout });
    await run({ server, redis, store: of('60s'), hasty: of('500ms') });
  } finally {
    redis.disconnect();
    await server.close();
  }
}

const unavailable = (error: unknown): boolean => codeOf(error) === 'STORE_UNAVAILABLE';

if (!hasRedisServer()) {
  test('claims in Redis', { skip: 'no redis-server on the PATH' }, () => {});
} else {
  claimStoreContract('Redis', async () => {
    const server = await startRedis();
    const redis = connect(server);
    return {
      store: redisClaims(redis, { prefix: PREFIX, callTimeout: '60s' }),
      pass: (ms) => pause(ms),
      plantUnrecognised: [
        {
          what: 'no expiry',
          plant: async (key) => void (await redis.set(recordKey(PREFIX, key), '1cX 1 A 7')),
        },
        {
          what: 'another form',
          plant: async (key) => void (await redis.set(recordKey(PREFIX, key), 'done', 'PX', 60_000)),
        },
        {
          what: 'another version',
          plant: async (key) => void (await redis.set(recordKey(PREFIX, key), '9cX 1 A 7', 'PX', 60_000)),
        },
        {
          what: 'another type',
          plant: async (key) => void (await redis.hset(recordKey(PREFIX, key), 'a', 'b')),
        },
      ],
      close: async () => {
        redis.disconnect();
        await server.close();
      },
    };
  });

  describe('claims in Redis', () => {
    test('O8: a claim sent twice by the client is claimed once, and keeps its expiry', () =>
      withRedis(async ({ redis, store }) => {
        const asked = request({ leaseMs: 60_000 });
        await claimed(store, asked);
        await redis.pexpire(recordKey(PREFIX, asked.key), LINGER_MS + 5_000);
        assert.equal((await claimed(store, asked)).adopted, true);
        assert.ok((await redis.pttl(recordKey(PREFIX, asked.key))) <= LINGER_MS + 5_000);
      }));

    test('keeps a key for the lease and a quarter of an hour, then for the retention, in one short value', () =>
      withRedis(async ({ redis, store }) => {
        const { held } = await claimed(store, request({ leaseMs: 30_000, retentionMs: 600_000 }));
        const key = recordKey(PREFIX, held.request.key);
        const left = async (): Promise<number> => Math.ceil((await redis.pttl(key)) / 1_000);
        const claimedFor = await left();
        assert.ok(claimedFor > 925 && claimedFor <= 930, String(claimedFor));
        await store.complete(held);
        const doneFor = await left();
        assert.ok(doneFor > 590 && doneFor <= 600, String(doneFor));
        assert.ok((await redis.strlen(key)) < 200);
        assert.equal(await redis.dbsize(), 1);
      }));

    test('a delivery that takes a claim over has a greater token, even where the server’s clock went back', () =>
      withRedis(async ({ redis, store }) => {
        const { key } = request();
        const ahead = '9007199254740000';
        await redis.set(recordKey(PREFIX, key), `2cdead ${ahead}`, 'PX', LINGER_MS);
        const next = await claimed(store, request({ key }));
        assert.deepEqual([next.recovered, next.fencingToken], [true, String(BigInt(ahead) + 1n)]);
        assert.equal(await store.complete(next.held), 'completed');
      }));

    test('a claim that ran out, and was another’s, does not keep finished work from being recorded', () =>
      withRedis(async ({ redis, store }) => {
        const { held } = await claimed(store, request());
        await redis.set(recordKey(PREFIX, held.request.key), '2cother 1', 'PX', LINGER_MS);
        assert.equal(await store.complete(held), 'completed');
        assert.equal((await store.claim(request({ key: held.request.key }))).kind, 'duplicate');
      }));

    test('a renewal that comes after the lease revives nothing', () =>
      withRedis(async ({ redis, store }) => {
        const { held } = await claimed(store, request());
        await redis.pexpire(recordKey(PREFIX, held.request.key), LINGER_MS - 1);
        assert.deepEqual(await store.renew(held, 1), { kind: 'lost' });
        assert.equal((await claimed(store, request({ key: held.request.key }))).recovered, true);
      }));

    test('a message ID with spaces and line breaks comes back whole', () =>
      withRedis(async ({ store }) => {
        const messageId = 'a b\nc d';
        const { held } = await claimed(store, request({ messageId }));
        await store.complete(held);
        const answer = await store.claim(request({ key: held.request.key }));
        assert.deepEqual(answer, { kind: 'duplicate', fingerprint: 'A', messageId });
      }));

    test('one command a call once the server knows the scripts, and it learns them again after a flush', () =>
      withRedis(async ({ redis, store }) => {
        const cycle = async (): Promise<void> => {
          await store.complete((await claimed(store, request())).held);
        };
        const commands = async (): Promise<number> =>
          Number(/total_commands_processed:(\d+)/.exec(await redis.info('stats'))?.[1]);
        await cycle();
        await redis.config('RESETSTAT');
        await cycle();
        const text = await redis.info('commandstats');
        assert.match(text, /cmdstat_evalsha:calls=2,/);
        assert.doesNotMatch(text, /cmdstat_eval:/);
        assert.ok((await commands()) > 0);
        await redis.script('FLUSH');
        await cycle();
      }));

    test('B36: a server that is gone is unavailable within the bound, and nothing is queued for later', () =>
      withRedis(async ({ server, redis, store, hasty }) => {
        const { held } = await claimed(store, request());
        await server.close();
        if (redis.status === 'ready') await once(redis, 'close');
        const asked = request();
        const both = async () => {
          await assert.rejects(hasty.claim(asked), unavailable);
          await assert.rejects(hasty.complete(held), unavailable);
        };
        assert.ok((await turnsDuring(both)) < 3_000);
        const again = await startRedis(server.port);
        try {
          // The claim that failed was not sent late: the key is free for another owner.
          assert.equal((await claimed(store, request({ key: asked.key }))).adopted, false);
          // The lost record of a finished message is written anew.
          assert.equal(await store.complete(held), 'completed');
        } finally {
          await again.close();
        }
      }));

    test('a burst of calls without a connection leaves no listener for each, and all get one', async () => {
      const server = await startRedis();
      const redis = new Redis(server.port, '127.0.0.1', { enableOfflineQueue: false });
      redis.on('error', () => {});
      try {
        const before = redis.listenerCount('ready');
        const store = redisClaims(redis, { prefix: PREFIX, callTimeout: '60s' });
        const answers = Array.from({ length: 50 }, () => store.claim(request()));
        assert.ok(redis.listenerCount('ready') <= before + 1, `${redis.listenerCount('ready')} listeners`);
        assert.ok((await Promise.all(answers)).every(({ kind }) => kind === 'claimed'));
        assert.equal(redis.listenerCount('ready'), before);
      } finally {
        redis.disconnect();
        await server.close();
      }
    });

    test('a client that connects when it is first used does so, and keeps no claim for later', () =>
      withRedis(async ({ server, redis: other }) => {
        let isUp = false;
        const proxy = createServer((socket) => {
          socket.on('error', () => {});
          if (!isUp) return void socket.destroy();
          const inner = connectTo(server.port, '127.0.0.1').on('error', () => {});
          socket.pipe(inner).pipe(socket);
        }).listen(0, '127.0.0.1');
        await once(proxy, 'listening');
        const options = { lazyConnect: true, retryStrategy: () => 50 };
        const lazy = new Redis(server.port, '127.0.0.1', { ...options, enableOfflineQueue: false });
        const tooEarly = new Redis((proxy.address() as AddressInfo).port, '127.0.0.1', options);
        for (const client of [lazy, tooEarly]) client.on('error', () => {});
        try {
          await claimed(redisClaims(lazy, { prefix: PREFIX, callTimeout: '60s' }), request());
          const early = redisClaims(tooEarly, { prefix: PREFIX, callTimeout: '300ms' });
          await assert.rejects(early.claim(request()), unavailable);
          isUp = true;
          await once(tooEarly, 'ready');
          await tooEarly.ping();
          assert.equal(await other.dbsize(), 1, 'only the claim that was answered');
        } finally {
          lazy.disconnect();
          tooEarly.disconnect();
          proxy.close();
        }
      }));

    test('B36: a claim whose reply did not come in time is entered again by its owner', () =>
      withRedis(async ({ server, store, hasty }) => {
        const asked = request();
        const other = connect(server);
        try {
          await other.client('PAUSE', 2_000, 'ALL');
          await assert.rejects(hasty.claim(asked), unavailable);
          assert.equal((await claimed(store, asked)).adopted, true);
        } finally {
          other.disconnect();
        }
      }));

    test('B36: OOM is unavailable, not a verdict', () =>
      withRedis(async ({ redis, store }) => {
        await claimed(store, request());
        await redis.config('SET', 'maxmemory', '1');
        await assert.rejects(
          store.claim(request()),
          (error) =>
            unavailable(error) && error instanceof Error && /maxmemory is reached/.test(error.message),
        );
      }));

    test('B36: READONLY at completion is unavailable, not a verdict', () =>
      withRedis(async ({ redis, store }) => {
        const { held } = await claimed(store, request());
        await redis.replicaof('127.0.0.1', 1);
        await assert.rejects(
          store.complete(held),
          (error) => unavailable(error) && error instanceof Error && /replica/.test(error.message),
        );
        await redis.replicaof('NO', 'ONE');
        assert.equal(await store.complete(held), 'completed');
      }));

    test('B44: lost keys cost a rerun and no error; the eviction policy is reported', () =>
      withRedis(async ({ redis, store }) => {
        const { held } = await claimed(store, request());
        await store.complete(held);
        await redis.flushall();
        assert.equal((await store.claim(request({ key: held.request.key }))).kind, 'claimed');
        assert.equal(await evictionWarning(redis), undefined);
        await redis.config('SET', 'maxmemory-policy', 'volatile-lru');
        assert.match((await evictionWarning(redis)) ?? '', /volatile-lru/);
      }));

    test('B44: says nothing of the eviction policy where CONFIG is forbidden', () =>
      withRedis(
        async ({ redis, store }) => {
          assert.equal(await evictionWarning(redis), undefined);
          await claimed(store, request());
        },
        ['--rename-command', 'CONFIG', '', '--maxmemory-policy', 'volatile-lru'],
      ));
  });
}
