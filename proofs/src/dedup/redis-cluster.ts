/**
 * A Redis cluster for tests: three masters on the loopback interface with a third of the slots each, introduced to one
 * another by commands. It saves nothing, and is ended by its own process IDs.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Cluster, Redis } from 'ioredis';
import { freePorts } from 'pubsub-guarantees-emulator';
import { startRedis } from './redis-server.ts';

export type RunningCluster = Readonly<{
  ports: readonly number[];
  connect(): Cluster;
  close(): Promise<void>;
}>;

const MASTERS = 3;
const SLOTS = 16_384;
const TURNS = 2_400;

export async function startRedisCluster(): Promise<RunningCluster> {
  const free = await freePorts(2 * MASTERS);
  const ports = free.slice(0, MASTERS);
  const busPorts = free.slice(MASTERS);
  const servers = await Promise.all(
    ports.map((port, index) =>
      startRedis(port, ['--cluster-enabled', 'yes', '--cluster-port', String(busPorts[index])]),
    ),
  );
  const close = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.close()));
  };
  const clients = ports.map((port) => new Redis(port, '127.0.0.1'));
  try {
    await Promise.all(clients.map((client, index) => giveSlots(client, index)));
    const [first, ...others] = clients;
    for (const index of others.keys()) {
      await first?.call(
        'CLUSTER',
        'MEET',
        '127.0.0.1',
        String(ports[index + 1]),
        String(busPorts[index + 1]),
      );
    }
    for (const client of clients) await agreed(client);
  } catch (error) {
    await close();
    throw error;
  } finally {
    for (const client of clients) client.disconnect();
  }
  return {
    ports,
    connect: () => new Cluster(ports.map((port) => ({ port, host: '127.0.0.1' }))).on('error', () => {}),
    close,
  };
}

async function giveSlots(client: Redis, index: number): Promise<void> {
  // Of their own epochs, so that they need not decide which of them is older.
  await client.call('CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1));
  const first = Math.ceil((index * SLOTS) / MASTERS);
  const last = Math.ceil(((index + 1) * SLOTS) / MASTERS) - 1;
  await client.call('CLUSTER', 'ADDSLOTSRANGE', String(first), String(last));
}

async function agreed(client: Redis): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) {
    const text = String(await client.call('CLUSTER', 'INFO'));
    if (/cluster_state:ok/.test(text) && /cluster_slots_ok:16384/.test(text)) return;
    await pause(50);
  }
  throw new Error('the masters of the cluster did not agree within two minutes');
}
