/**
 * Plausible ledgers, each with one rule removed, to test the property. None is for use.
 */
import { decodeDelayed } from '../../../shared/src/tasks/task-body.ts';
import type { Delayed } from '../../../shared/src/tasks/task-body.ts';
import type { TaskQueue } from '../../../shared/src/tasks/task-queue.ts';
import { hashOf } from '../../../shared/src/hash.ts';
import type { Decision } from '../../../shared/src/schedules/decide.ts';
import type { Entry } from '../../../shared/src/schedules/entry.ts';
import type { Invariant } from './model.ts';
import type { Way } from './run-program.ts';

export type Mutant = Readonly<{ name: string; breaks: Invariant; way: Way }>;

const naming =
  (partsOf: (delayed: Delayed) => readonly string[]) =>
  (queue: TaskQueue): TaskQueue => ({
    ...queue,
    create: (task, limits) =>
      queue.create({ ...task, name: hashOf(...partsOf(decodeDelayed(task.body))) }, limits),
  });

/** Every schedule is the first one of its key. */
function restarted<Answer>(decision: Decision<Answer>): Decision<Answer> {
  const first = (entry: Entry): Entry => {
    const { delayed } = entry;
    if (delayed?.entry === undefined) return { ...entry, generation: '1' };
    return {
      ...entry,
      generation: '1',
      delayed: { ...delayed, entry: { ...delayed.entry, generation: '1' } },
    };
  };
  const { answer, entry } = decision;
  const isTask = typeof answer === 'object' && answer !== null && 'entry' in answer;
  return {
    ...decision,
    ...(entry !== undefined && { entry: first(entry) }),
    ...(isTask && { answer: { ...answer, entry: first((answer as unknown as { entry: Entry }).entry) } }),
  };
}

const restarting: NonNullable<Way['wrapLedger']> = (ledger) => ({
  ...ledger,
  change: async (id, rule) => ledger.change(id, (entry, nowMs) => restarted(rule(entry, nowMs))),
});

const INVARIANT = 'a success is final';

export const mutants: readonly Mutant[] = [
  {
    // The generation says the same as the due time, and more: only without both does another due time meet the old
    // name.
    name: 'a name without the due time (and without the generation, which implies it)',
    breaks: 'in time while nothing fails',
    way: { wrapQueue: naming(({ key, topic, attempt, hop }) => [key, topic, `${attempt}`, `${hop}`]) },
  },
  {
    name: 'a name without the due time, where generations restart',
    breaks: 'in time while nothing fails',
    way: {
      wrapLedger: restarting,
      wrapQueue: naming(({ key, topic, entry, attempt, hop }) => [
        key,
        topic,
        entry?.generation ?? '',
        `${attempt}`,
        `${hop}`,
      ]),
    },
  },
  {
    name: 'a name without the attempt',
    breaks: 'the last one is delivered',
    way: {
      wrapQueue: naming(({ key, topic, dueTimeMs, entry, hop }) => [
        key,
        topic,
        `${dueTimeMs}`,
        entry?.generation ?? '',
        `${hop}`,
      ]),
    },
  },
  { name: 'a generation that restarts at 1', breaks: INVARIANT, way: { wrapLedger: restarting } },
  {
    name: 'a check of the generation outside the transaction',
    breaks: INVARIANT,
    way: {
      wrapLedger: (ledger, pause) => ({
        ...ledger,
        async change(id, rule) {
          const { entry, nowMs } = await ledger.read(id);
          const decision = rule(entry, nowMs);
          await pause();
          const { entry: written } = decision;
          if (written !== undefined) await ledger.change(id, () => ({ answer: undefined, entry: written }));
          return decision;
        },
      }),
    },
  },
  {
    name: 'the last writer by arrival',
    breaks: INVARIANT,
    way: { received: (message, nowMs) => ({ ...message, publishTime: new Date(nowMs) }) },
  },
];
