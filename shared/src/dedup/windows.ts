/**
 * Do the windows fit each other? Record lifetime, lease, waiting, deadlines and retention are set in different places,
 * and each looks right by itself. Pure: the caller passes the values that it knows, and what is not known is not judged.
 */
import { pauseAfter } from '../async/backoff.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { type DedupOptions, dedupWindows, SUBSCRIPTION_RETENTION_MS } from './settings.ts';
import { checkOptions, duration, flag, number, oneOf, objectOf, text } from '../options.ts';

export type Windows = Readonly<{
  /** Of the middleware: `{}` stands for its defaults. Absent: there is no such middleware. */
  dedup?: Pick<DedupOptions, 'lease' | 'retention' | 'waitBudget' | 'minimumHandlerTime'>;
  /**
   * How long one delivery may take: the same option of `receive` and `httpEndpoint`. Absent: not known, and not judged.
   */
  handlerTimeout?: Duration;
  /** The platform's limit on a request. Absent: not known, and not judged. */
  functionTimeout?: Duration;
  /** `push`: the ack deadline is all the time a delivery has. `pull`: the client extends it. Default: `push`. */
  deliveryType?: 'push' | 'pull';
  /** Absent: not known, and not judged. */
  subscription?: SubscriptionWindows;
  /** `maxmemory-policy` of Redis. Absent: not known, and not judged. */
  evictionPolicy?: string;
}>;

/** As far as they are known; `subscriptionWindows` of the package's `receive/pubsub` reads them. */
export type SubscriptionWindows = Readonly<{
  /** In milliseconds, as all of these. Absent: not known, as all of these unless they say something else. */
  ackDeadlineMs?: number;
  /** How long the subscription keeps a message. Absent: 7 days, the default of Pub/Sub. */
  messageRetentionMs?: number;
  /**
   * Of the topic: a seek of the subscription brings back what is that old, acknowledged or not. At most 31 days.
   * Absent: none.
   */
  topicRetentionMs?: number;
  /** Whether there is a snapshot of the topic. A seek to one brings back messages of up to 7 days. Absent: none. */
  hasSnapshots?: boolean;
  /** From 5 to 100 (https://cloud.google.com/pubsub/docs/dead-letter-topics). Absent: no dead-letter policy. */
  maxDeliveryAttempts?: number;
  /** At most 600 s, as `maximumBackoffMs`. Absent: without a retry policy, what is refused comes again at once. */
  minimumBackoffMs?: number;
  /** Absent: 600 s, the default of a retry policy. */
  maximumBackoffMs?: number;
}>;

export type ConfigurationProblem = Readonly<{
  /** Stable: what programs branch on. */
  code: string;
  /** One line: what, its value, the consequence, what to change. */
  text: string;
}>;

/** A store or a target that is down for less than this should not cost a message its attempts. */
const OUTAGE_MS = 60_000;

/**
 * One entry for each thing that does not fit. Throws ConfigError for a value that is not a duration.
 *
 * @example
 * for (const { code, text } of checkWindows({ dedup: {}, handlerTimeout: '60s', subscription: { ackDeadlineMs: 30_000 } })) {
 *   log.warn(text, { code }); // ACK_DEADLINE_TOO_SHORT
 * }
 */
export function checkWindows(windows: Windows): readonly ConfigurationProblem[] {
  checkOptions<Windows>(
    windows,
    {
      dedup: objectOf<Required<NonNullable<Windows['dedup']>>>({
        lease: duration,
        retention: duration,
        waitBudget: duration,
        minimumHandlerTime: duration,
      }),
      handlerTimeout: duration,
      functionTimeout: duration,
      deliveryType: oneOf('push', 'pull'),
      subscription: objectOf<Required<SubscriptionWindows>>({
        ackDeadlineMs: number,
        messageRetentionMs: number,
        topicRetentionMs: number,
        hasSnapshots: flag,
        maxDeliveryAttempts: number,
        minimumBackoffMs: number,
        maximumBackoffMs: number,
      }),
      evictionPolicy: text,
    },
    'windows',
  );
  const { dedup, subscription = {}, deliveryType = 'push', evictionPolicy } = windows;
  const known = {
    timeoutMs: optional(windows.handlerTimeout, 'handlerTimeout'),
    functionMs: optional(windows.functionTimeout, 'functionTimeout'),
    ackMs: deliveryType === 'push' ? subscription.ackDeadlineMs : undefined,
  };
  const { leaseMs, retentionMs, waitBudgetMs, minimumHandlerMs } = dedupWindows(dedup ?? {});
  const once = { leaseMs, retentionMs, waitMs: waitBudgetMs, minimumMs: minimumHandlerMs };
  return [
    ...(dedup === undefined ? [] : [...retention(once, subscription), ...starts(known, once)]),
    ...deadlines(known),
    ...(dedup === undefined ? [] : inProgress(known, once, subscription)),
    ...outage(subscription),
    ...eviction(evictionPolicy),
  ];
}

type Once = Readonly<{ leaseMs: number; retentionMs: number; waitMs: number; minimumMs: number }>;
type Known = Readonly<{
  timeoutMs: number | undefined;
  functionMs: number | undefined;
  /** Undefined where it ends nothing. */
  ackMs: number | undefined;
}>;

/** The longest that a snapshot lives, less the age of its oldest message: https://cloud.google.com/pubsub/docs/replay-overview */
const SNAPSHOT_MS = 7 * 86_400_000;

function* retention(
  { retentionMs, leaseMs }: Once,
  { messageRetentionMs, topicRetentionMs = 0, hasSnapshots = false }: SubscriptionWindows,
): Generator<ConfigurationProblem> {
  const keptMs = messageRetentionMs ?? SUBSCRIPTION_RETENTION_MS;
  if (retentionMs < keptMs) {
    const whose =
      messageRetentionMs === undefined
        ? 'a subscription keeps messages by default'
        : 'the subscription keeps messages';
    yield {
      code: 'RETENTION_TOO_SHORT',
      text: `retention is ${shown(retentionMs)}, but ${whose} for ${shown(keptMs)}: one that comes back later than its record runs again; set retention to more than ${shown(keptMs)}`,
    };
  }
  const snapshotMs = hasSnapshots ? SNAPSHOT_MS : 0;
  const seekMs = Math.max(topicRetentionMs, snapshotMs);
  // What comes back without a seek is judged above.
  if (retentionMs < seekMs && keptMs < seekMs) {
    const where =
      topicRetentionMs >= snapshotMs ? 'the topic keeps them' : 'there is a snapshot of the topic';
    yield {
      code: 'SEEK_OUTLIVES_RECORDS',
      text: `retention is ${shown(retentionMs)}, but a seek can bring back messages of up to ${shown(seekMs)} (${where}): those whose record has ended run again; set retention to more than ${shown(seekMs)}, or seek no further back than ${shown(retentionMs)}`,
    };
  }
  if (leaseMs >= retentionMs) {
    yield {
      code: 'LEASE_TOO_LONG',
      text: `lease is ${shown(leaseMs)} and retention ${shown(retentionMs)}: a record would end before the claim that it replaces; set lease below retention`,
    };
  }
}

function* starts({ timeoutMs }: Known, { minimumMs, waitMs }: Once): Generator<ConfigurationProblem> {
  if (timeoutMs === undefined) return;
  if (minimumMs >= timeoutMs) {
    yield {
      code: 'NOTHING_STARTS',
      text: `minimumHandlerTime is ${shown(minimumMs)}, but a delivery may take ${shown(timeoutMs)}: no handler is ever started, every message is refused; set minimumHandlerTime well below the delivery's time`,
    };
  } else if (waitMs > 0 && timeoutMs - minimumMs < Math.min(waitMs, minimumMs)) {
    yield {
      code: 'NO_TIME_TO_WAIT',
      text: `a delivery may take ${shown(timeoutMs)}, of which ${shown(minimumMs)} are kept for the handler: only ${shown(timeoutMs - minimumMs)} of the waitBudget of ${shown(waitMs)} are left, and duplicates in progress are refused early; give a delivery more time`,
    };
  }
}

function* deadlines({ timeoutMs, functionMs, ackMs }: Known): Generator<ConfigurationProblem> {
  if (timeoutMs !== undefined && functionMs !== undefined && functionMs <= timeoutMs) {
    yield {
      code: 'FUNCTION_TIMEOUT_TOO_SHORT',
      text: `the platform ends a request after ${shown(functionMs)}, but a delivery may take ${shown(timeoutMs)}: handlers are cut off and their claims stay until the lease ends; set the function's timeout above the handler's`,
    };
  }
  if (ackMs === undefined) return;
  if (timeoutMs !== undefined && ackMs < timeoutMs) {
    yield {
      code: 'ACK_DEADLINE_TOO_SHORT',
      text: `the ack deadline is ${shown(ackMs)}, but a delivery may take ${shown(timeoutMs)}: messages come again while they are handled, and each time counts as an attempt; set the ack deadline to at least ${shown(timeoutMs)} (at most 10 minutes), or the handler's time below it`,
    };
  }
  if (timeoutMs === undefined && functionMs !== undefined && ackMs < functionMs) {
    yield {
      code: 'ACK_DEADLINE_TOO_SHORT',
      text: `the ack deadline is ${shown(ackMs)}, but a request may take ${shown(functionMs)}: messages come again while they are handled; set the ack deadline to at least ${shown(functionMs)} (at most 10 minutes)`,
    };
  }
}

function* inProgress(
  { timeoutMs, ackMs }: Known,
  { leaseMs, waitMs, minimumMs }: Once,
  { maxDeliveryAttempts, minimumBackoffMs = 0 }: SubscriptionWindows,
): Generator<ConfigurationProblem> {
  if (maxDeliveryAttempts === undefined) return;
  const room = Math.max(0, (timeoutMs ?? Number.POSITIVE_INFINITY) - minimumMs);
  // One refusal: the wait, cut by the delivery's own end and the ack deadline, then the pause.
  const roundMs = Math.max(1, Math.min(waitMs, room, ackMs ?? Number.POSITIVE_INFINITY) + minimumBackoffMs);
  // After a crash a claim remains for a lease. A handler that outlives the ack deadline holds it for its whole time.
  const outlives = ackMs !== undefined && timeoutMs !== undefined && ackMs < timeoutMs;
  const heldMs = outlives ? Math.max(leaseMs, timeoutMs - ackMs) : leaseMs;
  const used = 1 + Math.ceil(heldMs / roundMs);
  if (used >= maxDeliveryAttempts) {
    yield {
      code: 'DEAD_LETTERED_IN_PROGRESS',
      text: `a claim can last ${shown(heldMs)} and a refused delivery comes again after ${shown(roundMs)}: that makes ${used} attempts, and the dead-letter policy takes a message after ${maxDeliveryAttempts}, although it is only being worked on; raise maxDeliveryAttempts, waitBudget or the minimum backoff, or shorten the lease`,
    };
  }
}

function* outage(subscription: SubscriptionWindows): Generator<ConfigurationProblem> {
  const { maxDeliveryAttempts } = subscription;
  if (maxDeliveryAttempts === undefined) return;
  const outageMs = backoffs(subscription, maxDeliveryAttempts - 1);
  if (outageMs < OUTAGE_MS) {
    yield {
      code: 'DEAD_LETTERED_IN_OUTAGE',
      text: `the pauses of ${maxDeliveryAttempts} attempts make ${shown(outageMs)}: a store or a target that is down for longer sends good messages to the dead-letter policy's topic; set a retry policy (minimum backoff 10s, maximum 600s) or more attempts`,
    };
  }
}

/** The sum of the pauses, each twice the one before: https://cloud.google.com/pubsub/docs/handling-failures */
function backoffs(
  { minimumBackoffMs = 0, maximumBackoffMs = 600_000 }: SubscriptionWindows,
  pauses: number,
): number {
  let sum = 0;
  for (let pause = 0; pause < pauses; pause += 1)
    sum += pauseAfter(pause + 1, { minMs: minimumBackoffMs, maxMs: maximumBackoffMs });
  return sum;
}

function* eviction(policy: string | undefined): Generator<ConfigurationProblem> {
  if (policy === undefined || policy === 'noeviction') return;
  yield {
    code: 'RECORDS_EVICTED',
    text: `Redis has maxmemory-policy ${policy}: a record that is evicted lets its message run again; use noeviction`,
  };
}

const optional = (value: Duration | undefined, name: string): number | undefined =>
  value === undefined ? undefined : toMilliseconds(value, name);

const UNITS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1_000, 's'],
] as const;

/** In the largest unit that gives a whole number, as durations are written. */
function shown(milliseconds: number): string {
  const [length, unit] = UNITS.find(([size]) => milliseconds >= size && milliseconds % size === 0) ?? [
    1,
    'ms',
  ];
  return `${milliseconds / length}${unit}`;
}
