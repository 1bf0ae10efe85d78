/**
 * Claims in Redis, one key each, by the scripts of redis-scripts.ts. Keys expire by themselves.
 *
 * A record that Redis loses (an eviction, a fail-over to a replica that was behind) lets a message run again: it is
 * never lost, and it is no error. Use `maxmemory-policy noeviction`; `evictionWarning` tells when it is something else.
 */
import type { Cluster, Redis } from 'ioredis';
import { type Clock, sleep, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { storeUnavailable, type TransientError } from '../errors.ts';
import { budget } from './budget.ts';
import type { ClaimAnswer, ClaimRequest, ClaimStore } from './claim-store.ts';
import { CLAIM, COMPLETE, RELEASE, RENEW, type Script } from './redis-scripts.ts';

export type RedisClaimsOptions = Readonly<{
  /** Before every key, default `pubsub-guarantees:claims:`. */
  prefix?: string;
  /** Bound on each operation, default `5s`. */
  timeout?: Duration;
  clock?: Clock;
}>;

/** Bound on the look at the server's settings. */
const TIMEOUT_MS = 5_000;

/**
 * The caller makes the client, listens to its `error` event (without a listener ioredis prints every failed connection)
 * and ends it. While the client is not connected nothing is put into its offline queue: the operation waits for the
 * connection within its bound, because a claim that was queued and sent later would be one that nobody works on.
 *
 * Fencing tokens are the server's time in microseconds. They grow while the key lives; after a fail-over they do as far
 * as the servers' clocks agree.
 */
export function redisClaims(
  redis: Redis | Cluster,
  { prefix = 'pubsub-guarantees:claims:', timeout = '5s', clock = systemClock() }: RedisClaimsOptions = {},
): ClaimStore {
  const timeoutMs = toMilliseconds(timeout, 'timeout');
  const isConnected = connection(redis, clock, timeoutMs);

  const run = async (script: Script, key: string, ...args: (string | number)[]): Promise<unknown> => {
    const within = budget(clock, timeoutMs, 'Redis');
    if (!(await isConnected())) throw unavailable(`the connection is "${redis.status}"`);
    try {
      return await within(() => evaluate(redis, script, prefix + key, args));
    } catch (error) {
      throw unavailable(error);
    }
  };

  return {
    async claim(request) {
      const { key, owner, fingerprint, leaseMs, messageId } = request;
      return answerOf(await run(CLAIM, key, owner, fingerprint, leaseMs, messageId), request);
    },
    async renew(held, nonce) {
      const { key, owner, leaseMs } = held.request;
      const answer = await run(RENEW, key, owner, leaseMs);
      return answer === 'renewed' ? { kind: 'renewed', held, nonce } : { kind: 'lost' };
    },
    async complete({ request, revision }) {
      const { key, owner, fingerprint, retentionMs, messageId } = request;
      const answer = await run(COMPLETE, key, owner, fingerprint, retentionMs, messageId, revision);
      return answer === 'completed' ? 'completed' : 'stolen';
    },
    async release({ request }) {
      await run(RELEASE, request.key, request.owner);
    },
  };
}

/**
 * A sentence when the server may evict records before they expire; undefined when it does not, or will not tell
 * (managed services forbid CONFIG). For a log line at start.
 */
export async function evictionWarning(
  redis: Redis,
  clock: Clock = systemClock(),
): Promise<string | undefined> {
  const policy = await evictionPolicy(redis, clock);
  if (policy === undefined || policy === 'noeviction') return undefined;
  return `Redis has maxmemory-policy ${policy}: evicted records let messages run again; use noeviction`;
}

/** The server's `maxmemory-policy`, for `checkWindows`; undefined when it will not tell. Within 5 s; never rejects. */
export async function evictionPolicy(
  redis: Redis,
  clock: Clock = systemClock(),
): Promise<string | undefined> {
  try {
    const within = budget(clock, TIMEOUT_MS, 'CONFIG GET');
    const [, policy] = (await within(() => redis.config('GET', 'maxmemory-policy'))) as string[];
    return policy;
  } catch {
    return undefined;
  }
}

async function evaluate(
  redis: Redis | Cluster,
  script: Script,
  key: string,
  args: readonly (string | number)[],
): Promise<unknown> {
  try {
    return await redis.evalsha(script.sha, 1, key, ...args);
  } catch (error) {
    // The server does not know the script yet, or has been restarted. It has then done nothing.
    if (codeOf(error) !== 'NOSCRIPT') throw error;
    return redis.eval(script.source, 1, key, ...args);
  }
}

function answerOf(reply: unknown, request: ClaimRequest): ClaimAnswer {
  const [kind = '', first = '', second = ''] = reply as readonly string[];
  switch (kind) {
    case 'claimed':
    case 'adopted':
      // The token stands for the revision: it is what the completed record keeps.
      return {
        kind: 'claimed',
        held: { request, revision: first },
        fencingToken: first,
        adopted: kind === 'adopted',
      };
    case 'busy':
      return { kind: 'inProgress', remainingMs: Math.max(0, Number(first)) };
    case 'done': {
      const isSame = first === request.fingerprint;
      return { kind: isSame ? 'duplicate' : 'conflict', fingerprint: first, messageId: second };
    }
    case 'foreign':
      return { kind: 'foreign', what: first };
    default:
      throw unavailable(`the claim script answered ${JSON.stringify(reply)}`);
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
    // A failure shows in the status; the client goes on trying as it is told to.
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

function unavailable(error: unknown): TransientError {
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
