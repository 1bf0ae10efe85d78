/**
 * The participants of a program: effects that are counted where they are committed, in the store or at a service that is
 * idempotent by key, and refusals as drawn.
 */
import type { MemoryTransaction } from '../../../shared/src/dedup/inbox-memory.ts';
import type { OutsideStep } from '../../../shared/src/sagas/outside-participant.ts';
import { done, type ParticipantStep, refused, undone } from '../../../shared/src/sagas/participant.ts';
import type { Process } from '../engine/process.ts';
import type { StepProgram } from './program.ts';

/** What has happened for certain, in the order of commits. */
export type Effect = Readonly<{ id: string; step: string; what: 'do' | 'undo' }>;

export type Effects = Readonly<{
  log: Effect[];
  /** Whether this run of a step refuses, by how often it was asked. */
  refuses(id: string, step: string, what: 'do' | 'undo', limit: number): boolean;
  /** Answers of the service, by key. */
  answers: Map<string, 'done' | 'refused' | 'undone'>;
}>;

export function newEffects(): Effects {
  const asked = new Map<string, number>();
  return {
    log: [],
    answers: new Map(),
    refuses(id, step, what, limit) {
      const name = `${what} ${step} ${id}`;
      const times = asked.get(name) ?? 0;
      asked.set(name, times + 1);
      return times < limit;
    },
  };
}

/** A retriable step or an undo accepts in the end. */
const refusalsOf = ({ refuses }: StepProgram, isRetriable: boolean): number => {
  if (refuses === 'never') return 0;
  return refuses === 'once' || isRetriable ? 1 : Infinity;
};

export function inStore(
  effects: Effects,
  name: string,
  program: StepProgram,
  isRetriable: boolean,
): ParticipantStep<MemoryTransaction> {
  const { log } = effects;
  const write = async (transaction: MemoryTransaction, effect: Effect): Promise<void> => {
    const key = `effect/${effect.step}/${effect.id}`;
    const before = (await transaction.get(key)) as readonly string[] | undefined;
    // Counted by the commit, so that a run whose commit is refused counts for nothing.
    transaction.set(key, () => {
      log.push(effect);
      return [...(before ?? []), effect.what];
    });
  };
  return {
    async do(_body, { transaction, saga: { id } }) {
      await write(transaction, { id, step: name, what: 'do' });
      const isRefused = effects.refuses(id, name, 'do', refusalsOf(program, isRetriable));
      return isRefused ? refused('NO') : done({ from: name });
    },
    async undo(_body, { transaction, saga: { id } }) {
      await write(transaction, { id, step: name, what: 'undo' });
      return effects.refuses(id, name, 'undo', program.undoRefusals) ? refused('NO') : undone();
    },
  };
}

/** The service remembers its answer to a key, and has its effect once. */
export function atService(
  effects: Effects,
  name: string,
  program: StepProgram,
  isRetriable: boolean,
  call: Process<'service'>['call'],
): OutsideStep {
  const { log, answers } = effects;
  return {
    async call(_body, { saga: { id, key } }) {
      const answer = await call('service', async () => {
        const known = answers.get(key);
        if (known !== undefined) return known;
        if (effects.refuses(id, name, 'do', refusalsOf(program, isRetriable))) {
          // What must succeed in the end is not refused for good.
          if (!isRetriable) answers.set(key, 'refused');
          return 'refused';
        }
        answers.set(key, 'done');
        log.push({ id, step: name, what: 'do' });
        return 'done';
      });
      return answer === 'done' ? done({ from: name }) : refused('NO');
    },
    async refund(_body, { saga: { id, key } }) {
      const answer = await call('service', async () => {
        if (answers.has(key)) return 'undone';
        if (effects.refuses(id, name, 'undo', program.undoRefusals)) return 'refused';
        answers.set(key, 'undone');
        log.push({ id, step: name, what: 'undo' });
        return 'undone';
      });
      return answer === 'undone' ? undone() : refused('NO');
    },
  };
}
