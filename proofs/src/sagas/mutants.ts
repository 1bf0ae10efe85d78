/**
 * Sagas, each with one rule removed, to test the random programs. None is for use. The name begins with
 * the rule of docs/protocols.md that it breaks.
 */
import { codeOf } from '../../../shared/src/errors.ts';
import { ack } from '../../../shared/src/outcome.ts';
import { type Instance, isDecided, openAction } from '../../../shared/src/sagas/instance.ts';
import { answering, finding, hearing, mapPlan, mapSteps, notKeeping, planning } from './mutations.ts';
import type { Way } from './play.ts';
import type { Invariant } from './promises.ts';

export type Mutant = Readonly<{ name: string; breaks: Invariant; way: Way }>;
export const mutants: readonly Mutant[] = [
  {
    name: 'S1: commands leave before the commit that decides them',
    breaks: 'no dead letter',
    way: {
      handler: (handler, publisher) => async (message, context) => {
        const outcome = await handler(message, context);
        if (outcome.kind !== 'ack') return outcome;
        for (const command of outcome.publish ?? []) await publisher.publish(command);
        return ack(outcome.reason);
      },
    },
  },
  {
    name: 'S2: no step record',
    breaks: 'an effect once',
    way: { records: (records) => ({ ...records, readIn: async () => undefined }) },
  },
  {
    name: 'S2b: one dedupId for all attempts of a command',
    breaks: 'every saga ends',
    way: {
      posted: (message) => {
        const { sagaAttempt, sagaOutcome, sagaId, sagaStep, sagaAction } = message.attributes;
        if (sagaAttempt === undefined || sagaOutcome !== undefined) return message;
        const dedupId = `${sagaId}/${sagaStep}/${sagaAction}`;
        return { ...message, attributes: { ...message.attributes, dedupId } };
      },
    },
  },
  {
    name: 'S3: a step in doubt counts as not done',
    breaks: 'all or nothing',
    way: {
      rules: answering(({ commands }) => {
        const doubtful = commands.find(({ action, isKnown }) => action === 'undo' && !isKnown);
        if (doubtful === undefined) return undefined;
        return { kind: 'reply', step: doubtful.step, action: 'undo', outcome: 'undone', reply: '' };
      }),
    },
  },
  { name: 'S4: no tombstones', breaks: 'all or nothing', way: { records: notKeeping('cancelled') } },
  {
    name: 'S5b: a tick that finds nothing due sets no timer',
    breaks: 'every saga ends',
    way: {
      rules: (rules) => (definition, found, event, nowMs) => {
        const decision = rules(definition, found, event, nowMs);
        if (event.kind !== 'tick' || decision.commands.length > 0) return decision;
        const { tick: _dropped, ...rest } = decision;
        return rest;
      },
    },
  },
  {
    name: 'S6: a tick times out what is not due',
    breaks: 'no wait is cut short',
    way: {
      rules: finding((found, event) =>
        event.kind === 'tick' ? mapSteps(found, (step) => ({ ...step, waitMs: 0 })) : found,
      ),
    },
  },
  {
    name: 'S6: due counts from the read',
    breaks: 'no wait is cut short',
    way: {
      store: (store) => ({
        ...store,
        async readIn(transaction, ref) {
          const { instance, nowMs } = await store.readIn(transaction, ref);
          // As if each step had been sent when the transaction of its sending read the instance.
          const sentAt = new Map(instance?.history.map(({ atMs }) => [atMs, atMs]));
          const latest = Math.max(0, ...sentAt.keys());
          return {
            nowMs,
            instance:
              instance &&
              mapSteps(instance, (step) => ({
                ...step,
                ...(typeof step.sentAtMs === 'number' && { sentAtMs: Math.min(step.sentAtMs, latest) }),
              })),
          };
        },
      }),
    },
  },
  { name: 'S7: no sweep', breaks: 'every saga ends', way: { hasNoSweep: true } },
  {
    name: 'S8: a reply counts for whichever step is open',
    breaks: 'all or nothing',
    way: {
      rules: hearing((event, { steps }) => {
        if (event.kind !== 'reply') return event;
        const open = Object.entries(steps).find(([, step]) => openAction(step) === event.action);
        return open === undefined ? event : { ...event, step: open[0] };
      }),
    },
  },
  {
    name: 'S8: a late reply goes on while the saga compensates',
    breaks: 'every saga ends',
    way: {
      rules: finding((found, event) => {
        const isLate =
          found.state === 'compensating' &&
          event.kind === 'reply' &&
          event.action === 'do' &&
          event.outcome === 'done';
        if (!isLate) return found;
        const doing = mapSteps(found, (step, name) =>
          name === event.step ? { ...step, status: 'doing' } : step,
        );
        return { ...doing, state: 'running' };
      }),
    },
  },
  {
    name: 'S9: a pivot in doubt is taken for not done',
    breaks: 'all or nothing',
    way: {
      rules: answering(({ commands }) => {
        const asked = commands.find(({ action }) => action === 'withdraw');
        if (asked === undefined) return undefined;
        return { kind: 'reply', step: asked.step, action: 'withdraw', outcome: 'withdrawn', reply: '' };
      }),
    },
  },
  {
    name: 'S9: a pivot in doubt is undone like any other step',
    breaks: 'the decision is final',
    way: {
      rules: planning((found) =>
        mapPlan(found, (step) => (step.kind === 'pivot' ? { ...step, kind: 'compensable' } : step)),
      ),
    },
  },
  {
    name: 'S10: the deadline and a cancel count after the decision',
    breaks: 'the decision is final',
    way: {
      rules: planning((found, event, _definition, nowMs) => {
        const isAborted = event.kind === 'cancel' || (found.deadlineAtMs ?? Infinity) <= nowMs;
        if (!isAborted || found.state !== 'running' || !isDecided(found)) return found;
        return mapPlan(found, (step) => ({ ...step, kind: step.kind === 'begun' ? 'begun' : 'compensable' }));
      }),
    },
  },
  {
    name: 'S11: all groups are undone at once',
    breaks: 'groups in their order',
    way: {
      rules: (rules) => (definition, found, event, nowMs) => {
        const flat = (instance: Instance): Instance => mapPlan(instance, (step) => ({ ...step, group: 0 }));
        const decision = rules(definition, found, event, nowMs);
        if (decision.instance?.state !== 'compensating') return decision;
        const sameGroups = (instance: Instance): Instance => ({
          ...instance,
          plan: found?.plan ?? instance.plan,
        });
        const all = rules(definition, flat(decision.instance), { kind: 'retry' }, nowMs);
        const commands = all.commands.filter(({ attempt }) => attempt === 1);
        return {
          ...decision,
          ...(all.instance !== undefined && { instance: sameGroups(all.instance) }),
          commands: [...decision.commands, ...commands],
          ...(all.tick !== undefined && { tick: all.tick }),
        };
      },
    },
  },
  {
    name: 'S12: an undo is sent twice at most',
    breaks: 'every saga ends',
    way: {
      posted: (message) => {
        const { sagaAction, sagaAttempt, sagaOutcome } = message.attributes;
        const isMore = sagaAction === 'undo' && sagaOutcome === undefined && Number(sagaAttempt) > 2;
        return isMore ? undefined : message;
      },
    },
  },
  {
    name: 'S13: a refusal is not recorded',
    breaks: 'all or nothing',
    way: { records: notKeeping('refused') },
  },
  {
    name: 'S14: that a call is being made is not recorded before it',
    breaks: 'all or nothing',
    way: {
      records: (records) => ({
        ...records,
        change: (ref, rule) =>
          records.change(ref, (found) => {
            const decision = rule(found);
            if (decision.record?.state === 'started') return { answer: decision.answer };
            // The call is over, and its record is to take the place of the one that was not made.
            const isMissed = found === undefined && (decision.answer as unknown) === false;
            return isMissed ? rule({ ref, state: 'started', reply: '' }) : decision;
          }),
      }),
    },
  },
  {
    name: 'S15: an instance is continued under the plan that a process happens to know',
    breaks: 'its own plan',
    way: {
      secondKnows: (one) => [one, { ...one, version: 2 }],
      rules: finding((found, _event, definition) => ({ ...found, plan: definition.plan })),
    },
  },
  {
    name: 'S15: what is of an unknown version is acknowledged',
    breaks: 'a start that is acknowledged has started',
    way: {
      answers: (outcome) =>
        outcome.kind === 'retry' && codeOf(outcome.error) === 'SAGA_VERSION_UNKNOWN' ? ack('stale') : outcome,
    },
  },
  {
    name: 'S16: cancel says that it will be compensated while the pivot is in doubt',
    breaks: 'answers are true',
    way: {
      rules: (rules) => (definition, found, event, nowMs) => {
        const decision = rules(definition, found, event, nowMs);
        const { instance } = decision;
        if (decision.answer !== 'asked' || instance === undefined) return decision;
        const history = instance.history.map((entry) =>
          entry.answer === 'asked' ? { ...entry, answer: 'cancelling' } : entry,
        );
        return { ...decision, instance: { ...instance, history } };
      },
    },
  },
  {
    name: 'S17: a second start begins again',
    breaks: 'all or nothing',
    way: {
      rules: (rules) => (definition, found, event, nowMs) =>
        rules(definition, event.kind === 'start' ? undefined : found, event, nowMs),
    },
  },
];

/** In programs in which the record of a step that is done is lost: those are promised to end parked, and not wrong. */
export const forgetful: Mutant = {
  name: 'S18: a missing record is called undone although the step is known to be done',
  breaks: 'all or nothing',
  way: {
    forgets: true,
    posted: (message) => {
      const { sagaKnown: _dropped, ...attributes } = message.attributes;
      return { ...message, attributes };
    },
  },
};
