/**
 * message-queue-toolkit's Redis de-duplication store and lock, in the steps of its own Pub/Sub consumer: lock, look
 * whether the key is there, run the handler, set the key, release the lock. What that consumer does besides (parsing the
 * message, metrics, logs) is left out. https://github.com/kibertoad/message-queue-toolkit
 */
import { createRequire } from 'node:module';
import type { Message } from 'pubsub-guarantees';

type PeerMessage = Readonly<{ id: string; deduplicationId: string; deduplicationOptions: object }>;
type Lock = Readonly<{ release(): Promise<void> }>;

/** The part of its base class for consumers that de-duplicates. */
type QueueService = Readonly<{
  isDeduplicationEnabledForMessage(message: PeerMessage): boolean;
  acquireLockForMessage(message: PeerMessage): Promise<Readonly<{ result?: Lock; error?: Error }>>;
  isMessageDuplicated(message: PeerMessage, requester: string): Promise<boolean>;
  deduplicateMessage(message: PeerMessage, requester: string): Promise<Readonly<{ isDuplicated: boolean }>>;
}>;

type PeerRedis = Readonly<{ ping(): Promise<string>; disconnect(): void }>;

type Core = Readonly<{
  AbstractQueueService: new (dependencies: object, options: object) => QueueService;
  DeduplicationRequesterEnum: Readonly<{ Consumer: string }>;
}>;
type Store = Readonly<{ RedisMessageDeduplicationStore: new (dependencies: object) => object }>;
type Ioredis = Readonly<{ Redis: new (port: number, host: string, options: object) => PeerRedis }>;

export type Peer = Readonly<{ deliver(message: Message): Promise<void>; close(): void }>;

const FOLDER = 'bench/peers/message-queue-toolkit';
/** As long as ours; the rest are its own defaults. */
const OPTIONS = { deduplicationWindowSeconds: 8 * 86_400 };

/** Undefined, with a line that says how to install it, where it is not. */
export async function startPeer(
  port: number,
  print: (line: string) => void,
  enableAutoPipelining: boolean,
): Promise<Peer | undefined> {
  const { resolve } = createRequire(
    new URL('../../peers/message-queue-toolkit/package.json', import.meta.url),
  );
  const load = async (name: string): Promise<unknown> => import(resolve(name));
  let core: Core;
  let store: Store;
  let ioredis: Ioredis;
  try {
    core = (await load('@message-queue-toolkit/core')) as Core;
    store = (await load('@message-queue-toolkit/redis-message-deduplication-store')) as Store;
    ioredis = (await load('ioredis')) as Ioredis;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND')) throw error;
    print(`skipped: message-queue-toolkit is not installed; npm ci --prefix ${FOLDER}`);
    return undefined;
  }
  const redis = new ioredis.Redis(port, '127.0.0.1', { enableAutoPipelining });
  await redis.ping();
  const deduplicationStore = new store.RedisMessageDeduplicationStore({ redis });
  const service = new core.AbstractQueueService(silentDependencies, {
    messageDeduplicationConfig: { deduplicationStore },
  });
  const consumer = core.DeduplicationRequesterEnum.Consumer;
  return { deliver: (message) => deliver(service, consumer, message), close: () => redis.disconnect() };
}

async function deliver(service: QueueService, consumer: string, { id }: Message): Promise<void> {
  const message = { id, deduplicationId: id, deduplicationOptions: OPTIONS };
  if (!service.isDeduplicationEnabledForMessage(message)) throw new Error('it does not de-duplicate');
  const { result: lock, error } = await service.acquireLockForMessage(message);
  if (lock === undefined) throw error ?? new Error(`no lock for ${id}`);
  const isDuplicate =
    service.isDeduplicationEnabledForMessage(message) &&
    (await service.isMessageDuplicated(message, consumer));
  if (isDuplicate) throw new Error(`message ${id} passed for a duplicate`);
  await service.deduplicateMessage(message, consumer);
  await lock.release();
}

const refuse = (context: unknown): never => {
  throw new Error(`message-queue-toolkit reported ${JSON.stringify(context)}`);
};

/** Where its steps catch errors, they report them here: a run with one is no measurement. */
const silentDependencies = {
  errorReporter: { report: refuse },
  logger: { error: refuse, warn: refuse, info: () => {}, debug: () => {} },
};
