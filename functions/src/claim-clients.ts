/** The store of `once` with its client: Firestore's, which the function shares, or a Redis client of its own. */
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import type { Firestore } from '@google-cloud/firestore';
import type { Log } from 'pubsub-guarantees';
import type { ClaimStore } from 'pubsub-guarantees/dedup';
import { DEFAULT_COLLECTION_PREFIX } from 'pubsub-guarantees/environment';
import type { Config, DedupConfig } from './config.ts';
import { claimCall } from './limits.ts';

export type Claims = Readonly<{ claims: ClaimStore; evictionPolicy?: Promise<string | undefined> }>;

/** Each record keeps it for days, so the usual one is short. */
const redisPrefix = (prefix: string): string =>
  prefix === DEFAULT_COLLECTION_PREFIX ? 'ps-once:' : `${prefix}:claims:`;

export async function claimStore(
  config: Config,
  dedup: DedupConfig,
  firestore: () => Promise<Firestore>,
  log: Log,
): Promise<Claims> {
  if (dedup.redisUrl === undefined) {
    const { firestoreClaims } = await import('pubsub-guarantees/dedup/firestore');
    return {
      claims: firestoreClaims(await firestore(), {
        collection: `${config.firestore.collectionPrefix}-claims`,
        callTimeout: claimCall(dedup.lease),
      }),
    };
  }
  const [{ Redis }, { evictionPolicy, redisClaims }] = await Promise.all([
    import('ioredis'),
    import('pubsub-guarantees/dedup/redis'),
  ]);
  const redis = new Redis(dedup.redisUrl, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    ...(dedup.redisUrl.startsWith('rediss:') && { tls: { checkServerIdentity: namesTheHost } }),
  });
  // Without a listener a lost connection would end the process; the store answers each call with its own error.
  redis.on('error', (error: Error) => log.warn('Redis is not reachable', { error: error.message }));
  // Asked once it answers: a Redis that is down must not keep the function from starting.
  const policy = new Promise<string | undefined>((resolve) => {
    redis.once('ready', () => resolve(evictionPolicy(redis)));
  });
  return {
    claims: redisClaims(redis, {
      prefix: dedup.redisPrefix ?? redisPrefix(config.firestore.collectionPrefix),
      callTimeout: claimCall(dedup.lease),
    }),
    evictionPolicy: policy,
  };
}

/**
 * Node's own check, and where that fails the common name: Memorystore's documents do not say whether an instance's
 * certificate names its address anywhere else. Node has checked the signature before, in either case.
 */
function namesTheHost(host: string, certificate: PeerCertificate): Error | undefined {
  const error = checkServerIdentity(host, certificate);
  return error !== undefined && certificate.subject.CN === host ? undefined : error;
}
