/**
 * Claims in Redis, one key each, by the scripts of redis-scripts.ts. Keys expire by themselves; that of a process which
 * died does 15 minutes after its lease, so that the delivery that takes its work over learns of it.
 *
 * A record that Redis loses (an eviction, a fail-over to a replica that was behind) lets a message run again: it is
 * never lost, and it is no error. Use `maxmemory-policy noeviction`; `evictionWarning` tells when it is something else.
 */
import type { Cluster, Redis } from 'ioredis';
import { type Clock, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { claimBudget } from './claim-budget.ts';
import type { ClaimAnswer, ClaimRequest, ClaimStore } from './claim-store.ts';
import { redisCalls, unavailable } from './redis-calls.ts';
import { claimValue, fingerprintOf, recordKey, recordOf } from './redis-records.ts';
import { CLAIM, COMPLETE, RELEASE, RENEW } from './redis-scripts.ts';
import { checkOptions, clock as aClock, durationFrom, port, text } from '../options.ts';

export type RedisClaimsOptions = Readonly<{
  /** Before every key, default `ps-once:`. Each record keeps it: up to 8 characters cost no memory more. */
  prefix?: string;
  /** Bound on each operation (default `5s`, at least `1ms`). */
  callTimeout?: Duration;
  /** Default: the machine's. */
  clock?: Clock;
}>;

const aRedis = port(['evalsha', 'eval', 'once'], 'a client of ioredis, for example new Redis(url)');

type Claimed = Extract<ClaimAnswer, { kind: 'claimed' }>;

export type RedisLookOptions = Readonly<{
  /** Bound on the look at the server's settings (default `5s`, at least `1ms`). */
  callTimeout?: Duration;
  /** Default: the machine's. */
  clock?: Clock;
}>;

/**
 * The caller makes the client, listens to its `error` event (without a listener ioredis prints every failed connection)
 * and ends it. While the client is not connected nothing is put into its offline queue: the operation waits for the
 * connection within its bound, because a claim that was queued and sent later would be one that no delivery works on.
 *
 * Fencing tokens are the server's time in microseconds, and never at or below that of a claim which is taken over. A key
 * that was released or has gone is not remembered: then they grow as far as the servers' clocks do.
 *
 * @example
 * const redis = new Redis('redis://10.0.0.3');
 * redis.on('error', (error) => log.warn('Redis is not reachable', { error: error.message }));
 * const once = dedup(redisClaims(redis, { callTimeout: '2s' }));
 */
export function redisClaims(redis: Redis | Cluster, options: RedisClaimsOptions = {}): ClaimStore {
  aRedis('redis', redis);
  checkOptions<RedisClaimsOptions>(options, {
    prefix: text,
    callTimeout: durationFrom('1ms'),
    clock: aClock,
  });
  const { prefix = 'ps-once:', callTimeout = '5s', clock = systemClock() } = options;
  const timeoutMs = toMilliseconds(callTimeout, 'callTimeout');
  const call = redisCalls(redis, clock, timeoutMs);

  return {
    async claim(request) {
      const { key, owner, leaseMs, mayTakeOver } = request;
      const shared = [leaseMs, mayTakeOver ? 1 : 0];
      return answerOf(await call(CLAIM, shared, recordKey(prefix, key), owner), request);
    },
    async renew(held, nonce) {
      const { key, owner, leaseMs } = held.request;
      const answer = await call(RENEW, [leaseMs], recordKey(prefix, key), owner);
      return Number(answer) === 1 ? { kind: 'renewed', held, nonce } : { kind: 'lost' };
    },
    async complete({ request, revision }) {
      const { key, owner, fingerprint, retentionMs, messageId } = request;
      const record = recordOf(owner, revision, fingerprint, messageId);
      const claim = claimValue(owner, revision);
      const answer = await call(COMPLETE, [retentionMs], recordKey(prefix, key), claim, record);
      return Number(answer) === 1 ? 'completed' : 'stolen';
    },
    async release({ request }) {
      await call(RELEASE, [], recordKey(prefix, request.key), request.owner);
    },
  };
}

/**
 * A sentence when the server may evict records before they expire; undefined when it does not, or will not tell
 * (managed services forbid CONFIG). For a log line at start.
 *
 * @example
 * const warning = await evictionWarning(redis);
 * if (warning !== undefined) log.warn(warning);
 */
export async function evictionWarning(
  redis: Redis,
  options: RedisLookOptions = {},
): Promise<string | undefined> {
  const policy = await evictionPolicy(redis, options);
  if (policy === undefined || policy === 'noeviction') return undefined;
  return `Redis has maxmemory-policy ${policy}: evicted records let messages run again; use noeviction`;
}

/**
 * The server's `maxmemory-policy`, for `checkWindows`; undefined when it will not tell. Within `callTimeout`; rejects with ConfigError for wrong options alone.
 *
 * @example
 * const evictionPolicyOfRedis = await evictionPolicy(redis);
 */
export async function evictionPolicy(
  redis: Redis,
  options: RedisLookOptions = {},
): Promise<string | undefined> {
  checkOptions<RedisLookOptions>(options, { callTimeout: durationFrom('1ms'), clock: aClock });
  const { callTimeout = '5s', clock = systemClock() } = options;
  try {
    const within = claimBudget(clock, toMilliseconds(callTimeout, 'callTimeout'), 'CONFIG GET');
    const [, policy] = (await within(() => redis.config('GET', 'maxmemory-policy'))) as string[];
    return policy;
  } catch {
    return undefined;
  }
}

function answerOf(reply: unknown, request: ClaimRequest): ClaimAnswer {
  // The common answer is a bare token.
  if (!Array.isArray(reply)) return claimedBy(request, String(reply), false);
  const [kind = '', first = '', second = '', third = ''] = reply as readonly string[];
  switch (kind) {
    case 'recovered':
    case 'adopted':
      return {
        ...claimedBy(request, first, kind === 'adopted'),
        ...(kind === 'recovered' && { recovered: true }),
      };
    case 'busy':
      return { kind: 'inProgress', remainingMs: Math.max(0, Number(first)) };
    case 'done': {
      const known = first === 'packed' ? fingerprintOf(second) : second;
      const isSame =
        first === 'packed' ? request.fingerprint.startsWith(known) : request.fingerprint === known;
      const fingerprint = isSame ? request.fingerprint : known;
      return { kind: isSame ? 'duplicate' : 'conflict', fingerprint, messageId: third };
    }
    case 'unrecognised':
      return { kind: 'unrecognised', what: first };
    default:
      throw unavailable(`the claim script answered ${JSON.stringify(reply)}`);
  }
}

/** The token stands for the revision: it is what the completed record keeps. */
const claimedBy = (request: ClaimRequest, token: string, adopted: boolean): Claimed => ({
  kind: 'claimed',
  held: { request, revision: token },
  fencingToken: token,
  adopted,
});
