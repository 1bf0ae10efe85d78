/**
 * What is stored in Redis and sent to it: short records and what can be read from them, and calls that are sent
 * together.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { codeOf } from '../../../shared/src/errors.ts';
import { hashOf } from '../../../shared/src/hash.ts';
import type { ClaimAnswer, ClaimStore } from '../../../shared/src/dedup/claim-store.ts';
import { claimed, claimStoreContract, request } from '../../../shared/src/dedup/contract.ts';
import { redisClaims } from '../../../shared/src/dedup/redis.ts';
import { recordKey } from '../../../shared/src/dedup/redis-records.ts';
import { LINGER_MS } from '../../../shared/src/dedup/redis-scripts.ts';
import { hasRedisServer, startRedis } from './redis-server.ts';

const PREFIX = 't:';
const hashed = (fields: Parameters<typeof request>[0] = {}) => {
  const asked = request(fields);
  return request({ ...asked, key: hashOf(asked.key), fingerprint: hashOf(asked.fingerprint) });
};

/** What comes back in a claim is one already. */
const hashOnce = (text: string): string => (/^[\w-]{43}$/.test(text) ? text : hashOf(text));

/** As the middleware asks: key and fingerprint are hashes. Answers are given under the contract's short names. */
function withHashes(inner: ClaimStore): ClaimStore {
  const known = new Map<string, string>();
  const names = (answer: ClaimAnswer): ClaimAnswer => {
    if (answer.kind !== 'duplicate' && answer.kind !== 'conflict') return answer;
    const [, name = answer.fingerprint] =
      [...known].find(([whole]) => whole.startsWith(answer.fingerprint)) ?? [];
    return { ...answer, fingerprint: name };
  };
  return {
    ...inner,
    async claim(asked) {
      const fingerprint = hashOnce(asked.fingerprint);
      known.set(fingerprint, asked.fingerprint);
      return names(await inner.claim({ ...asked, key: hashOnce(asked.key), fingerprint }));
    },
  };
}

async function withStore(run: (redis: Redis, store: ClaimStore) => Promise<void>): Promise<void> {
  const server = await startRedis();
  const redis = new Redis(server.port, '127.0.0.1');
  redis.on('error', () => {});
  try {
    await run(redis, redisClaims(redis, { prefix: PREFIX, callTimeout: '60s' }));
  } finally {
    redis.disconnect();
    await server.close();
  }
}

if (!hasRedisServer()) {
  test('records in Redis', { skip: 'no redis-server on the PATH' }, () => {});
} else {
  claimStoreContract('Redis, with hashes as the middleware makes them', async () => {
    const server = await startRedis();
    const redis = new Redis(server.port, '127.0.0.1');
    redis.on('error', () => {});
    return {
      store: withHashes(redisClaims(redis, { prefix: PREFIX, callTimeout: '60s' })),
      pass: (ms) => pause(ms),
      close: async () => {
        redis.disconnect();
        await server.close();
      },
    };
  });

  describe('records in Redis', () => {
    for (const [what, messageId, bytes] of [
      ['a number as the service gives', '11893021884321456', 21],
      ['a short number', '7', 21],
      ['the longest number', '9999999999999999999', 21],
      ['zeros inside a number', '1000000000000000001', 21],
      ['a UUID', '0a1b2c3d-0000-4e5f-8000-00000000000f', 28],
      ['a UUID in capitals', '0A1B2C3D-0000-4E5F-8000-00000000000F', 48],
      ['a number with a zero in front', '017', 15],
      ['a number that is too long', '12345678901234567890', 32],
      ['text', 'a b\nc ł', 20],
      ['nothing', '', 12],
    ] as const) {
      test(`${what} comes back whole from ${bytes} bytes, and other data is a conflict`, () =>
        withStore(async (redis, store) => {
          const first = hashed({ messageId });
          assert.equal(await store.complete((await claimed(store, first)).held), 'completed');
          assert.equal(await redis.strlen(recordKey(PREFIX, first.key)), bytes);
          const { fingerprint } = first;
          const again = await store.claim({ ...first, owner: 'another' });
          assert.deepEqual(again, { kind: 'duplicate', fingerprint, messageId });
          const other = await store.claim({ ...first, owner: 'another', fingerprint: hashOf('other') });
          assert.ok(other.kind === 'conflict' && other.messageId === messageId);
          assert.equal(other.fingerprint, fingerprint.slice(0, 12));
        }));
    }

    test('a completion that comes twice is the same one; that of an earlier claim is stolen', () =>
      withStore(async (redis, store) => {
        const asked = hashed({ messageId: randomUUID() });
        const first = await claimed(store, asked);
        await redis.pexpire(recordKey(PREFIX, asked.key), LINGER_MS - 1);
        const second = await claimed(store, { ...asked, owner: 'another' });
        assert.equal(await store.complete(second.held), 'completed');
        assert.equal(await store.complete(second.held), 'completed');
        assert.equal(await store.complete(first.held), 'stolen');
      }));

    test('what version 1 wrote is unrecognised, a claim and a completed record, and stays as it is', () =>
      withStore(async (redis, store) => {
        for (const value of ['1cX 17 A 7', '1dX 17 A a 7']) {
          const asked = hashed();
          await redis.set(recordKey(PREFIX, asked.key), value, 'PX', LINGER_MS + 60_000);
          assert.equal((await store.claim(asked)).kind, 'unrecognised');
          assert.equal(await redis.get(recordKey(PREFIX, asked.key)), value);
        }
      }));

    test('text that only looks like a packed record is unrecognised', () =>
      withStore(async (redis, store) => {
        for (const value of [
          '\u0001short',
          '\u0002'.padEnd(27, 'x'),
          '\u0004'.padEnd(28, 'x'),
          '3'.repeat(28),
        ]) {
          const asked = hashed();
          await redis.set(recordKey(PREFIX, asked.key), value, 'PX', 60_000);
          assert.equal((await store.claim(asked)).kind, 'unrecognised', JSON.stringify(value));
        }
      }));

    test('calls of one turn are sent together, each with its own answer', () =>
      withStore(async (redis, store) => {
        const asked = Array.from({ length: 70 }, () => hashed());
        await store.claim(hashed());
        const [busy, done] = [asked[3] ?? hashed(), asked[40] ?? hashed()];
        await claimed(store, { ...busy, owner: 'another' });
        await store.complete((await claimed(store, { ...done, owner: 'another' })).held);
        await redis.config('RESETSTAT');
        const answers = await Promise.all(asked.map((one) => store.claim(one)));
        assert.match(await redis.info('commandstats'), /cmdstat_evalsha:calls=3,/);
        assert.deepEqual([answers[3]?.kind, answers[40]?.kind], ['inProgress', 'duplicate']);
        assert.equal(answers.filter(({ kind }) => kind === 'claimed').length, 68);
        const held = answers.flatMap((answer) => (answer.kind === 'claimed' ? [answer.held] : []));
        const completed = await Promise.all(held.map((one) => store.complete(one)));
        assert.ok(completed.every((answer) => answer === 'completed'));
        const again = await Promise.all(asked.map((one) => store.claim({ ...one, owner: 'third' })));
        for (const [index, answer] of again.entries()) {
          if (index === 3) continue;
          assert.ok(answer.kind === 'duplicate', `${index} is ${answer.kind}`);
          // The claim that another owner completed has its own ID as well: each record is under its own key.
          assert.equal(answer.messageId, asked[index]?.messageId);
        }
      }));

    test('where the keys of one command must share a slot, they are sent one by one from then on', () =>
      withStore(async (redis, store) => {
        await store.claim(hashed());
        let refused = 0;
        // As a cluster behind a proxy answers.
        const proxied = new Proxy(redis, {
          get(target, name) {
            if (name !== 'evalsha') return Reflect.get(target, name, target) as unknown;
            return (sha: string, keys: number, ...rest: string[]) => {
              if (keys === 1) return target.evalsha(sha, keys, ...rest);
              refused += 1;
              const error = new Error("CROSSSLOT Keys in request don't hash to the same slot");
              error.name = 'ReplyError';
              return Promise.reject(error);
            };
          },
        });
        const behind = redisClaims(proxied, { prefix: PREFIX });
        for (let time = 0; time < 2; time += 1) {
          const answers = await Promise.all(Array.from({ length: 5 }, () => behind.claim(hashed())));
          assert.ok(answers.every(({ kind }) => kind === 'claimed'));
        }
        assert.equal(refused, 1);
      }));

    test('calls that were sent together fail together, each with an error of its own', () =>
      withStore(async (redis, store) => {
        await redis.config('SET', 'maxmemory', '1');
        const results = await Promise.allSettled([store.claim(hashed()), store.claim(hashed())]);
        const reasons = results.map((result) => (result.status === 'rejected' ? result.reason : undefined));
        assert.deepEqual(reasons.map(codeOf), ['STORE_UNAVAILABLE', 'STORE_UNAVAILABLE']);
        assert.notEqual(reasons[0], reasons[1]);
      }));
  });
}
