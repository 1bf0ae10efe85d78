/**
 * How instances and step records are stored in Firestore, and read back. Bodies, replies and data are JSON texts, for
 * JSON nests what Firestore does not; steps are a map, because the client takes no server timestamps in a list.
 *
 * `expiresAt` serves the TTL policy alone. On an instance it is there exactly once it has ended.
 */
import { type DocumentData, type DocumentSnapshot, FieldValue, Timestamp } from '@google-cloud/firestore';
import { TransientError } from '../errors.ts';
import { type Instance, isEnded, type SagaState, type StepState, type StepStatus } from './instance.ts';
import type { SagaTimes } from './saga-store.ts';
import { sortKeys } from './sort-keys.ts';
import { STEP_RETENTION_MS, type StepRecord, type StepRecordState } from './step-records.ts';

/** Format of both. */
const VERSION = 1;

const STATES: ReadonlySet<unknown> = new Set<SagaState>([
  'running',
  'compensating',
  'completed',
  'compensated',
]);
const STATUSES: ReadonlySet<unknown> = new Set<StepStatus>([
  'idle',
  'skipped',
  'doing',
  'withdrawing',
  'done',
  'refused',
  'undoing',
  'undone',
]);
const RECORD_STATES: ReadonlySet<unknown> = new Set<StepRecordState>([
  'started',
  'done',
  'refused',
  'cancelled',
  'undoing',
  'undone',
]);
const KINDS: ReadonlySet<unknown> = new Set(['begun', 'compensable', 'pivot', 'retriable']);

/** The whole document: what is not in it is gone. */
export function instanceFields(instance: Instance, shards: number, times: SagaTimes): DocumentData {
  const { ref, steps, plan, history, deadlineAtMs, armedAtMs, wakeAtMs, failure, reason, atMs } = instance;
  const { version, startHash, state, data, late, arm, startedAtMs } = instance;
  const endsMs = isEnded(instance) ? atMs + times.endedRetentionMs : undefined;
  return {
    v: VERSION,
    consumer: ref.consumer,
    saga: ref.saga,
    id: ref.id,
    version,
    startHash,
    state,
    plan: plan.map((step) => ({ ...step })),
    steps: Object.fromEntries(Object.entries(steps).map(([name, step]) => [name, stepFields(step)])),
    data,
    reason: reason ?? null,
    deadlineAtMs: deadlineAtMs ?? null,
    late: late === true,
    arm,
    armedAtMs: armedAtMs ?? null,
    wakeAtMs: wakeAtMs ?? null,
    failure: failure === undefined ? null : { ...failure },
    history: history.map((entry) => ({ ...entry })),
    startedAtMs,
    atMs,
    ...sortKeys(instance, shards),
    // Always there, or a TTL policy would act on what a replaced document left behind.
    expiresAt: endsMs === undefined ? null : Timestamp.fromMillis(endsMs),
  };
}

function stepFields({
  status,
  attempt,
  body,
  sentAtMs,
  waitMs,
  known,
  reply,
  problem,
}: StepState): DocumentData {
  const sentAt = typeof sentAtMs === 'number' ? Timestamp.fromMillis(sentAtMs) : FieldValue.serverTimestamp();
  return {
    status,
    attempt,
    body: body ?? null,
    sentAt: sentAtMs === undefined ? null : sentAt,
    waitMs: waitMs ?? null,
    known: known === true,
    reply: reply ?? null,
    problem: problem ?? null,
  };
}

/** Throws TransientError `UNREADABLE_SAGA`: what is not exactly ours is neither moved nor overwritten. */
export function instanceOf(snapshot: DocumentSnapshot): Instance | undefined {
  const data = snapshot.data();
  if (data === undefined) return undefined;
  refuseWrong(snapshot, 'UNREADABLE_SAGA', data, INSTANCE);
  const steps = data['steps'] as Readonly<Record<string, DocumentData>>;
  return {
    ref: { consumer: data['consumer'], saga: data['saga'], id: data['id'] },
    version: data['version'],
    startHash: data['startHash'],
    state: data['state'],
    plan: data['plan'],
    steps: Object.fromEntries(Object.entries(steps).map(([name, step]) => [name, stepIn(step)])),
    data: data['data'],
    ...(data['reason'] !== null && { reason: data['reason'] }),
    ...(data['deadlineAtMs'] !== null && { deadlineAtMs: data['deadlineAtMs'] }),
    ...(data['late'] && { late: true as const }),
    arm: data['arm'],
    ...(data['armedAtMs'] !== null && { armedAtMs: data['armedAtMs'] }),
    ...(data['wakeAtMs'] !== null && { wakeAtMs: data['wakeAtMs'] }),
    ...(data['failure'] !== null && { failure: data['failure'] }),
    history: data['history'],
    startedAtMs: data['startedAtMs'],
    atMs: data['atMs'],
  };
}

const stepIn = (step: DocumentData): StepState => ({
  status: step['status'],
  attempt: step['attempt'],
  ...(step['body'] !== null && { body: step['body'] }),
  ...(step['sentAt'] !== null && { sentAtMs: (step['sentAt'] as Timestamp).toMillis() }),
  ...(step['waitMs'] !== null && { waitMs: step['waitMs'] }),
  ...(step['known'] && { known: true as const }),
  ...(step['reply'] !== null && { reply: step['reply'] }),
  ...(step['problem'] !== null && { problem: step['problem'] }),
});

export function recordFields(record: StepRecord, nowMs: number): DocumentData {
  const { ref, state, reply, code, body } = record;
  return {
    v: VERSION,
    consumer: ref.consumer,
    saga: ref.saga,
    id: ref.id,
    step: ref.step,
    state,
    reply,
    code: code ?? null,
    body: body ?? null,
    at: FieldValue.serverTimestamp(),
    expiresAt: Timestamp.fromMillis(Math.ceil(nowMs) + STEP_RETENTION_MS),
  };
}

/** Throws TransientError `UNREADABLE_STEP`. */
export function recordOf(snapshot: DocumentSnapshot): StepRecord | undefined {
  const data = snapshot.data();
  if (data === undefined) return undefined;
  refuseWrong(snapshot, 'UNREADABLE_STEP', data, RECORD);
  return {
    ref: { consumer: data['consumer'], saga: data['saga'], id: data['id'], step: data['step'] },
    state: data['state'],
    reply: data['reply'],
    ...(data['code'] !== null && { code: data['code'] }),
    ...(data['body'] !== null && { body: data['body'] }),
  };
}

type Checks = Readonly<Record<string, (value: unknown) => boolean>>;

const isText = (value: unknown): boolean => typeof value === 'string';
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;
const isTime = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value);
const isFlag = (value: unknown): boolean => typeof value === 'boolean';
const orNull =
  (check: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    value === null || check(value);
const shaped =
  (checks: Checks) =>
  (value: unknown): boolean =>
    typeof value === 'object' && value !== null && wrongField(value, checks) === undefined;
const listOf =
  (check: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    Array.isArray(value) && value.every(check);
const mapOf =
  (check: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    typeof value === 'object' && value !== null && Object.values(value).every(check);
const among =
  (accepted: ReadonlySet<unknown>) =>
  (value: unknown): boolean =>
    accepted.has(value);

const STEP: Checks = {
  status: among(STATUSES),
  attempt: isCount,
  body: orNull(isText),
  sentAt: orNull((value) => value instanceof Timestamp),
  waitMs: orNull(isTime),
  known: isFlag,
  reply: orNull(isText),
  problem: orNull(isText),
};

const INSTANCE: Checks = {
  consumer: isText,
  saga: isText,
  id: isText,
  version: isCount,
  startHash: isText,
  state: among(STATES),
  plan: listOf(
    shaped({
      name: isText,
      kind: among(KINDS),
      group: isCount,
      topic: isText,
      timeoutMs: isTime,
      attempts: isCount,
    }),
  ),
  steps: mapOf(shaped(STEP)),
  data: isText,
  reason: orNull(isText),
  deadlineAtMs: orNull(isTime),
  late: isFlag,
  arm: isCount,
  armedAtMs: orNull(isTime),
  wakeAtMs: orNull(isTime),
  failure: orNull(shaped({ text: isText, times: isCount })),
  history: listOf(shaped({ atMs: isTime, event: isText })),
  startedAtMs: isTime,
  atMs: isTime,
};

const RECORD: Checks = {
  consumer: isText,
  saga: isText,
  id: isText,
  step: isText,
  state: among(RECORD_STATES),
  reply: isText,
  code: orNull(isText),
  body: orNull(isText),
};

const wrongField = (value: object, checks: Checks): string | undefined =>
  Object.entries(checks).find(([name, isRight]) => !isRight(Reflect.get(value, name)))?.[0];

function refuseWrong(snapshot: DocumentSnapshot, code: string, data: DocumentData, checks: Checks): void {
  const field = data['v'] === VERSION ? wrongField(data, checks) : 'v';
  if (field === undefined) return;
  const what =
    field === 'v' ? `format version ${String(data['v'])}` : `its field ${field} has no value of its kind`;
  throw new TransientError(code, `document ${snapshot.ref.path} cannot be used: ${what}`);
}
