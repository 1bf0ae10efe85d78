/**
 * Delivery of one subscription: hands waiting messages to its consumers, keeps a lease on each until it is
 * acknowledged, and puts it back when it is nacked or its ack deadline passes.
 *
 * Every delivery has its own ack ID. What is put back waits for its backoff, and goes to the dead-letter topic
 * when its attempts are used up and that topic exists; otherwise it stays. Nothing is kept of what is done.
 */
import type { Clock } from '../clock.ts';
import { createBacklog, type Entry, type Room } from './backlog.ts';
import { alarm, createDeadlines, type Alarm } from './deadlines.ts';
import { durationMs, type PubsubMessage, type ReceivedMessage, type Subscription } from './wire.ts';

export type Lease = Readonly<{
  ackId: string;
  entry: Entry;
  consumer: Consumer;
  /** As the subscriber sees it: 0 without a dead-letter policy. */
  deliveryAttempt: number;
  deadline: Alarm;
}>;

type LeaseEnd = 'acked' | 'failed' | 'revoked';

/** A stream, a waiting pull, or the push to an endpoint. */
export type Consumer = Readonly<{
  ackDeadlineSeconds(): number;
  /** Undefined while it takes nothing. */
  room(): Room | undefined;
  deliver(leases: readonly Lease[]): void;
  /** The lease is over, for whatever reason. */
  released(lease: Lease, end: LeaseEnd): void;
}>;

export type Delivery = Readonly<{
  enqueue(message: PubsubMessage, publishTimeMs: number, bytes: number): void;
  /** Delivers what can be delivered. Called after everything that may have made room or messages. */
  dispatch(): void;
  join(consumer: Consumer): void;
  leave(consumer: Consumer): void;
  acknowledge(ackIds: readonly string[]): void;
  /** 0 seconds is a nack. */
  modifyAckDeadline(ackIds: readonly string[], seconds: number): void;
  /** Takes the messages back as if they had never been delivered. */
  takeBack(leases: readonly Lease[]): void;
  outstanding(): number;
  backlog(): number;
  close(): void;
}>;

/** Backoff of a push subscription without a retry policy: https://cloud.google.com/pubsub/docs/push#push_backoff */
const PUSH_BACKOFF_MS = { min: 100, max: 60_000 };

export function createDelivery(
  clock: Clock,
  config: () => Subscription,
  nextAckId: () => string,
  /** Publishes to the dead-letter topic; false when that topic does not exist. */
  toDeadLetters: (entry: Entry) => boolean,
): Delivery {
  const leases = new Map<string, Lease>();
  const leaseOf = new Map<Entry, Lease>();
  const consumers: Consumer[] = [];
  const deadlines = createDeadlines(clock, () => dispatch());
  const backlog = createBacklog(config().enableMessageOrdering, deadlines, () => clock.now());
  let turn = 0;
  let dispatching = false;
  let again = false;

  const isStale = (entry: Entry): boolean => {
    const { messageRetentionDuration } = config();
    return (
      messageRetentionDuration !== null &&
      clock.now() - entry.publishTimeMs > durationMs(messageRetentionDuration)
    );
  };
  const lease = (entry: Entry, consumer: Consumer): Lease => {
    const deadline = alarm(() => fail(made));
    const made: Lease = {
      ackId: nextAckId(),
      entry,
      consumer,
      deliveryAttempt: config().deadLetterPolicy === null ? 0 : entry.countedFailures + 1,
      deadline,
    };
    leases.set(made.ackId, made);
    leaseOf.set(entry, made);
    deadlines.set(deadline, clock.now() + consumer.ackDeadlineSeconds() * 1000);
    return made;
  };
  const release = (held: Lease, end: LeaseEnd): void => {
    deadlines.remove(held.deadline);
    leases.delete(held.ackId);
    leaseOf.delete(held.entry);
    held.consumer.released(held, end);
  };
  const putBack = (entry: Entry, delayMs: number): void => {
    for (const later of backlog.putBack(entry, delayMs)) {
      const revoked = leaseOf.get(later);
      if (revoked !== undefined) release(revoked, 'revoked');
    }
  };
  const fail = (held: Lease): void => {
    const { entry } = held;
    const { deadLetterPolicy } = config();
    release(held, 'failed');
    entry.failures += 1;
    if (deadLetterPolicy !== null) {
      entry.countedFailures += 1;
      if (entry.countedFailures >= deadLetterPolicy.maxDeliveryAttempts && toDeadLetters(entry)) {
        backlog.done(entry);
        return;
      }
    }
    putBack(entry, backoffMs(config(), entry.failures));
  };
  const dispatch = (): void => {
    // Delivering may publish (a dead letter) and so come back here: then the loop below runs once more.
    if (dispatching) {
      again = true;
      return;
    }
    dispatching = true;
    do {
      again = false;
      for (let full = 0; backlog.hasReady() && full < consumers.length; ) {
        turn = (turn + 1) % consumers.length;
        const consumer = consumers[turn];
        const room = consumer?.room();
        const entries = room === undefined ? [] : backlog.take(room, isStale);
        if (consumer === undefined || entries.length === 0) full += 1;
        else {
          full = 0;
          consumer.deliver(entries.map((entry) => lease(entry, consumer)));
        }
      }
    } while (again);
    dispatching = false;
  };

  return {
    enqueue: backlog.add,
    dispatch,
    join(consumer) {
      consumers.push(consumer);
      dispatch();
    },
    leave(consumer) {
      const index = consumers.indexOf(consumer);
      if (index >= 0) consumers.splice(index, 1);
    },
    acknowledge(ids) {
      for (const id of ids) {
        const held = leases.get(id);
        if (held === undefined) continue;
        release(held, 'acked');
        backlog.done(held.entry);
      }
      dispatch();
    },
    modifyAckDeadline(ids, seconds) {
      for (const id of ids) {
        const held = leases.get(id);
        if (held === undefined) continue;
        if (seconds === 0) fail(held);
        else deadlines.set(held.deadline, clock.now() + seconds * 1000);
      }
      dispatch();
    },
    takeBack(taken) {
      for (const held of taken.toReversed()) {
        if (leases.get(held.ackId) !== held) continue;
        release(held, 'revoked');
        putBack(held.entry, 0);
      }
      dispatch();
    },
    outstanding: () => leases.size,
    backlog: backlog.size,
    close() {
      deadlines.close();
      consumers.length = 0;
    },
  };
}

function backoffMs({ retryPolicy, pushConfig }: Subscription, failures: number): number {
  const { minimumBackoff, maximumBackoff } = retryPolicy ?? {};
  const min = minimumBackoff ? durationMs(minimumBackoff) : pushConfig === null ? 0 : PUSH_BACKOFF_MS.min;
  const max = maximumBackoff ? durationMs(maximumBackoff) : PUSH_BACKOFF_MS.max;
  return Math.min(min * 2 ** Math.min(failures - 1, 40), max);
}

export const received = ({ ackId, entry, deliveryAttempt }: Lease): ReceivedMessage => ({
  ackId,
  message: entry.message,
  deliveryAttempt,
});
