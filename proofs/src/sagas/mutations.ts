/** Ways to remove a rule: what an event finds, what it says, what follows from it, and what is kept. */
import type { Decision, decide, SagaEvent } from '../../../shared/src/sagas/decide.ts';
import type { SagaDefinition } from '../../../shared/src/sagas/definition.ts';
import type { Instance, StepState } from '../../../shared/src/sagas/instance.ts';
import type { StepRecord } from '../../../shared/src/sagas/step-records.ts';
import type { Way } from './play.ts';

type Rules = typeof decide;

/** What an event finds, changed. */
export const finding =
  (change: (found: Instance, event: SagaEvent, definition: SagaDefinition, nowMs: number) => Instance) =>
  (rules: Rules): Rules =>
  (definition, found, event, nowMs) =>
    rules(definition, found && change(found, event, definition, nowMs), event, nowMs);

/** The same for one event alone: what is stored keeps its plan, and every step can be undone. */
export const planning =
  (change: Parameters<typeof finding>[0]) =>
  (rules: Rules): Rules =>
  (definition, found, event, nowMs) => {
    const undoable = Object.entries(definition.functions).map(([name, functions]) => [
      name,
      { undo: () => ({}), ...functions },
    ]);
    const able = { ...definition, functions: Object.fromEntries(undoable) };
    const { instance, ...decision } = finding(change)(rules)(able, found, event, nowMs);
    if (instance === undefined) return decision;
    return { ...decision, instance: { ...instance, plan: found?.plan ?? instance.plan } };
  };

/** An event, changed or replaced. */
export const hearing =
  (change: (event: SagaEvent, found: Instance) => SagaEvent) =>
  (rules: Rules): Rules =>
  (definition, found, event, nowMs) =>
    rules(definition, found, found === undefined ? event : change(event, found), nowMs);

export const mapSteps = (
  found: Instance,
  change: (step: StepState, name: string) => StepState,
): Instance => ({
  ...found,
  steps: Object.fromEntries(Object.entries(found.steps).map(([name, step]) => [name, change(step, name)])),
});

export const mapPlan = (
  found: Instance,
  change: (step: Instance['plan'][number]) => Instance['plan'][number],
): Instance => ({ ...found, plan: found.plan.map(change) });

/** The decision, and what would follow if its command to this step were answered at once. */
export const answering =
  (chosen: (decision: Decision) => SagaEvent | undefined) =>
  (rules: Rules): Rules =>
  (definition, found, event, nowMs) => {
    let decision = rules(definition, found, event, nowMs);
    for (let rounds = 0; rounds < 20; rounds += 1) {
      const answer = chosen(decision);
      if (answer === undefined || decision.instance === undefined) break;
      const { step } = answer as Extract<SagaEvent, { kind: 'reply' }>;
      const before = decision;
      const after = rules(definition, decision.instance, answer, nowMs);
      const tick = after.tick ?? before.tick;
      decision = {
        ...after,
        answer: before.answer,
        commands: [...before.commands.filter((command) => command.step !== step), ...after.commands],
        ...(tick !== undefined && { tick }),
      };
    }
    return decision;
  };

const isStored = (record: StepRecord, ...states: readonly StepRecord['state'][]): boolean =>
  !states.includes(record.state);

export const notKeeping =
  (...states: readonly StepRecord['state'][]): NonNullable<Way['records']> =>
  (records) => ({
    ...records,
    writeIn(transaction, record) {
      if (isStored(record, ...states)) records.writeIn(transaction, record);
    },
    change: (ref, rule) =>
      records.change(ref, (found) => {
        const { answer, record } = rule(found);
        return record !== undefined && isStored(record, ...states) ? { answer, record } : { answer };
      }),
  });
