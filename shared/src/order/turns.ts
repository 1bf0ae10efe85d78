/**
 * Turns of the streams of one process whose next number may have ended processes before. A process that dies with such a
 * number takes every number with it that it is running, and each of them counts an attempt. So one that has few attempts
 * left is started while no other such number runs: the one that kills is then the only one that is counted.
 *
 * What needs a turn leaves its worker and waits for it outside, so that the worker goes on answering and holding.
 */
import { bounded } from '../async/time-limit.ts';
import type { Clock } from '../clock.ts';
import { leaseLost } from '../errors.ts';
import type { VisitContext } from './visits.ts';

export type Turn = Readonly<{ isOver(): boolean; end(): void }>;

/** `run` may ask for a turn, and is then called again with one. Undefined: it did not come in the time of `context`. */
export type InTurn = <Result>(
  context: VisitContext,
  run: (turn: Turn | undefined) => Promise<Result | 'asksTurn'>,
) => Promise<Result | undefined>;

export function turns(clock: Clock): InTurn {
  let last: Promise<void> = Promise.resolve();

  async function enter(context: VisitContext): Promise<Turn | undefined> {
    const before = last;
    let leave = (): void => undefined;
    last = new Promise((resolve) => (leave = resolve));
    let isOver = false;
    const left = context.deadline - clock.monotonic();
    try {
      await bounded(
        clock,
        left,
        () => before,
        () => leaseLost('its turn did not come in time'),
      );
    } catch {
      void before.then(leave);
      return undefined;
    }
    return {
      isOver: () => isOver,
      end() {
        isOver = true;
        leave();
      },
    };
  }

  return async (context, run) => {
    let turn: Turn | undefined;
    for (;;) {
      try {
        const result = await run(turn);
        if (result !== 'asksTurn') return result;
      } finally {
        turn?.end();
      }
      turn = await enter(context);
      if (turn === undefined) return undefined;
    }
  };
}
