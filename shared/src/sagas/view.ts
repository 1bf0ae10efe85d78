/** What a program or an operator sees of an instance. */
import {
  type HistoryEntry,
  type Instance,
  isEnded,
  problemsOf,
  type SagaState,
  type StepKind,
  type StepStatus,
  stepOf,
} from './instance.ts';
import { valueOf } from './json.ts';

export type SagaStepView = Readonly<{
  name: string;
  kind: StepKind;
  /** Steps of one group run side by side. */
  group: number;
  topic: string;
  status: StepStatus;
  attempt: number;
  sentAt?: Date;
  reply?: unknown;
  /** Why it waits for an operator. */
  problem?: string;
}>;

export type SagaView = Readonly<{
  saga: string;
  id: string;
  version: number;
  state: SagaState;
  isEnded: boolean;
  /** It waits for an operator, and goes on being tried. */
  isParked: boolean;
  problems: readonly string[];
  /** The deadline has passed after the decision. */
  isLate: boolean;
  /** Why it is compensated. */
  reason?: string;
  data: unknown;
  steps: readonly SagaStepView[];
  startedAt: Date;
  changedAt: Date;
  deadlineAt?: Date;
  /** When something is due. */
  wakeAt?: Date;
  /** The last 100 events. */
  history: readonly HistoryEntry[];
}>;

export function viewOf(instance: Instance): SagaView {
  const { ref, version, state, late, reason, data, plan, steps, history } = instance;
  const { startedAtMs, atMs, deadlineAtMs, wakeAtMs } = instance;
  const problems = problemsOf(instance);
  return {
    saga: ref.saga,
    id: ref.id,
    version,
    state,
    isEnded: isEnded(instance),
    isParked: problems.length > 0,
    problems,
    isLate: late === true,
    ...(reason !== undefined && { reason }),
    data: valueOf(data),
    steps: plan.map(({ name, kind, group, topic }) => {
      const { status, attempt, sentAtMs, reply, problem } = stepOf(steps, name);
      return {
        name,
        kind,
        group,
        topic,
        status,
        attempt,
        ...(typeof sentAtMs === 'number' && { sentAt: new Date(sentAtMs) }),
        ...(reply !== undefined && reply !== '' && { reply: valueOf(reply) }),
        ...(problem !== undefined && { problem }),
      };
    }),
    startedAt: new Date(startedAtMs),
    changedAt: new Date(atMs),
    ...(deadlineAtMs !== undefined && { deadlineAt: new Date(deadlineAtMs) }),
    ...(wakeAtMs !== undefined && { wakeAt: new Date(wakeAtMs) }),
    history,
  };
}
