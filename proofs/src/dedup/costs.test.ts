/**
 * What a message costs in its store, as docs/costs.md says it: operations, bytes on the wire, bytes that stay.
 * Operations are exact.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect as dial, createServer } from 'node:net';
import { test, type TestContext } from 'node:test';
import { type DocumentData, Firestore, Timestamp } from '@google-cloud/firestore';
import { Redis } from 'ioredis';
import { startFirestore } from 'pubsub-guarantees-emulator';
import { systemClock } from '../../../shared/src/clock.ts';
import { compose } from '../../../shared/src/handler.ts';
import { ack } from '../../../shared/src/outcome.ts';
import type { ClaimStore } from '../../../shared/src/dedup/claim-store.ts';
import { dedup } from '../../../shared/src/dedup/dedup.ts';
import { firestoreClaims } from '../../../shared/src/dedup/firestore.ts';
import { identify } from '../../../shared/src/dedup/identity.ts';
import { documentClaims } from '../../../shared/src/dedup/document-claims.ts';
import { memoryDocuments } from '../../../shared/src/dedup/memory.ts';
import { redisClaims } from '../../../shared/src/dedup/redis.ts';
import { documentedBytes } from './documented-costs.ts';
import { aContext, aMessage } from '../../../shared/src/testing/deliveries.ts';
import { faultyDocuments } from './fixture.ts';
import { hasRedisServer, startRedis } from './redis-server.ts';

process.env['METADATA_SERVER_DETECTION'] ??= 'none';

const page = readFileSync(new URL('../../../docs/costs.md', import.meta.url), 'utf8');
const MESSAGES = 50;
const clock = systemClock();
/** As long as the service's IDs are. */
const idOf = (number: number): string => String(1_234_567_890_000_000 + number);
const messageOf = (number: number) => aMessage(idOf(number), { dedupId: `order-${idOf(number)}` });

/** Delivers each message of a range once; answers whether all ended as `reason` says. */
async function deliverAll(store: ClaimStore, from: number, reason: 'handled' | 'duplicate'): Promise<void> {
  const handler = compose(async () => ack(), [dedup(store, { clock })]);
  for (let number = from; number < from + MESSAGES; number += 1) {
    assert.deepEqual(await handler(messageOf(number), aContext(clock)), ack(reason));
  }
}

/** Within a quarter of what the page says: clients and the protocols beneath change by bytes, the library by more. */
function assertDocumented(what: string, value: number, documented: number): void {
  const isNear = Math.abs(value - documented) <= documented / 4;
  assert.ok(isNear, `${what}: ${value.toFixed(1)}, and docs/costs.md says ${documented}`);
}

test('memory: a fresh message is a create and an update, a duplicate a failed create and a read', async () => {
  const documents = faultyDocuments(memoryDocuments({ clock }), clock, () => undefined);
  const handler = compose(async () => ack(), [dedup(documentClaims(documents, clock, 5_000), { clock })]);
  await handler(messageOf(1), aContext(clock));
  assert.deepEqual(documents.calls, ['create claim', 'update done']);
  await handler(messageOf(1), aContext(clock));
  assert.deepEqual(documents.calls.slice(2), ['create claim', 'read']);
});

const skip = hasRedisServer() ? false : 'redis-server is not installed';
test('Redis: two commands for a fresh message and one for a duplicate, and their bytes', {
  skip,
}, async (t) => {
  const server = await startRedis();
  const redis = new Redis(server.port, '127.0.0.1', { enableOfflineQueue: false });
  redis.on('error', () => {});
  t.after(async () => {
    redis.disconnect();
    await server.close();
  });
  const store = redisClaims(redis);
  await deliverAll(store, 0, 'handled');
  const stats = async () => {
    const [numbers, calls] = [await redis.info('stats'), await redis.info('commandstats')];
    const number = (name: string): number => Number(new RegExp(`${name}:(\\d+)`).exec(numbers)?.[1]);
    return {
      read: number('total_net_input_bytes'),
      written: number('total_net_output_bytes'),
      calls: Number(/cmdstat_evalsha:calls=(\d+)/.exec(calls)?.[1] ?? 0),
    };
  };
  const between = async (work: () => Promise<void>) => {
    await redis.config('RESETSTAT');
    const idle = await stats();
    await redis.config('RESETSTAT');
    await work();
    const busy = await stats();
    return {
      calls: (busy.calls - idle.calls) / MESSAGES,
      read: (busy.read - idle.read) / MESSAGES,
      written: (busy.written - idle.written) / MESSAGES,
    };
  };
  const fresh = await between(() => deliverAll(store, 1_000, 'handled'));
  const duplicate = await between(() => deliverAll(store, 1_000, 'duplicate'));
  t.diagnostic(`per message: fresh ${JSON.stringify(fresh)}, duplicate ${JSON.stringify(duplicate)}`);
  assert.deepEqual([fresh.calls, duplicate.calls], [2, 1]);
  const documented = documentedBytes(page, 'Redis, once');
  assertDocumented('sent for a fresh message', fresh.read, documented.fresh.sent);
  assertDocumented('answered for a fresh message', fresh.written, documented.fresh.answered);
  assertDocumented('sent for a duplicate', duplicate.read, documented.duplicate.sent);
  assertDocumented('answered for a duplicate', duplicate.written, documented.duplicate.answered);

  const [key] = await redis.keys('*');
  const kept = Number(await redis.memory('USAGE', key ?? ''));
  t.diagnostic(`kept: ${kept} bytes a record by MEMORY USAGE`);
  assertDocumented('kept', kept, documented.kept);
});

/** Counts what goes through: the embedded server is behind it. */
async function counting(t: TestContext, port: number) {
  const bytes = { sent: 0, answered: 0 };
  const server = createServer((socket) => {
    const inner = dial(port, '127.0.0.1').on('error', () => socket.destroy());
    socket.on('error', () => inner.destroy());
    // Small frames must not wait for each other.
    socket.setNoDelay();
    inner.setNoDelay();
    socket.on('data', (chunk: Buffer) => (bytes.sent += chunk.length));
    inner.on('data', (chunk: Buffer) => (bytes.answered += chunk.length));
    socket.pipe(inner).pipe(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return { bytes, port: (server.address() as AddressInfo).port };
}

test('Firestore: two writes for a fresh message, a failed write and a read for a duplicate, and their bytes', async (t) => {
  const server = await startFirestore({ clock });
  const [host = '', inner] = server.address.split(':');
  const { bytes, port } = await counting(t, Number(inner));
  const firestore = new Firestore({ projectId: 'demo-project', host, port, ssl: false });
  t.after(async () => {
    await firestore.terminate();
    await server.close();
  });
  const store = firestoreClaims(firestore);
  await deliverAll(store, 0, 'handled');
  const between = async (work: () => Promise<void>) => {
    const before = { ...bytes };
    await work();
    return {
      sent: (bytes.sent - before.sent) / MESSAGES,
      answered: (bytes.answered - before.answered) / MESSAGES,
    };
  };
  const fresh = await between(() => deliverAll(store, 1_000, 'handled'));
  const duplicate = await between(() => deliverAll(store, 1_000, 'duplicate'));
  t.diagnostic(`per message: fresh ${JSON.stringify(fresh)}, duplicate ${JSON.stringify(duplicate)}`);
  const documented = documentedBytes(page, 'Firestore, once');
  assertDocumented('sent for a fresh message', fresh.sent, documented.fresh.sent);
  assertDocumented('answered for a fresh message', fresh.answered, documented.fresh.answered);
  assertDocumented('sent for a duplicate', duplicate.sent, documented.duplicate.sent);
  assertDocumented('answered for a duplicate', duplicate.answered, documented.duplicate.answered);

  const { key } = identify(messageOf(1_000), aContext(clock));
  const snapshot = await firestore.collection('pubsub-guarantees-claims').doc(key).get();
  const kept = storedBytes(snapshot.ref.path, snapshot.data() ?? {});
  t.diagnostic(`kept: ${kept} bytes a record`);
  assertDocumented('kept', kept, documented.kept);
});

/** https://cloud.google.com/firestore/docs/storage-size: without indexes, which are off for this collection. */
function storedBytes(path: string, data: DocumentData): number {
  const text = (value: string): number => Buffer.byteLength(value) + 1;
  const name = path.split('/').reduce((sum, part) => sum + text(part), 16);
  const fields = Object.entries(data).reduce((sum, [field, value]: [string, unknown]) => {
    if (typeof value === 'string') return sum + text(field) + text(value);
    assert.ok(typeof value === 'number' || value instanceof Timestamp, `${field} is of another type`);
    return sum + text(field) + 8;
  }, 0);
  return name + fields + 32;
}
