/**
 * Options of de-duplication, checked when the middleware is made: a window that cannot work does not start.
 */
import type { Clock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { refused } from '../errors.ts';
import type { LeastTime } from '../handler.ts';
import {
  callable,
  checkBelow,
  clock,
  duration,
  durationFrom,
  keptFor,
  oneOf,
  port,
  type Shape,
} from '../options.ts';

export type DedupOptions = Readonly<{
  /** Default: the machine's. */
  clock?: Clock;
  /**
   * How long a claim holds without a heartbeat (default `30s`, at least `1s`, below `retention`). A crash in the
   * handler costs this long plus one redelivery. It is renewed every third, so it need not cover the handler's time.
   */
  lease?: Duration;
  /**
   * How long a message counts as done (default `8d`, above `lease`, at most `36500d`: a store's times end in the year
   * 9999). Longer than a subscription keeps messages by default (7 days,
   * https://cloud.google.com/pubsub/docs/subscription-message-retention), because that is how late one may come back.
   */
  retention?: Duration;
  /**
   * How long a delivery waits for another that works on the same message (default `25s`, from `0s`). Every redelivery
   * counts toward the subscription's dead letter policy, so waiting is better than refusing.
   */
  waitBudget?: Duration;
  /**
   * The handler is not started, and an expired claim not taken over, with no more than this left of the delivery
   * (default `5s`, from `0s`; below the `handlerTimeout` of what receives).
   */
  minimumHandlerTime?: Duration;
  /**
   * What becomes of a message whose `dedupId` was used, and done, with other data: `deadLetter` (default), `ack`
   * (dropped with a warning), `process` (without a claim of its own, marked as a possible duplicate).
   */
  onConflict?: 'deadLetter' | 'ack' | 'process';
  /** With the store down: `retry` (default), or `process` without the guarantee, marked as a possible duplicate. */
  onStoreUnavailable?: 'retry' | 'process';
  /** A random name for each delivery: 1 to 64 printable characters without a space. Default: a UUID. */
  newId?: () => string;
}>;

export type DedupSettings = Readonly<{
  leaseMs: number;
  retentionMs: number;
  waitBudgetMs: number;
  minimumHandlerMs: number;
  onConflict: 'deadLetter' | 'ack' | 'process';
  onStoreUnavailable: 'retry' | 'process';
  newId: () => string;
}>;

/** The default message retention of a subscription. */
export const SUBSCRIPTION_RETENTION_MS = 7 * 86_400_000;
const LEASE = '30s';
const RETENTION = '8d';

/** One check for each option. */
export const DEDUP_SHAPE: Shape<Required<DedupOptions>> = {
  clock,
  lease: durationFrom('1s'),
  retention: keptFor('1s'),
  waitBudget: duration,
  minimumHandlerTime: duration,
  onConflict: oneOf('deadLetter', 'ack', 'process'),
  onStoreUnavailable: oneOf('retry', 'process'),
  newId: callable,
};

/** Throws ConfigError for a value that is not understood and for a lease that is not shorter than the retention. */
export function dedupSettings(options: DedupOptions): DedupSettings {
  const {
    onConflict = 'deadLetter',
    onStoreUnavailable = 'retry',
    newId = () => crypto.randomUUID(),
  } = options;
  const windows = dedupWindows(options);
  checkBelow(
    { path: 'lease', given: options.lease, standard: LEASE },
    { path: 'retention', given: options.retention, standard: RETENTION },
    'a record would end before the claim that it replaces',
  );
  return {
    ...windows,
    onConflict,
    onStoreUnavailable,
    newId: () => checkOwner(newId()),
  };
}

/** With less of a delivery left nothing is begun. */
export const leastTime = ({ minimumHandlerMs }: DedupSettings): LeastTime => ({
  milliseconds: minimumHandlerMs,
  option: 'minimumHandlerTime',
});

/** The lengths of time among the options, with the defaults. Throws ConfigError for what is not a duration. */
export function dedupWindows({
  lease = LEASE,
  retention = RETENTION,
  waitBudget = '25s',
  minimumHandlerTime = '5s',
}: DedupOptions): Pick<DedupSettings, 'leaseMs' | 'retentionMs' | 'waitBudgetMs' | 'minimumHandlerMs'> {
  return {
    leaseMs: toMilliseconds(lease, 'lease'),
    retentionMs: toMilliseconds(retention, 'retention'),
    waitBudgetMs: toMilliseconds(waitBudget, 'waitBudget'),
    minimumHandlerMs: toMilliseconds(minimumHandlerTime, 'minimumHandlerTime'),
  };
}

/** Throws ConfigError for what is no store: a client, say, without the adapter that makes one of it. */
export function checkStore(store: unknown, methods: readonly string[]): void {
  port(methods, 'what an adapter makes, for example redisClaims(client)')('store', store);
}

function checkOwner(owner: string): string {
  if (/^[!-~]{1,64}$/.test(owner)) return owner;
  throw refused('what newId gives', owner, '1 to 64 printable ASCII characters without a space');
}
