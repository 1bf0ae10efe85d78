/**
 * How the limits of a function must relate to each other, as data. A setting that can never work, or that works only
 * while nothing is slow, would otherwise start and refuse message after message; here it does not start.
 *
 * What a subscription or a platform is set to is not known at the start: `windows.ts` looks at that later.
 */
import { type ConfigError, type Duration, toMilliseconds } from 'pubsub-guarantees';
import { bad } from 'pubsub-guarantees/environment';
import type { Config } from './config.ts';

/** What `dedup` keeps of a delivery for the handler: it begins nothing with less left (`minimumHandlerTime`). */
const ONCE_LEAST = '5s';
/** How long one publish may take with its repeats (`pubsubPublisher`). */
const PUBLISH = '10s';
/** https://cloud.google.com/pubsub/docs/lease-management: after the longest ack deadline a message comes again. */
const LONGEST_ACK_DEADLINE = '600s';

/** The longest that one call of a store may take, before its lease is looked at. */
const CLAIM_CALL = '5s';
const ORDER_CALL = '10s';
const ORDER_TRANSACTION = '20s';

/** A variable of the environment, or, in lower case, what the function has of its own. */
export type LimitName =
  | 'HANDLER_TIMEOUT'
  | 'FUNCTION_TIMEOUT'
  | 'ORDER_LEASE'
  | 'ORDER_GAP_TIMEOUT'
  | 'DEDUP_LEASE'
  | 'DEDUP_RETENTION'
  | 'least time for what once runs'
  | 'longest publish'
  | 'longest ack deadline'
  | 'longest call for a claim'
  | 'longest call for a stream'
  | 'longest transaction for a stream';

export type Relation = Readonly<{
  /** `small` times `times` (default 1) must be at most `large`, or below it where `isBelow`. */
  small: LimitName;
  times?: number;
  large: LimitName;
  isBelow?: true;
  reason: string;
}>;

export const RELATIONS: readonly Relation[] = [
  {
    small: 'least time for what once runs',
    times: 2,
    large: 'HANDLER_TIMEOUT',
    reason: 'with less left nothing is begun, and what the store takes before it is part of the delivery',
  },
  {
    small: 'least time for what once runs',
    times: 2,
    large: 'ORDER_LEASE',
    reason:
      'once runs under the lease of the stream, begins nothing with less left, and each message would be refused',
  },
  {
    small: 'longest publish',
    large: 'HANDLER_TIMEOUT',
    reason: 'a publish that is slow and succeeds would be cut off, and made again by the next delivery',
  },
  {
    small: 'HANDLER_TIMEOUT',
    large: 'longest ack deadline',
    reason: 'the message would be delivered again while it is worked on',
  },
  {
    small: 'HANDLER_TIMEOUT',
    large: 'FUNCTION_TIMEOUT',
    isBelow: true,
    reason: 'the platform would cut deliveries off, and their claims would stay until their leases end',
  },
  {
    small: 'HANDLER_TIMEOUT',
    times: 2,
    large: 'DEDUP_RETENTION',
    reason: 'a copy that waited for a delivery would find no record of it, and run again',
  },
  {
    small: 'DEDUP_LEASE',
    large: 'DEDUP_RETENTION',
    isBelow: true,
    reason: 'a record would end before the claim that it replaces',
  },
  {
    small: 'HANDLER_TIMEOUT',
    large: 'ORDER_GAP_TIMEOUT',
    reason: 'ORDER_ON_GAP=skip would skip numbers whose messages are being delivered',
  },
  {
    small: 'longest call for a claim',
    times: 2,
    large: 'DEDUP_LEASE',
    reason: 'a claim would have run out when the store has answered',
  },
  {
    small: 'longest call for a stream',
    times: 2,
    large: 'ORDER_LEASE',
    reason: 'a lease would have run out when the store has answered',
  },
  {
    small: 'longest transaction for a stream',
    large: 'ORDER_LEASE',
    reason: 'a lease would have run out when the store has answered',
  },
];

/** How long one call of a store may take: shorter where the lease that it is about is short. */
export const claimCall = (lease: Duration): Duration => atMost(CLAIM_CALL, toMilliseconds(lease) / 2);
export const orderCall = (lease: Duration): Duration => atMost(ORDER_CALL, toMilliseconds(lease) / 2);
export const orderTransaction = (lease: Duration): Duration =>
  atMost(ORDER_TRANSACTION, toMilliseconds(lease));

const atMost = (longest: Duration, milliseconds: number): Duration =>
  toMilliseconds(longest) <= milliseconds ? longest : `${Math.floor(milliseconds)}ms`;

type Limits = Readonly<Partial<Record<LimitName, Duration>>>;

/** Those that mean something for this function. */
function limitsOf(config: Config): Limits {
  const { name, timeout, dedup, order, functionTimeout } = config;
  const hasStreams = name === 'fifo' || name === 'pipeline';
  return {
    HANDLER_TIMEOUT: timeout,
    'longest publish': PUBLISH,
    'longest ack deadline': LONGEST_ACK_DEADLINE,
    ...(functionTimeout !== undefined && { FUNCTION_TIMEOUT: functionTimeout }),
    ...(dedup !== undefined && {
      DEDUP_LEASE: dedup.lease,
      DEDUP_RETENTION: dedup.retention,
      'least time for what once runs': ONCE_LEAST,
      'longest call for a claim': claimCall(dedup.lease),
    }),
    ...(hasStreams && {
      ORDER_LEASE: order.lease,
      'longest call for a stream': orderCall(order.lease),
      'longest transaction for a stream': orderTransaction(order.lease),
      ...(order.onGap === 'skip' && { ORDER_GAP_TIMEOUT: order.gap.timeout }),
    }),
  };
}

/** Throws ConfigError `INVALID_OPTION` for the first relation that does not hold, with both values and the reason. */
export function checkLimits(config: Config): void {
  const limits = limitsOf(config);
  for (const relation of RELATIONS) {
    const error = broken(relation, limits);
    if (error !== undefined) throw error;
  }
}

function broken(
  { small, times = 1, large, isBelow, reason }: Relation,
  limits: Limits,
): ConfigError | undefined {
  const [low, high] = [limits[small], limits[large]];
  if (low === undefined || high === undefined) return undefined;
  const needed = toMilliseconds(low) * times;
  const given = toMilliseconds(high);
  if (isBelow === true ? needed < given : needed <= given) return undefined;
  const multiple = times === 1 ? '' : `${times} times `;
  // The variable is what can be set; of two, the smaller one names both.
  if (!isVariable(small)) {
    return bad(large, high, `at least ${multiple}the ${small} (${low}), because ${reason}`);
  }
  const bound = isVariable(large) ? `${large} (${high})` : `the ${large} (${high})`;
  const word =
    isBelow === true ? 'less than' : times === 1 ? 'at most' : `at most ${FRACTIONS[times] ?? 'a part'} of`;
  return bad(small, low, `${word} ${bound}, because ${reason}`);
}

const FRACTIONS: Readonly<Record<number, string>> = { 2: 'half', 3: 'a third' };
const isVariable = (name: LimitName): boolean => /^[A-Z_]+$/.test(name);
