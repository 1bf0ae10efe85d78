import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { systemClock } from '../../../shared/src/clock.ts';
import { compose } from '../../../shared/src/handler.ts';
import { ack } from '../../../shared/src/outcome.ts';
import { claimed, claimStoreContract, request } from '../../../shared/src/dedup/contract.ts';
import { dedup } from '../../../shared/src/dedup/dedup.ts';
import { redisClaims } from '../../../shared/src/dedup/redis.ts';
import { aContext, aMessage } from '../../../shared/src/testing/deliveries.ts';
import { type RunningCluster, startRedisCluster } from './redis-cluster.ts';
import { recordKey } from '../../../shared/src/dedup/redis-records.ts';
import { hasRedisServer } from './redis-server.ts';

const PREFIX = 'test:claims:';

if (!hasRedisServer()) {
  test('claims in a Redis cluster', { skip: 'no redis-server on the PATH' }, () => {});
} else {
  claimStoreContract('Redis in cluster mode', async () => {
    const server = await startRedisCluster();
    const cluster = server.connect();
    return {
      store: redisClaims(cluster, { prefix: PREFIX, callTimeout: '60s' }),
      pass: (ms) => pause(ms),
      plantUnrecognised: [
        {
          what: 'no expiry',
          plant: async (key) => void (await cluster.set(recordKey(PREFIX, key), '1cX 1 A 7')),
        },
        {
          what: 'another type',
          plant: async (key) => void (await cluster.hset(recordKey(PREFIX, key), 'a', 'b')),
        },
      ],
      close: async () => {
        cluster.disconnect();
        await server.close();
      },
    };
  });

  describe('claims in a Redis cluster', () => {
    const withCluster = async (run: (server: RunningCluster) => Promise<void>): Promise<void> => {
      const server = await startRedisCluster();
      try {
        await run(server);
      } finally {
        await server.close();
      }
    };

    test('B44: every script has one key, wherever its slot is; the keys are on all three masters', () =>
      withCluster(async ({ ports, connect }) => {
        const cluster = connect();
        try {
          const store = redisClaims(cluster, { prefix: PREFIX, callTimeout: '60s' });
          const deliver = compose(async () => ack(), [dedup(store)]);
          const messages = Array.from({ length: 60 }, (_, index) => aMessage(String(index)));
          const context = aContext(systemClock());
          for (const expected of ['handled', 'duplicate']) {
            const outcomes = await Promise.all(messages.map((message) => deliver(message, context)));
            assert.ok(outcomes.every((outcome) => outcome.kind === 'ack' && outcome.reason === expected));
          }
          const sizes = await Promise.all(ports.map(async (port) => sizeOf(port)));
          assert.equal(
            sizes.reduce((sum, size) => sum + size),
            60,
          );
          assert.ok(
            sizes.every((size) => size > 0),
            `${sizes.join(', ')} keys`,
          );
        } finally {
          cluster.disconnect();
        }
      }));

    test('B44: a slot that moves to another master costs neither a claim nor an error', () =>
      withCluster(async ({ ports, connect }) => {
        const cluster = connect();
        const nodes = ports.map((port) => new Redis(port, '127.0.0.1'));
        try {
          const store = redisClaims(cluster, { prefix: PREFIX, callTimeout: '60s' });
          const { held } = await claimed(store, request());
          const key = recordKey(PREFIX, held.request.key);
          const slot = String(await nodes[0]?.call('CLUSTER', 'KEYSLOT', key));
          const sizes = await Promise.all(nodes.map((node) => node.dbsize()));
          const [from, to] = [sizes.indexOf(1), (sizes.indexOf(1) + 1) % nodes.length];
          const ids = await Promise.all(
            nodes.map(async (node) => String(await node.call('CLUSTER', 'MYID'))),
          );
          const tell = (node: number, ...words: (string | undefined)[]): Promise<unknown> =>
            nodes[node]!.call('CLUSTER', 'SETSLOT', slot, ...words.map(String));
          await tell(to, 'IMPORTING', ids[from]);
          await tell(from, 'MIGRATING', ids[to]);
          await nodes[from]!.migrate('127.0.0.1', ports[to]!, key, 0, 5_000);
          // In between the old master asks to ask the new one, which does not know the script.
          assert.equal((await store.claim(request({ key: held.request.key }))).kind, 'inProgress');
          for (const index of [to, from]) await tell(index, 'NODE', ids[to]);
          assert.equal(await store.complete(held), 'completed');
          assert.equal((await store.claim(request({ key: held.request.key }))).kind, 'duplicate');
        } finally {
          for (const node of nodes) node.disconnect();
          cluster.disconnect();
        }
      }));
  });
}

async function sizeOf(port: number): Promise<number> {
  const node = new Redis(port, '127.0.0.1');
  const size = await node.dbsize();
  node.disconnect();
  return size;
}
