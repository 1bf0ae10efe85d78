/**
 * What is seen of a saga from outside: a span for each event at the orchestrator and for each command at a participant, and
 * metrics and lines of the log for what was committed. A transaction that runs again has a span for each run; metrics
 * and lines are of the run that was committed. A crash behind a commit loses them, and nothing else.
 *
 * No attribute names an instance, but on spans and in lines its short hash.
 */
import type { Attributes } from '@opentelemetry/api';
import { textOf } from '../errors.ts';
import type { Context } from '../handler.ts';
import { identifierHash } from '../hash.ts';
import { type Outcome, outcomeOf } from '../outcome.ts';
import { ATTR, count, gauge, isMeasured } from '../telemetry/instruments.ts';
import { inSpan, setOutcome } from '../telemetry/spans.ts';
import type { Decision } from './decide.ts';
import { type Instance, isEnded, isParked, problemsOf } from './instance.ts';
import type { SagaQuery, SagaStore } from './saga-store.ts';

type Seen = Readonly<{
  consumer: string;
  saga: string;
  id: string;
  /** What it is about, beside an event of the instance as a whole. */
  step?: string;
}>;

/** Runs `work` in a span, and passes through what it answers or throws. `name` must be one of few. */
export function observe(
  name: string,
  { consumer, saga, id, step }: Seen,
  work: () => Promise<Outcome>,
): Promise<Outcome> {
  const parts = () => ({
    name,
    attributes: {
      [ATTR.consumer]: consumer,
      [ATTR.saga]: saga,
      'pubsub_guarantees.instance': identifierHash(id),
      ...(step !== undefined && { [ATTR.step]: step }),
    },
  });
  return inSpan(parts, undefined, async (span) => {
    try {
      const outcome = await work();
      setOutcome(span, outcome);
      return outcome;
    } catch (error) {
      setOutcome(span, outcomeOf(error));
      throw error;
    }
  });
}

/** Of an event whose commit is known to be applied. `found`: the instance as it was before. */
export function reportCommitted(
  found: Instance | undefined,
  { instance, answer, commands }: Decision,
  context: Pick<Context, 'consumer' | 'log'>,
): void {
  if (instance === undefined) return;
  const { state, reason, ref } = instance;
  reportMetrics(found, { instance, commands }, context.consumer);
  const fields = { saga: ref.saga, instance: identifierHash(ref.id), state, answer };
  const { log } = context;
  if (isParked(instance)) {
    const problem = problemsOf(instance).join('; ');
    log.warn('a saga waits for an operator', { event: 'saga_parked', ...fields, problem });
  } else if (state === 'compensated') {
    log.info('a saga was compensated', { event: 'saga_compensated', ...fields, reason });
  } else log.debug?.('a saga has moved', { event: 'saga_moved', ...fields });
}

function reportMetrics(
  found: Instance | undefined,
  { instance, commands }: Required<Pick<Decision, 'instance' | 'commands'>>,
  consumer: string,
): void {
  const of: Attributes = { [ATTR.consumer]: consumer, [ATTR.saga]: instance.ref.saga };
  if (found === undefined) count('sagasStarted', of);
  if (isEnded(instance)) count('sagasEnded', { ...of, [ATTR.answer]: instance.state });
  if (isParked(instance) && (found === undefined || !isParked(found))) count('sagasParked', of);
  for (const { step, action, attempt } of commands) {
    const answer = attempt === 1 ? 'first' : 'again';
    count('sagaCommands', { ...of, [ATTR.step]: step, [ATTR.operation]: action, [ATTR.answer]: answer });
  }
}

/** What an open instance is listed under, and its query; of each the oldest comes first. */
const OPEN: Readonly<Record<'running' | 'compensating' | 'parked', Partial<SagaQuery>>> = {
  running: { state: 'running', parked: false },
  compensating: { state: 'compensating', parked: false },
  parked: { parked: true },
};

/** Three reads of one document each, and none where nothing measures. 0: there is none. */
export async function reportOpen(
  store: Pick<SagaStore<never>, 'list'>,
  { consumer, log }: Pick<Context, 'consumer' | 'log'>,
  nowMs: number,
): Promise<void> {
  if (!isMeasured()) return;
  try {
    for (const [state, query] of Object.entries(OPEN)) {
      const { items } = await store.list({ consumer, ...query, limit: 1 });
      const [oldest] = items;
      const ageMs = oldest === undefined ? 0 : Math.max(0, nowMs - oldest.startedAtMs);
      gauge('openSagas', ageMs / 1_000, { [ATTR.consumer]: consumer, [ATTR.answer]: state });
    }
  } catch (error) {
    log.warn('open sagas were not looked for', { consumer, error: textOf(error) });
  }
}
