/**
 * Sends the scripts of redis-scripts.ts. Calls that are made in the same moment go as one command for many keys, because
 * a command costs a client more than what it does; on a cluster, whose keys live on many servers, one by one.
 *
 * Every call settles within the bound. The calls of one command share its fate: what fails is unknown for each of them,
 * which the claim protocol expects.
 */
import type { Cluster, Redis } from 'ioredis';
import { turnBatch } from '../async/turn-batch.ts';
import { type Clock, sleep } from '../clock.ts';
import { storeUnavailable, type TransientError } from '../errors.ts';
import { claimBudget } from './claim-budget.ts';
import type { Script } from './redis-scripts.ts';

type Call = Readonly<{
  key: string;
  argument: string;
  record: Buffer | undefined;
  resolve(reply: unknown): void;
  reject(error: TransientError): void;
}>;
type Batch = Readonly<{ script: Script; shared: readonly number[]; calls: Call[] }>;
type Asking = Pick<Call, 'key' | 'argument' | 'record'> & Pick<Batch, 'script' | 'shared'>;

/**
 * One reply of `script` for `key`. Only calls with equal `shared` go together. Rejects with STORE_UNAVAILABLE alone.
 */
export type RedisCalls = (
  script: Script,
  shared: readonly number[],
  key: string,
  argument: string,
  record?: Buffer,
) => Promise<unknown>;

/** More would keep the server from others for longer, and leave the client nothing to do meanwhile. */
const MOST_KEYS = 32;

export function redisCalls(redis: Redis | Cluster, clock: Clock, timeoutMs: number): RedisCalls {
  const isConnected = connection(redis, clock, timeoutMs);
  let most = redis.isCluster ? 1 : MOST_KEYS;

  const send = async (batch: Batch): Promise<void> => {
    const { calls } = batch;
    const within = claimBudget(clock, timeoutMs, 'Redis');
    try {
      if (redis.status !== 'ready' && !(await isConnected())) {
        throw unavailable(`the connection is "${redis.status}"`);
      }
      const replies = await within(() => evaluate(redis, batch));
      if (!Array.isArray(replies) || replies.length !== calls.length) {
        throw unavailable(`a script for ${calls.length} keys answered ${JSON.stringify(replies)}`);
      }
      calls.forEach(({ resolve }, index) => resolve(replies[index]));
    } catch (error) {
      if (calls.length > 1 && codeOf(error) === 'CROSSSLOT') {
        // A cluster behind a proxy. The script was refused as a whole.
        most = 1;
        for (const call of calls) void send({ ...batch, calls: [call] });
        return;
      }
      for (const { reject } of calls) reject(unavailable(error));
    }
  };
  const ask = turnBatch<Asking, unknown>(atTicksEnd, (asked) => {
    const batches = new Map<string, Batch>();
    for (const { item, answer } of asked) {
      const { script, shared } = item;
      const name = `${script.name} ${shared.join(' ')}`;
      const batch = batches.get(name) ?? { script, shared, calls: [] };
      batches.set(name, batch);
      batch.calls.push({ ...item, resolve: answer, reject: (error) => answer(Promise.reject(error)) });
    }
    for (const batch of batches.values()) {
      const { calls } = batch;
      for (let from = 0; from < calls.length; from += most) {
        void send(calls.length <= most ? batch : { ...batch, calls: calls.slice(from, from + most) });
      }
    }
  });
  return (script, shared, key, argument, record) => ask({ script, shared, key, argument, record });
}

/** Runs when everything that is ready to go on has gone on: all that one reply has woken is in one command. */
const atTicksEnd = (flush: () => void): void => process.nextTick(flush);

async function evaluate(redis: Redis | Cluster, { script, shared, calls }: Batch): Promise<unknown> {
  const rest: (string | number | Buffer)[] = calls.map(({ key }) => key);
  rest.push(...shared);
  const records: Buffer[] = [];
  for (const { record } of calls) if (record !== undefined) records.push(record);
  if (records.length > 0) rest.push(Buffer.concat(records));
  for (const { argument } of calls) rest.push(argument);
  try {
    return await redis.evalsha(script.sha, calls.length, ...rest);
  } catch (error) {
    // The server does not know the script yet, or has been restarted. It has then done nothing.
    if (codeOf(error) !== 'NOSCRIPT') throw error;
    return redis.eval(script.source, calls.length, ...rest);
  }
}

/**
 * Waits for the connection. All that wait share one pair of listeners: a burst at a cold start is no leak. A client that
 * was never asked to connect is asked here, since it would put the command that makes it connect into its queue.
 */
function connection(redis: Redis | Cluster, clock: Clock, timeoutMs: number): () => Promise<boolean> {
  let change: AbortController | undefined;
  const nextChange = (): AbortSignal => {
    if (change !== undefined) return change.signal;
    const next = new AbortController();
    const settle = (): void => {
      redis.off('ready', settle).off('end', settle);
      change = undefined;
      next.abort();
    };
    redis.once('ready', settle).once('end', settle);
    change = next;
    return next.signal;
  };
  return async () => {
    if (redis.status === 'ready') return true;
    if (redis.status === 'end') return false;
    const changed = nextChange();
    // A failure shows in the status; the client goes on trying as it is configured.
    if (redis.status === 'wait') redis.connect().catch(() => {});
    await sleep(clock, timeoutMs, changed);
    return (redis.status as string) === 'ready';
  };
}

/** What Redis's error codes ask of an operator. None is the message's fault, so none is permanent. */
const HINTS: ReadonlyMap<string, string> = new Map([
  ['READONLY', 'connected to a replica, as during a fail-over'],
  ['OOM', 'maxmemory is reached'],
  ['MISCONF', 'the server cannot save'],
  ['LOADING', 'the server is starting'],
  ['CLUSTERDOWN', 'the cluster has no node for this key'],
  ['NOAUTH', 'a password is wanted'],
  ['WRONGPASS', 'the password is wrong'],
  ['NOPERM', 'the user may not run scripts on these keys'],
]);

export function unavailable(error: unknown): TransientError {
  const code = codeOf(error);
  const hint = code === undefined ? undefined : HINTS.get(code);
  const text = error instanceof Error ? error.message : String(error);
  return storeUnavailable(`Redis: ${text}${hint === undefined ? '' : ` (${hint})`}`, error);
}

/** The first word of an error reply is its code (https://redis.io/docs/latest/develop/reference/protocol-spec/). */
function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.name !== 'ReplyError') return undefined;
  return /^[A-Z]+/.exec(error.message)?.[0];
}
