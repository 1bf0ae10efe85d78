/** What must hold at the end of every program, judged by the instances and by the effects that were committed. */
import { isDeepStrictEqual } from 'node:util';
import { type Instance, isEnded } from '../../../shared/src/sagas/instance.ts';
import type { SagaDefinition } from '../../../shared/src/sagas/definition.ts';
import type { Effect } from './participants.ts';

export type Invariant =
  | 'a start that is acknowledged has started'
  | 'every saga ends'
  | 'all or nothing'
  | 'an effect once'
  | 'the decision is final'
  | 'groups in their order'
  | 'answers are true'
  | 'no wait is cut short'
  | 'its own plan'
  | 'no dead letter';

export type Violation = Readonly<{ invariant: Invariant; text: string }>;

export type Seen = Readonly<{
  id: string;
  instance: Instance | undefined;
  definition: SagaDefinition;
  log: readonly Effect[];
}>;

export function* violationsOf({ id, instance, definition, log }: Seen): Generator<Violation> {
  if (instance === undefined) {
    yield { invariant: 'a start that is acknowledged has started', text: id };
    return;
  }
  const { state, plan, version, history, steps } = instance;
  if (!isEnded(instance))
    yield { invariant: 'every saga ends', text: `${id} is ${JSON.stringify(instance)}` };
  if (version !== definition.version || !isDeepStrictEqual(plan, definition.plan))
    yield { invariant: 'its own plan', text: id };

  const own = log.filter((effect) => effect.id === id);
  for (const { name, kind } of plan) {
    const count = (what: Effect['what']): number =>
      own.filter((effect) => effect.step === name && effect.what === what).length;
    const [did, undid] = [kind === 'begun' ? 1 : count('do'), count('undo')];
    if (did > 1 || undid > did)
      yield { invariant: 'an effect once', text: `${name} of ${id}: ${did}, ${undid}` };
    if (undid > 0 && (kind === 'pivot' || kind === 'retriable'))
      yield { invariant: 'the decision is final', text: `${name} of ${id} was undone` };
    if (!isEnded(instance)) continue;
    const isSkipped = definition.functions[name]?.when?.(undefined) === false;
    const wanted = state === 'completed' && !isSkipped ? 1 : 0;
    if (did - undid !== wanted)
      yield {
        invariant: 'all or nothing',
        text: `${id} is ${state}, ${name} ${JSON.stringify(steps[name])} has ${did} - ${undid} effects`,
      };
  }
  yield* disorderIn(id, plan, own);
  for (const { answer } of history) {
    const end = { cancelling: 'compensated', tooLate: 'completed' }[answer ?? ''];
    if (end !== undefined && isEnded(instance) && state !== end)
      yield { invariant: 'answers are true', text: `${answer} was said to ${id}, which is ${state}` };
  }
}

/** Forward each group after those in front of it, backward each after those behind it. */
function* disorderIn(id: string, plan: Instance['plan'], own: readonly Effect[]): Generator<Violation> {
  const groupOf = (step: string): number => plan.find(({ name }) => name === step)?.group ?? -1;
  for (const [index, { step, what }] of own.entries()) {
    const group = groupOf(step);
    const isOutOfTurn = (other: Effect): boolean =>
      what === 'do' ? other.what === 'do' && groupOf(other.step) < group : groupOf(other.step) > group;
    const late = own.slice(index + 1).find(isOutOfTurn);
    if (late !== undefined)
      yield {
        invariant: 'groups in their order',
        text: `${id}: ${what} ${step} before ${late.what} ${late.step}`,
      };
  }
}
