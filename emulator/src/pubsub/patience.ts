/**
 * Leases that end because the clock was moved. Their clients work in real time: a move past an ack deadline gives them
 * no time to answer, nor to extend the lease.
 *
 * So a lease whose deadline a move has brought near does not end at once. Its answer may be on its way (Google's clients
 * collect acknowledgements for up to 100 ms), and is waited for in real time, as long as the client goes on answering,
 * within bounds; a move pauses meanwhile. A lease that ends all the same is no delivery attempt, unless a unary
 * pull had taken the message before the move: such a client extends nothing by itself, and the move is meant to end its
 * lease. One move ends at most one lease of a message; a later lease of it gets its whole time after the move.
 *
 * A push is not waited for here: a move does not go past a request that is not answered.
 */
import type { Cancel, Clock, Move } from '../clock.ts';
import type { Entry } from './backlog.ts';
import type { Consumer, Lease } from './lease.ts';

export type Patience = Readonly<{
  /** What a lease is given with. */
  given(): Pick<Lease, 'since' | 'givenIn'>;
  extended(held: Lease): void;
  /** The client has acknowledged or nacked the message. */
  answered(held: Lease): void;
  /** The lease is over, for whatever reason. */
  over(held: Lease): void;
  /** The deadline of the lease has come: extends it, ends it, or does either later. */
  due(held: Lease): void;
  /** Leases whose answer is waited for. */
  waiting(): number;
  close(): void;
}>;

export type PatiencePorts = Readonly<{
  isHeld(held: Lease): boolean;
  /** Gives the lease its whole time again. */
  extend(held: Lease): void;
  expire(held: Lease, counts: boolean): void;
  /** Called when waiting has ended a lease. */
  afterWait(): void;
}>;

/**
 * Real milliseconds from the delivery, the last extension or the client's last answer to another message, whichever is
 * latest. Far more than the 100 ms for which clients collect their answers, for the sake of busy machines.
 */
const ANSWER_MS = 2_000;
/**
 * The same for what a unary pull had taken before the move. Such a client sends its answer when it has it, and is often
 * the one that moves the clock, and waits for that: tests of a redelivery should not take seconds.
 */
const ANSWER_TO_PULL_MS = 150;
/** However long a client goes on answering other messages. */
const LONGEST_WAIT_MS = 10_000;
/** Of two differences of times in floating point. */
const ROUNDING_MS = 1;

export function createPatience(clock: Clock, ports: PatiencePorts): Patience {
  const { moves } = clock;
  const real = moves?.real ?? clock;
  const waits = new Map<Lease, Cancel>();
  const lastAnswer = new WeakMap<Consumer, number>();
  /** The move in which an answer of the client was waited for in vain: the others are not waited for any more. */
  const silentIn = new WeakMap<Consumer, Move>();
  const endedIn = new WeakMap<Entry, Move>();

  const now = (): Lease['since'] => ({ clockMs: clock.now(), realMs: real.now() });
  const stopWaiting = (held: Lease): void => {
    waits.get(held)?.();
    waits.delete(held);
  };
  /** Whether less real time has passed than the lease has lost. */
  const isHurried = ({ since }: Lease): boolean =>
    clock.now() - since.clockMs > real.now() - since.realMs + ROUNDING_MS;

  function wait(held: Lease, startMs: number): void {
    const { consumer, since } = held;
    const heard = Math.max(since.realMs, lastAnswer.get(consumer) ?? 0);
    const leftMs = Math.min(heard + answerMs(held), startMs + LONGEST_WAIT_MS) - real.now();
    const move = moves?.current();
    const isSilent = move !== undefined && silentIn.get(consumer) === move;
    if (leftMs > 0 && !isSilent) {
      const again = (): void => {
        wait(held, startMs);
        if (!waits.has(held)) ports.afterWait();
      };
      waits.set(held, real.after(leftMs, again));
      return;
    }
    const waited = waits.delete(held);
    if (move !== undefined) {
      endedIn.set(held.entry, move);
      if (waited) silentIn.set(consumer, move);
    }
    ports.expire(held, isTakenBefore(held));
  }

  return {
    given: () => ({ since: now(), givenIn: moves?.current() }),
    extended(held) {
      stopWaiting(held);
      held.since = now();
    },
    answered({ consumer }) {
      lastAnswer.set(consumer, real.now());
      silentIn.delete(consumer);
    },
    over: stopWaiting,
    due(held) {
      if (held.consumer.kind === 'push' || !isHurried(held)) return ports.expire(held, true);
      const move = moves?.current();
      if (move === undefined || endedIn.get(held.entry) !== move) return wait(held, real.now());
      move.atEnd(() => {
        if (!ports.isHeld(held)) return;
        held.since = now();
        ports.extend(held);
      });
    },
    waiting: () => waits.size,
    close() {
      for (const cancel of waits.values()) cancel();
      waits.clear();
    },
  };
}

/** Whether a unary pull had taken the message before the move. */
const isTakenBefore = ({ consumer, givenIn }: Lease): boolean =>
  consumer.kind === 'pull' && givenIn === undefined;

const answerMs = (held: Lease): number => (isTakenBefore(held) ? ANSWER_TO_PULL_MS : ANSWER_MS);
