/**
 * Faults of the HTTP requests that a server sends by itself: pushes, dispatches of tasks, events of triggers.
 *
 * A request that is delayed waits on the clock and is not in flight meanwhile, because a clock that is moved waits for
 * what is in flight. A second copy is in flight until it is answered, and its answer changes nothing.
 */
import type { Clock } from '../clock.ts';
import type { Faults } from './faults.ts';
import type { Service } from './plan.ts';

/** Ends a request that is not answered yet; what it was sent for hears nothing more. */
export type Abort = () => void;
/** Sends the request; `done` is called with the result. */
type Send<Outcome> = (done: (outcome: Outcome) => void) => Abort;

export type Outgoing<Outcome> = Readonly<{
  /**
   * `resource`: what the request is about. Neither `send` nor this calls its `done` before it returns. What was sent
   * twice is aborted with its first copy alone.
   */
  send(resource: string, send: Send<Outcome>, done: (outcome: Outcome) => void): Abort;
  /** To be added to the requests in flight: second copies, less those that wait. */
  beyond(): number;
  /** Drops what waits, and the second copies. */
  close(): void;
}>;

export type OutgoingPorts<Outcome> = Readonly<{
  faults: Faults | undefined;
  clock: Clock;
  service: Service;
  method: string;
  /** The result of a request that was answered with this HTTP status. */
  answered: (status: number) => Outcome;
  /** The result of a request whose connection broke. */
  broken: (why: string) => Outcome;
  /** The result of a request that is never sent. Absent: the plan knows no such fault of the method. */
  lost?: Outcome;
  /** How long a second copy may stay unanswered, in milliseconds of the clock. Absent: what sends it sees to that. */
  copyLimitMs?: () => number;
}>;

export function outgoing<Outcome>(ports: OutgoingPorts<Outcome>): Outgoing<Outcome> {
  const { faults, clock, service, method, answered, broken, lost, copyLimitMs } = ports;
  const cut = (): Outcome => broken('the connection was broken by the faults');
  const waiting = new Set<Abort>();
  const copies = new Set<Abort>();

  function sendCopy(send: Send<Outcome>): void {
    const end = (): void => {
      copies.delete(abort);
      cancel();
    };
    const stop = send(end);
    const abort = (): void => {
      end();
      stop();
    };
    const cancel = copyLimitMs === undefined ? () => {} : clock.after(copyLimitMs(), abort);
    copies.add(abort);
  }

  /** Not sent at all. */
  function unsent(outcome: Outcome, done: (outcome: Outcome) => void): Abort {
    let over = false;
    queueMicrotask(() => {
      if (!over) done(outcome);
    });
    return () => {
      over = true;
    };
  }

  function later(ms: number, send: Send<Outcome>, done: (outcome: Outcome) => void): Abort {
    const cancel = clock.after(ms, () => {
      waiting.delete(stopWaiting);
      abort = send(done);
    });
    const stopWaiting = (): void => {
      waiting.delete(stopWaiting);
      cancel();
    };
    let abort: Abort = stopWaiting;
    waiting.add(stopWaiting);
    return () => abort();
  }

  return {
    send(resource, send, done) {
      const action = faults?.concern(service, method)
        ? faults.decide(service, method, resource)?.action
        : undefined;
      switch (action?.type) {
        case 'fail':
          return unsent(action.status === undefined ? cut() : answered(action.status), done);
        case 'lose':
          return unsent(lost ?? cut(), done);
        case 'lose-reply':
          return send(() => done(broken('the answer was lost by the faults')));
        case 'delay':
          return later(action.ms, send, done);
        case 'duplicate': {
          const abort = send(done);
          sendCopy(send);
          return abort;
        }
        case undefined:
        case 'cut':
        case 'drop-ack':
        case 'reorder':
        case 'restart':
          return send(done);
      }
    },
    beyond: () => copies.size - waiting.size,
    close() {
      for (const stop of [...waiting, ...copies]) stop();
    },
  };
}
