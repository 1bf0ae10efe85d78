/**
 * The republisher's side of the ledger: scheduled → firing → delivered. A task publishes only when its entry says so in a
 * transaction, and a cancel or replacement that came before it finds the task without effect.
 *
 * A crash between the publish and the last step leaves the entry firing: after the lease the task, or the sweep's next
 * one, publishes again, under the same `dedupId`.
 */
import { randomUUID } from 'node:crypto';
import { type Clock, elapsedMs, momentOf } from '../clock.ts';
import { leaseLost, refused, TransientError } from '../errors.ts';
import type { Log } from '../log.ts';
import { fire, markDeadLettered, markDelivered } from '../schedules/decide.ts';
import { isPending, PUBLISH_MS } from '../schedules/entry.ts';
import type { Ledger } from '../schedules/ledger.ts';
import { ATTR, count } from '../telemetry/instruments.ts';
import type { Delayed } from '../tasks/task-body.ts';

/** The task may publish. Without an entry there is nothing to lose, and nothing to record. */
type Fired = Readonly<{
  /** Throws once the lease on the entry is over: called last before the message goes out. */
  assertLease(): void;
  /** After a confirmed publish. */
  delivered(): Promise<void>;
}>;

export type Firing = Readonly<{
  /** Whether the task is for the ledger's current schedule: read before the next task is made for it. */
  isCurrent(delayed: Delayed, log: Log): Promise<boolean>;
  /** Undefined where the entry says that the task is not to publish. Throws where another run of it may be publishing. */
  fire(delayed: Delayed, log: Log): Promise<Fired | undefined>;
  /** A confirmed dead letter ends the entry, so that no other task comes of it. */
  deadLettered(delayed: Delayed): Promise<void>;
}>;

/** Throws ConfigError for a publish that may take longer than a replacement or a withdrawal of its message assumes. */
export function firing(
  ledger: Ledger | undefined,
  clock: Clock,
  publishMs: number,
  newToken: () => string = randomUUID,
): Firing {
  if (ledger !== undefined && publishMs > PUBLISH_MS) {
    throw refused('publishTimeout', `${publishMs}ms`, `at most ${PUBLISH_MS}ms with a ledger`);
  }
  const needed = (): Ledger => {
    if (ledger !== undefined) return ledger;
    // Published unasked, the message could be one that was cancelled; dropped, it would be lost.
    throw new TransientError(
      'LEDGER_MISSING',
      'the task belongs to the schedule ledger; accepted: tasks without an entry, because no ledger is configured',
    );
  };
  return {
    async isCurrent({ entry }, log) {
      if (entry === undefined) return true;
      const { entry: current } = await needed().read(entry.id);
      const isCurrent = current?.generation === entry.generation && isPending(current);
      if (!isCurrent) dropped(log, entry.generation);
      return isCurrent;
    },

    async fire({ entry }, log) {
      if (entry === undefined) return UNRECORDED;
      const { id, generation } = entry;
      const { change, times } = needed();
      const token = newToken();
      // Counted from before the first send: by the store's clock the lease ends later than this.
      const sentAt = momentOf(clock);
      const { answer } = await change(id, fire({ generation, token, leaseMs: times.firingLeaseMs }));
      if (answer === 'drop') {
        dropped(log, generation);
        return undefined;
      }
      if (answer === 'busy') {
        throw new TransientError(
          'FIRING_ELSEWHERE',
          'another run of the task is publishing, or died of late',
        );
      }
      return {
        assertLease() {
          if (elapsedMs(clock, sentAt) < times.firingLeaseMs) return;
          throw leaseLost('the lease on the entry ended before the publish began');
        },
        async delivered() {
          await change(id, markDelivered({ generation, token }));
          countAnswer('delivered');
        },
      };
    },

    async deadLettered({ entry }) {
      if (entry === undefined) return;
      await needed().change(entry.id, markDeadLettered(entry));
      countAnswer('deadLettered');
    },
  };
}

const UNRECORDED: Fired = { assertLease: () => undefined, delivered: () => Promise.resolve() };

/** What a task of a generation that was replaced, cancelled or delivered comes to. */
function dropped(log: Log, generation: string): void {
  countAnswer('dropped');
  log.info('dropped: replaced, cancelled or delivered before', { generation });
}

const countAnswer = (answer: string): void =>
  count('schedules', { [ATTR.consumer]: 'republisher', [ATTR.answer]: answer });
