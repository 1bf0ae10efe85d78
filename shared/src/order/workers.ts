/**
 * The workers of a process, one for each stream that has something to do, and those idle ones whose memory saves reads.
 *
 * Only idle workers are dropped, the longest idle first: what they remember is a copy of what the store has.
 */
import { contentHash } from './content-hash.ts';
import { bounded } from '../async/time-limit.ts';
import type { Sequence } from '../attributes.ts';
import { leaseLost, TransientError } from '../errors.ts';
import type { Context, Handler } from '../handler.ts';
import type { Message } from '../message.ts';
import { type Outcome, retry } from '../outcome.ts';
import { delivery, visit, type VisitEnd } from './mailbox.ts';
import { type StreamPolicy, streamRef } from './options.ts';
import { type StreamWorker, streamWorker } from './stream-worker.ts';
import type { StreamRef } from './stream-store.ts';
import { type Turn, turns } from './turns.ts';
import type { Visited, VisitStream } from './visits.ts';

export type StreamWorkers = Readonly<{
  deliver(message: Message, sequence: Sequence, context: Context, next: Handler): Promise<Outcome>;
  visit: VisitStream;
  /**
   * Starts nothing any more; resolves when every stream is released and every answer is given, after eight seconds at
   * the latest.
   */
  stop(): Promise<void>;
  /** Workers in memory, busy and idle. */
  size(): number;
  busy(): number;
  /** Of messages that idle workers remember. */
  bytes(): number;
}>;

/** A few kilobytes each: a document with a hundred hashes. */
const MOST_IDLE = 1_000;
/** Of messages that idle workers remember. */
const MOST_IDLE_BYTES = 32_000_000;
/** Cloud Run sends SIGKILL ten seconds after SIGTERM: https://cloud.google.com/run/docs/container-contract#instance-shutdown */
const STOP_MS = 8_000;

export function streamWorkers(policy: StreamPolicy): StreamWorkers {
  const { clock } = policy;
  const busy = new Map<string, StreamWorker>();
  // In the order in which they became idle.
  const idle = new Map<string, StreamWorker>();
  const inTurn = turns(policy.clock);
  /** Some answers come behind what their worker awaits beside its loop. */
  const unanswered = new Set<Promise<unknown>>();
  let idleBytes = 0;
  let isStopping = false;

  function workerOf(ref: StreamRef): StreamWorker {
    const name = JSON.stringify([ref.consumer, ref.source, ref.key]);
    const known = busy.get(name) ?? idle.get(name);
    if (known !== undefined) return known;
    const made: StreamWorker = streamWorker(policy, ref, {
      onBusy() {
        if (idle.delete(name)) idleBytes -= made.bytes();
        busy.set(name, made);
      },
      onIdle() {
        busy.delete(name);
        idle.set(name, made);
        idleBytes += made.bytes();
        dropIdle();
      },
    });
    return made;
  }

  function awaited<Answer>(answer: Promise<Answer>): Promise<Answer> {
    const isGiven = (): void => void unanswered.delete(answer);
    unanswered.add(answer);
    answer.then(isGiven, isGiven);
    return answer;
  }

  function dropIdle(): void {
    for (const [name, worker] of idle) {
      if (idle.size <= MOST_IDLE && idleBytes <= MOST_IDLE_BYTES) return;
      idleBytes -= worker.bytes();
      idle.delete(name);
    }
  }

  return {
    deliver(message, { number, key, epoch }, context, next) {
      const ref = streamRef(policy, context.consumer, context.source, key);
      const arrival = { key, number, hash: contentHash(message), epoch };
      const once = (turn: Turn | undefined): Promise<Outcome | 'asksTurn'> =>
        new Promise((resolve) => {
          const worker = workerOf(ref);
          if (isStopping) void worker.stop();
          worker.deliver(delivery({ context, next, clock, turn }, arrival, message, resolve));
        });
      return awaited(inTurn(context, once).then((outcome) => outcome ?? LATE));
    },
    visit(ref, context, next) {
      const total = { taken: false, drained: 0 };
      const once = (turn: Turn | undefined): Promise<Visited | 'asksTurn'> =>
        new Promise((resolve, reject) => {
          const end = ({ taken, drained, asksTurn }: VisitEnd): void => {
            total.taken ||= taken;
            total.drained += drained;
            resolve(asksTurn ? 'asksTurn' : total);
          };
          const isTaken =
            !isStopping && workerOf(ref).visit(visit({ context, next, clock, turn }, end, reject));
          if (!isTaken) resolve(total);
        });
      return awaited(inTurn(context, once).then((visited) => visited ?? total));
    },
    async stop() {
      isStopping = true;
      const late = (): Error =>
        new TransientError('TIMED_OUT', `not every stream was released in ${STOP_MS} ms`);
      const all = [...busy.values()].map((one) => one.stop());
      await bounded(clock, STOP_MS, () => Promise.allSettled([...all, ...unanswered]), late).catch(
        () => undefined,
      );
    },
    size: () => busy.size + idle.size,
    busy: () => busy.size,
    bytes: () => idleBytes,
  };
}

const LATE: Outcome = retry(leaseLost('its turn did not come in the time of the delivery'));
