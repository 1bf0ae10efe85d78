/**
 * Delivery of one subscription: hands waiting messages to its consumers, keeps a lease on each until it is
 * acknowledged, and puts it back when it is nacked or its ack deadline passes.
 *
 * Every delivery has its own ack ID. What is put back waits for its backoff, and goes to the dead-letter topic
 * when its attempts are used up and that topic exists; otherwise it stays. Nothing is kept of what is done, unless
 * the subscription retains it for a seek.
 */
import type { Clock } from '../clock.ts';
import { backoffMs } from './backoff.ts';
import type { Backlog, Entry, FailuresOf, Until } from './backlog.ts';
import { alarm, createDeadlines, type Deadlines } from './deadlines.ts';
import type { NewBacklog } from './disturbed-backlog.ts';
import type { Consumer, Lease, LeaseEnd } from './lease.ts';
import { createPatience } from './patience.ts';
import { retained, type Stored } from './stored.ts';
import type { Subscription } from './wire.ts';

export type Delivery = Readonly<{
  /** The message has been published. No consumer that is there already gets it before `admit`. */
  enqueue(stored: Stored): void;
  /** What was enqueued can be delivered, and is. */
  admit(): void;
  /** Delivers what can be delivered. Called after everything that may have made room or messages. */
  dispatch(): void;
  join(consumer: Consumer): void;
  leave(consumer: Consumer): void;
  /** Returns the IDs that are not those of a valid lease; the others are acknowledged. */
  acknowledge(ackIds: readonly string[]): readonly string[];
  /**
   * The seconds for each ID, 0 being a nack. What they do does not depend on their order, and a nack that takes later
   * messages of its key back does not make their IDs invalid. Returns the IDs that are not those of a valid lease.
   */
  modifyAckDeadlines(seconds: ReadonlyMap<string, number>): readonly string[];
  /** Takes the messages back as if they had never been delivered. */
  takeBack(leases: readonly Lease[]): void;
  /** Everything that waits or is outstanding, within its retention. */
  unacked(): readonly Entry[];
  /** What is retained of what was acknowledged. */
  acked(): readonly Stored[];
  /** Begins anew with these messages, all leases revoked; `acked` are retained if the subscription retains any. */
  restart(unacked: readonly Stored[], acked: readonly Stored[], failuresOf?: FailuresOf): void;
  outstanding(): number;
  /** What a move of the clock waits for: answers that it gave no time to, and what was nacked a moment ago. */
  awaited(): number;
  backlog(): number;
  close(): void;
}>;

/**
 * How long after a nack the message is delivered again at the earliest, as Google's emulator does it. A subscriber that
 * nacks while it closes would otherwise be handed the message by the stream that it has just left.
 */
const NACK_MS = 50;

export function createDelivery(
  clock: Clock,
  config: () => Subscription,
  newBacklog: NewBacklog,
  nextAckId: () => string,
  /** Publishes to the dead-letter topic; false when that topic does not exist. */
  toDeadLetters: (entry: Entry) => boolean,
  retentionMs: () => number,
): Delivery {
  const leases = new Map<string, Lease>();
  const leaseOf = new Map<Entry, Lease>();
  const consumers: Consumer[] = [];
  const unacked = new Set<Entry>();
  let arriving: Stored[] = [];
  const acked = retained(clock.now, () => (config().retainAckedMessages ? retentionMs() : 0));
  const real = clock.moves?.real ?? clock;
  let deadlines: Deadlines;
  /** In real time, because what it is for, streams that are being closed, is. */
  let nacked: Deadlines;
  let backlog: Backlog;
  const begin = (): void => {
    deadlines = createDeadlines(clock, () => dispatch());
    nacked = createDeadlines(real, () => dispatch());
    backlog = newBacklog(deadlines);
  };
  begin();
  const patience = createPatience(clock, {
    isHeld: (held) => leases.get(held.ackId) === held,
    extend: (held) => deadlines.set(held.deadline, clock.now() + held.consumer.ackDeadlineSeconds() * 1000),
    expire: (held, counts) => fail(held, counts),
    afterWait: () => dispatch(),
  });
  let turn = 0;
  let dispatching = false;
  let again = false;
  const isStale = ({ publishTimeMs }: Stored): boolean => clock.now() - publishTimeMs > retentionMs();
  const dropIfStale = (entry: Entry): boolean => isStale(entry) && unacked.delete(entry);
  const takeIn = (): void => {
    for (const stored of arriving.splice(0)) unacked.add(backlog.add(stored));
  };
  const finish = (entry: Entry): void => {
    unacked.delete(entry);
    const { message, publishTimeMs, bytes } = entry;
    if (!entry.isCopy) acked.add({ message, publishTimeMs, bytes });
    backlog.done(entry);
  };
  const lease = (entry: Entry, consumer: Consumer): Lease => {
    const deadline = alarm(() => patience.due(made));
    const made: Lease = {
      ...patience.given(),
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
    patience.over(held);
    leases.delete(held.ackId);
    leaseOf.delete(held.entry);
    held.consumer.released(held, end);
  };
  const putBack = (entry: Entry, until?: Until): void => {
    for (const later of backlog.putBack(entry, until)) {
      const revoked = leaseOf.get(later);
      if (revoked !== undefined) release(revoked, 'revoked');
    }
  };
  const backoff = (failures: number): Until | undefined => {
    const ms = backoffMs(config(), failures);
    return ms > 0 ? { at: clock.now() + ms, among: deadlines } : undefined;
  };
  /** `counts`: as a delivery attempt, and for the backoff. */
  const fail = (held: Lease, counts: boolean): void => {
    const { entry } = held;
    release(held, 'failed');
    if (!counts) putBack(entry, backoff(entry.failures + 1));
    else if (!countFailure(entry)) putBack(entry, backoff(entry.failures));
  };
  /** True when its attempts are used up, and it has gone to the dead-letter topic. */
  const countFailure = (entry: Entry): boolean => {
    const { deadLetterPolicy } = config();
    entry.failures += 1;
    if (deadLetterPolicy === null) return false;
    entry.countedFailures += 1;
    if (entry.countedFailures < deadLetterPolicy.maxDeliveryAttempts || !toDeadLetters(entry)) return false;
    finish(entry);
    return true;
  };
  const nack = (all: readonly Lease[]): void => {
    const entries = all.map(({ entry }) => entry).sort((a, b) => a.serial - b.serial);
    for (const held of all) release(held, 'failed');
    const back = entries.filter((entry) => !countFailure(entry));
    // From the last of a key to its first, whose backoff counts: each is put back before those that followed it.
    for (const entry of back.toReversed()) {
      putBack(entry, backoff(entry.failures) ?? { at: real.now() + NACK_MS, among: nacked });
    }
  };
  /** All are looked up before anything is done with one. An ID that is named twice counts once. */
  const lookUp = (
    ids: Iterable<string>,
  ): Readonly<{ found: readonly Lease[]; invalid: readonly string[] }> => {
    const found: Lease[] = [];
    const invalid: string[] = [];
    for (const id of new Set(ids)) {
      const held = leases.get(id);
      if (held === undefined) invalid.push(id);
      else found.push(held);
    }
    return { found, invalid };
  };
  const dispatch = (): void => {
    // Delivering may publish (a dead letter) and so come back here: then the loop below runs once more.
    if (dispatching) {
      again = true;
      return;
    }
    dispatching = true;
    try {
      do {
        again = false;
        for (let full = 0; backlog.hasReady() && full < consumers.length; ) {
          turn = (turn + 1) % consumers.length;
          const consumer = consumers[turn];
          const room = consumer?.room();
          const entries = room === undefined ? [] : backlog.take(room, dropIfStale);
          if (consumer === undefined || entries.length === 0) full += 1;
          else {
            full = 0;
            consumer.deliver(entries.map((entry) => lease(entry, consumer)));
          }
        }
      } while (again);
    } finally {
      dispatching = false;
    }
  };

  return {
    enqueue: (stored) => void arriving.push(stored),
    admit() {
      takeIn();
      dispatch();
    },
    dispatch,
    join(consumer) {
      // A client that pulls behind a publish has had its reply.
      takeIn();
      consumers.push(consumer);
      dispatch();
    },
    leave(consumer) {
      const index = consumers.indexOf(consumer);
      if (index >= 0) consumers.splice(index, 1);
    },
    acknowledge(ids) {
      const { found, invalid } = lookUp(ids);
      for (const held of found) {
        patience.answered(held);
        release(held, 'acked');
        finish(held.entry);
      }
      dispatch();
      return invalid;
    },
    modifyAckDeadlines(seconds) {
      const { found, invalid } = lookUp(seconds.keys());
      const nacks: Lease[] = [];
      for (const held of found) {
        const extension = seconds.get(held.ackId) ?? 0;
        if (extension === 0) {
          patience.answered(held);
          nacks.push(held);
        } else {
          patience.extended(held);
          deadlines.set(held.deadline, clock.now() + extension * 1000);
        }
      }
      nack(nacks);
      dispatch();
      return invalid;
    },
    takeBack(taken) {
      for (const held of taken.toReversed()) {
        if (leases.get(held.ackId) !== held) continue;
        release(held, 'revoked');
        putBack(held.entry);
      }
      dispatch();
    },
    unacked() {
      takeIn();
      return [...unacked].filter((entry) => !isStale(entry));
    },
    acked: acked.all,
    restart(messages, ackedBefore, failuresOf) {
      for (const held of leases.values()) release(held, 'revoked');
      deadlines.close();
      nacked.close();
      begin();
      arriving = [];
      unacked.clear();
      acked.replace(ackedBefore);
      for (const stored of messages) unacked.add(Object.assign(backlog.add(stored), failuresOf?.(stored)));
      dispatch();
    },
    outstanding: () => leases.size,
    awaited: () => patience.waiting() + nacked.size() + arriving.length,
    backlog: () => backlog.size() + arriving.length,
    close() {
      deadlines.close();
      nacked.close();
      patience.close();
      consumers.length = 0;
    },
  };
}
