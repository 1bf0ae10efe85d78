/**
 * The messages of a saga, as they leave: starts, commands, replies, ticks and operators' commands.
 *
 * A `dedupId` names what the message is about, so a repeat by a relay is a duplicate; a command's names its attempt as
 * well, because a command that is asked again must be answered again.
 */
import { ATTRIBUTE } from '../attributes.ts';
import { hashOf } from '../hash.ts';
import type { Attributes, OutgoingMessage } from '../message.ts';
import {
  checkSagaId,
  type Command,
  type OperatorAction,
  type Outcome,
  SAGA_ATTRIBUTE as NAME,
  SWEEP_ARM,
} from './attributes.ts';
import type { Action, SagaRef, StepKind } from './instance.ts';

type Of = Readonly<{ saga: string; id: string }>;

/** What an orchestrator asks one step for. */
export type Sending = Readonly<{
  step: string;
  topic: string;
  action: Action;
  attempt: number;
  kind: StepKind;
  isKnown: boolean;
  /** JSON, or empty. */
  body: string;
}>;

/** Throws PermanentError `INVALID_ATTRIBUTE` for an ID that is not 1 to 512 bytes. */
export function startMessage(
  topic: string,
  { saga, id, version, body }: Of & Readonly<{ version: number; body: string }>,
): OutgoingMessage {
  checkSagaId(id);
  return message(topic, body, {
    ...common({ saga, id }, 'start', undefined),
    [NAME.sagaVersion]: String(version),
    [ATTRIBUTE.dedupId]: hashOf('saga start', saga, id),
  });
}

export function commandMessage(
  { saga, id }: SagaRef,
  { step, topic, action, attempt, kind, isKnown, body }: Sending,
  replyTo: string,
  cause: string | undefined,
): OutgoingMessage {
  return message(topic, body, {
    ...common({ saga, id }, action, cause),
    ...ofStep(step, attempt),
    [NAME.sagaKind]: kind,
    ...(isKnown && { [NAME.sagaKnown]: 'true' }),
    [NAME.replyTo]: replyTo,
    [ATTRIBUTE.dedupId]: hashOf('saga command', saga, id, step, action, String(attempt)),
  });
}

export function replyMessage(
  command: Command,
  answer: Readonly<{ outcome: Outcome; reply: string; code?: string }>,
  cause: string | undefined,
): OutgoingMessage {
  const { saga, id, step, action, attempt, replyTo } = command;
  const { outcome, reply, code } = answer;
  return message(replyTo, reply, {
    ...common({ saga, id }, action, cause),
    ...ofStep(step, attempt),
    [NAME.sagaOutcome]: outcome,
    ...(code !== undefined && { [NAME.sagaCode]: code }),
    // A refusal that is not recorded may be followed by another answer to the same attempt.
    [ATTRIBUTE.dedupId]: hashOf('saga reply', saga, id, step, action, String(attempt), outcome, code ?? ''),
  });
}

export function tickMessage(
  { saga, id }: SagaRef,
  { arm, atMs }: Readonly<{ arm: number; atMs: number }>,
  topic: string,
  cause: string | undefined,
): OutgoingMessage {
  return message(topic, '', {
    ...common({ saga, id }, 'tick', cause),
    [NAME.sagaArm]: String(arm),
    [ATTRIBUTE.deliverAt]: new Date(Math.ceil(atMs)).toISOString(),
    [ATTRIBUTE.dedupId]: hashOf('saga tick', saga, id, String(arm)),
  });
}

/** A tick in the place of one that has not come. `call` is another one for each sweep. */
export const sweepMessage = ({ saga, id }: SagaRef, topic: string, call: string): OutgoingMessage =>
  message(topic, '', {
    ...common({ saga, id }, 'tick', undefined),
    [NAME.sagaArm]: SWEEP_ARM,
    [ATTRIBUTE.dedupId]: hashOf('saga sweep', saga, id, call),
  });

/** `call` is the `dedupId`: under it the answer is in the instance's history. */
export const operatorMessage = (
  { saga, id }: SagaRef,
  action: OperatorAction,
  body: string,
  topic: string,
  call: string,
): OutgoingMessage =>
  message(topic, body, { ...common({ saga, id }, action, undefined), [ATTRIBUTE.dedupId]: call });

const common = ({ saga, id }: Of, action: string, cause: string | undefined): Attributes => ({
  [NAME.saga]: saga,
  [NAME.sagaId]: id,
  [NAME.sagaAction]: action,
  [NAME.correlationId]: `${saga}/${id}`,
  ...(cause !== undefined && { [NAME.causationId]: cause }),
});

const ofStep = (step: string, attempt: number): Attributes => ({
  [NAME.sagaStep]: step,
  [NAME.sagaAttempt]: String(attempt),
});

const message = (topic: string, body: string, attributes: Attributes): OutgoingMessage => ({
  topic,
  data: Buffer.from(body, 'utf8'),
  attributes,
});
