/**
 * One run of a saga as it is stored, and what follows from its fields alone.
 *
 * The plan is copied into the instance when it starts, so a running instance is never continued under another plan; only
 * the functions of its steps come from the code, by version and name. Bodies and replies are JSON texts.
 */
import { hashOf } from '../hash.ts';

export type SagaRef = Readonly<{
  /** Of the orchestrator. */
  consumer: string;
  /** The definition's name. */
  saga: string;
  /** The instance's own name, 1 to 512 bytes. */
  id: string;
}>;

export type StepKind =
  /** Compensable, and done by the transaction that starts the saga: it has no `do`. */
  'begun' | 'compensable' | 'pivot' | 'retriable';

export type StepPlan = Readonly<{
  name: string;
  kind: StepKind;
  /** Steps of one group run side by side; groups run one after the other, from 0. */
  group: number;
  topic: string;
  /** Until the first repeat of a command. */
  timeoutMs: number;
  /** Of a compensable step or pivot: how often `do` is sent before the saga is aborted. */
  attempts: number;
}>;

/** What a command asks a participant for. */
export type Action = 'do' | 'undo' | 'withdraw';

export type StepStatus =
  | 'idle'
  /** `when` said no. It is never undone. */
  | 'skipped'
  /** `do` was sent and no reply is known: the step is in doubt. */
  | 'doing'
  /** The pivot is asked whether it has been done; if not, it never will. */
  | 'withdrawing'
  | 'done'
  /** It has no effect, and never will: refused, or withdrawn. */
  | 'refused'
  | 'undoing'
  /** It has no effect any more, or never had one. */
  | 'undone';

export type StepState = Readonly<{
  status: StepStatus;
  /** Of the present action, from 1; 0 before the first. */
  attempt: number;
  /** The present action's body as it was first sent. */
  body?: string;
  /** Time of the commit that sent it last, milliseconds since the epoch. `commit`: the commit that writes this. */
  sentAtMs?: number | 'commit';
  /** From then until it is sent again. */
  waitMs?: number;
  /** Of an undo: the step is known to be done. */
  known?: true;
  /** The stored reply to `do`, as JSON. */
  reply?: string;
  /** Why the step waits for an operator. It goes on being asked. */
  problem?: string;
}>;

export type HistoryEntry = Readonly<{
  /** The store's time of the transaction's read. */
  atMs: number;
  event: string;
  /** The `dedupId` of the message, where it had one. */
  id?: string;
  /** To an operator's command. */
  answer?: string;
}>;

export type SagaState = 'running' | 'compensating' | 'completed' | 'compensated';

export type Instance = Readonly<{
  ref: SagaRef;
  version: number;
  /** Of the body of its start: another start of this ID with other data is a conflict. */
  startHash: string;
  state: SagaState;
  plan: readonly StepPlan[];
  steps: Readonly<Record<string, StepState>>;
  /** The saga's data as JSON: what it was started with, changed by `replied`. */
  data: string;
  /** Why it is compensated. */
  reason?: string;
  deadlineAtMs?: number;
  /** The deadline has passed after the decision: it goes on to its end. */
  late?: true;
  /** The latest setting of the timer: a tick of another one is stale. */
  arm: number;
  /** When the tick of this arm comes; absent once it has come. */
  armedAtMs?: number;
  /** When something is due; absent once it has ended. */
  wakeAtMs?: number;
  /** A function of the definition threw, or the document would be too large: tried again with growing pauses. */
  failure?: Readonly<{ text: string; times: number }>;
  /** The last 100 events. */
  history: readonly HistoryEntry[];
  startedAtMs: number;
  /** The store's time of the latest event. */
  atMs: number;
}>;

/** Name of its document. */
export const instanceId = ({ consumer, saga, id }: SagaRef): string => hashOf('saga', consumer, saga, id);

export const isEnded = ({ state }: Pick<Instance, 'state'>): boolean =>
  state === 'completed' || state === 'compensated';

export const stepOf = (steps: Instance['steps'], name: string): StepState =>
  steps[name] ?? { status: 'idle', attempt: 0 };

const OPEN: Readonly<Partial<Record<StepStatus, Action>>> = {
  doing: 'do',
  withdrawing: 'withdraw',
  undoing: 'undo',
};

/** The command that waits for its reply; undefined where none does. */
export const openAction = ({ status }: Pick<StepState, 'status'>): Action | undefined => OPEN[status];

type Planned = Pick<Instance, 'plan' | 'steps'>;

/** From here on nothing is compensated or aborted: the pivot is done, or a retriable step was sent. */
export const isDecided = ({ plan, steps }: Planned): boolean =>
  plan.some(({ name, kind }) => {
    const { status } = stepOf(steps, name);
    if (kind === 'pivot') return status === 'done';
    return kind === 'retriable' && status !== 'idle' && status !== 'skipped' && status !== 'undone';
  });

/** As it is read back: the time of the commit is where it was asked for. */
export const asCommitted = (instance: Instance, atMs: number): Instance => ({
  ...instance,
  steps: Object.fromEntries(
    Object.entries(instance.steps).map(([name, step]) => [
      name,
      step.sentAtMs === 'commit' ? { ...step, sentAtMs: atMs } : step,
    ]),
  ),
});

/** Why the instance waits for an operator; empty where it does not. */
export function problemsOf({
  failure,
  steps,
  state,
}: Pick<Instance, 'failure' | 'steps' | 'state'>): readonly string[] {
  if (isEnded({ state })) return [];
  const own = Object.entries(steps).flatMap(([name, { problem }]) =>
    problem === undefined ? [] : [`${name}: ${problem}`],
  );
  return failure === undefined ? own : [failure.text, ...own];
}

export const isParked = (instance: Instance): boolean => problemsOf(instance).length > 0;

/** Of a step that was sent by the commit that writes it, the time of the read stands for the commit's. */
export const dueMs = ({ sentAtMs, waitMs = 0 }: StepState, nowMs: number): number =>
  (typeof sentAtMs === 'number' ? sentAtMs : nowMs) + waitMs;

/** What is stored of it: a document of 1 MiB has other fields too. */
export const MAX_INSTANCE_BYTES = 900_000;
export const MAX_DATA_BYTES = 500_000;
