/**
 * Plays events against `decide` alone, as a store that never fails would: each decision is committed at the present time.
 */
import type { Outcome } from '../sagas/attributes.ts';
import { type Decision, decide, type SagaEvent } from '../sagas/decide.ts';
import type { SagaDefinition } from '../sagas/definition.ts';
import { type Action, asCommitted, type Instance, type SagaRef } from '../sagas/instance.ts';

const START_MS = Date.UTC(2030, 0, 1);

export function driver(definition: SagaDefinition, data: unknown = { id: 'i', total: 5 }) {
  const ref: SagaRef = { consumer: 'sagas', saga: definition.name, id: 'i' };
  let nowMs = START_MS;
  let instance: Instance | undefined;
  const ticks: { arm: number; atMs: number }[] = [];

  const on = (event: SagaEvent, commitMs = 0): Decision => {
    const decision = decide(definition, instance, event, nowMs);
    nowMs += commitMs;
    if (decision.instance !== undefined) instance = asCommitted(decision.instance, nowMs);
    if (decision.tick !== undefined) ticks.push(decision.tick);
    return decision;
  };
  return {
    on,
    start: (): Decision => on({ kind: 'start', ref, body: JSON.stringify(data) }),
    reply: (step: string, outcome: Outcome, action: Action = 'do', reply = ''): Decision =>
      on({ kind: 'reply', step, action, outcome, reply }),
    /** Moves to the time of the timer that is set, and ticks. */
    tick(): Decision {
      const { arm = 0, armedAtMs = nowMs } = instance ?? {};
      nowMs = Math.max(nowMs, armedAtMs);
      return on({ kind: 'tick', arm });
    },
    advance: (milliseconds: number): void => void (nowMs += milliseconds),
    now: (): number => nowMs - START_MS,
    instance: (): Instance => {
      if (instance === undefined) throw new Error('nothing was started');
      return instance;
    },
    ticks: (): readonly number[] => ticks.map(({ atMs }) => atMs - START_MS),
  };
}

/** What leaves: `do credit #1`, … */
export const sent = ({ commands }: Decision): readonly string[] =>
  commands.map(
    ({ action, step, attempt, isKnown }) => `${action} ${step} #${attempt}${isKnown ? ' known' : ''}`,
  );
