/**
 * The saga's part of the wire contract: the attributes by which orchestrators, participants and programs in any language
 * speak to each other. Nothing else in the library knows their names.
 *
 * Values are validated where they enter; an invalid one is a dead letter, and its meaning is not guessed at.
 */
import { PermanentError } from '../errors.ts';
import { type Attributes, byteLength, type Message } from '../message.ts';
import type { Action, StepKind } from './instance.ts';

export const SAGA_ATTRIBUTE = {
  /** The definition's name. */
  saga: 'saga',
  /** The instance's name. */
  sagaId: 'sagaId',
  sagaAction: 'sagaAction',
  /** Of a start: the definition that its publisher means. */
  sagaVersion: 'sagaVersion',
  sagaStep: 'sagaStep',
  sagaAttempt: 'sagaAttempt',
  /** Of a command: whether a refusal is final, and what a missing record means. */
  sagaKind: 'sagaKind',
  /** Of an undo: `true` where the step is known to be done. */
  sagaKnown: 'sagaKnown',
  /** Of a reply. */
  sagaOutcome: 'sagaOutcome',
  /** Of a reply: a short word that says why a participant refused. */
  sagaCode: 'sagaCode',
  /** Of a command: where its reply goes. */
  replyTo: 'replyTo',
  /** Of a tick: which setting of the timer. */
  sagaArm: 'sagaArm',
  correlationId: 'correlationId',
  /** The `dedupId` of the message that caused this one. */
  causationId: 'causationId',
} as const;

export type Outcome = 'done' | 'refused' | 'cancelled' | 'undone' | 'missing' | 'withdrawn';
export type OperatorAction = 'cancel' | 'retry' | 'settle';

/** A tick of the sweep's, in the place of an arm. */
export const SWEEP_ARM = 'sweep';

export type Command = Readonly<{
  saga: string;
  id: string;
  step: string;
  action: Action;
  attempt: number;
  kind: StepKind;
  isKnown: boolean;
  replyTo: string;
}>;

export type ToOrchestrator = Readonly<{ saga: string; id: string }> &
  (
    | Readonly<{ action: 'start'; version?: number }>
    | Readonly<{ action: Action; step: string; attempt: number; outcome: Outcome; code?: string }>
    | Readonly<{ action: 'tick'; arm: number | typeof SWEEP_ARM }>
    | Readonly<{ action: OperatorAction }>
  );

const KINDS: readonly string[] = ['begun', 'compensable', 'pivot', 'retriable'] satisfies readonly StepKind[];
const ACTIONS: readonly string[] = ['do', 'undo', 'withdraw'] satisfies readonly Action[];
const OPERATOR: readonly string[] = ['cancel', 'retry', 'settle'] satisfies readonly OperatorAction[];

const OUTCOMES: Readonly<Record<Action, readonly string[]>> = {
  do: ['done', 'refused', 'cancelled'] satisfies readonly Outcome[],
  undo: ['undone', 'refused', 'missing'] satisfies readonly Outcome[],
  withdraw: ['withdrawn', 'done'] satisfies readonly Outcome[],
};

const SAGA_BYTES = 256;
const ID_BYTES = 512;
const STEP_BYTES = 100;
const REPLY_TO_BYTES = 1_024;
const CODE_BYTES = 100;
const TEXT_SHOWN = 60;

/** Throws PermanentError `INVALID_ATTRIBUTE` for a message that is no command. */
export function parseCommand({ attributes }: Pick<Message, 'attributes'>): Command {
  const { sagaAction, sagaKind, sagaKnown, replyTo } = SAGA_ATTRIBUTE;
  const action = oneOf(attributes, sagaAction, ACTIONS) as Action;
  const known = attributes[sagaKnown];
  if (known !== undefined && known !== 'true') throw refuse(sagaKnown, known, 'only "true"');
  return {
    ...parseInstance(attributes),
    ...parseStep(attributes),
    action,
    kind: oneOf(attributes, sagaKind, KINDS) as StepKind,
    isKnown: known === 'true',
    replyTo: textOf(attributes, replyTo, REPLY_TO_BYTES),
  };
}

/** Throws PermanentError `INVALID_ATTRIBUTE` for a message that is not for an orchestrator. */
export function parseForOrchestrator({ attributes }: Pick<Message, 'attributes'>): ToOrchestrator {
  const { sagaAction, sagaVersion, sagaArm, sagaOutcome, sagaCode } = SAGA_ATTRIBUTE;
  const instance = parseInstance(attributes);
  const action = oneOf(attributes, sagaAction, ['start', 'tick', ...ACTIONS, ...OPERATOR]);
  if (action === 'start') {
    const isNamed = attributes[sagaVersion] !== undefined;
    return { ...instance, action, ...(isNamed && { version: numberOf(attributes, sagaVersion) }) };
  }
  if (action === 'tick') {
    const isSweep = attributes[sagaArm] === SWEEP_ARM;
    return { ...instance, action, arm: isSweep ? SWEEP_ARM : numberOf(attributes, sagaArm) };
  }
  if (OPERATOR.includes(action)) return { ...instance, action: action as OperatorAction };
  const asked = action as Action;
  return {
    ...instance,
    ...parseStep(attributes),
    action: asked,
    outcome: oneOf(attributes, sagaOutcome, OUTCOMES[asked]) as Outcome,
    ...(attributes[sagaCode] !== undefined && { code: textOf(attributes, sagaCode, CODE_BYTES) }),
  };
}

/** Throws PermanentError `INVALID_ATTRIBUTE`. */
export function checkSagaId(id: unknown): asserts id is string {
  checkText(SAGA_ATTRIBUTE.sagaId, id, ID_BYTES);
}

/** What a participant says with a refusal. Throws PermanentError `INVALID_ATTRIBUTE`. */
export function checkCode(code: unknown): asserts code is string {
  checkText(SAGA_ATTRIBUTE.sagaCode, code, CODE_BYTES);
}

const parseInstance = (attributes: Attributes): Readonly<{ saga: string; id: string }> => ({
  saga: textOf(attributes, SAGA_ATTRIBUTE.saga, SAGA_BYTES),
  id: textOf(attributes, SAGA_ATTRIBUTE.sagaId, ID_BYTES),
});

const parseStep = (attributes: Attributes): Readonly<{ step: string; attempt: number }> => ({
  step: textOf(attributes, SAGA_ATTRIBUTE.sagaStep, STEP_BYTES),
  attempt: numberOf(attributes, SAGA_ATTRIBUTE.sagaAttempt),
});

function textOf(attributes: Attributes, name: string, bytes: number): string {
  const value: unknown = attributes[name];
  checkText(name, value, bytes);
  return value;
}

function checkText(name: string, value: unknown, bytes: number): asserts value is string {
  const isRight =
    typeof value === 'string' && value !== '' && byteLength(value) <= bytes && value.isWellFormed();
  if (!isRight) throw refuse(name, value, `1 to ${bytes} bytes of well-formed text`);
}

function numberOf(attributes: Attributes, name: string): number {
  const value = attributes[name];
  if (value === undefined || !/^[1-9][0-9]{0,14}$/.test(value))
    throw refuse(name, value, 'a whole number from 1, digits only');
  return Number(value);
}

function oneOf(attributes: Attributes, name: string, accepted: readonly string[]): string {
  const value = attributes[name];
  if (value === undefined || !accepted.includes(value)) throw refuse(name, value, accepted.join(', '));
  return value;
}

function refuse(name: string, value: unknown, accepted: string): PermanentError {
  const cut =
    typeof value === 'string' && value.length > TEXT_SHOWN ? `${value.slice(0, TEXT_SHOWN)}…` : value;
  const shown = typeof value === 'string' ? JSON.stringify(cut) : `of type ${typeof value}`;
  return new PermanentError('INVALID_ATTRIBUTE', `attribute ${name} is ${shown}; accepted: ${accepted}`);
}
