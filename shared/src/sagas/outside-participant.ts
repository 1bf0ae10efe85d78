/**
 * A participant whose effect is no write of the store: a call to another service. At most one effect a step as far as the
 * service is idempotent by the key that it gets.
 *
 * That a call is being made is committed before it is made. So whatever asks next, after a crash or a lost answer, finds
 * that, and the call is made again by its key until its answer is definite; a withdrawal or an undo does the same. Nothing
 * is asked read-only, and nothing that the service may never have seen is called void.
 */
import type { Context, Handler } from '../handler.ts';
import type { Message } from '../message.ts';
import { TransientError } from '../errors.ts';
import { jsonText, valueOf } from './json.ts';
import type { Command } from './attributes.ts';
import {
  answered,
  checkParticipant,
  checkRecords,
  commandIn,
  type Done,
  observeStep,
  type Refused,
  type SagaStep,
  stepIn,
  type Undone,
  unknownStep,
} from './participant.ts';
import type { StepRecord, StepRecords, StepRef } from './step-records.ts';
import { type Answer, judge } from './step-rules.ts';

/** The service answers that the key was made void, and that it never will have an effect. */
export type Voided = Readonly<{ kind: 'voided' }>;
/**
 * As `Voided` says.
 *
 * @example
 * const answer = voided();
 */
export const voided = (): Voided => ({ kind: 'voided' });

export type OutsideContext = Context & Readonly<{ saga: SagaStep }>;

export type OutsideStep = Readonly<{
  /**
   * The call, with `saga.key` as its idempotency key. It may be made several times, also at once. A throw means that
   * nothing is known of it: it is made again.
   */
  call?(body: unknown, context: OutsideContext): Promise<Done | Refused | Voided>;
  /** Takes the effect back, by a key of its own (`saga.key`, which ends in `/undo` here). Absent for a pivot. */
  refund?(body: unknown, context: OutsideContext): Promise<Undone | Refused>;
}>;

export type OutsideOptions = Readonly<{
  /** Topics that it answers to: `projects/…/topics/…`, or an ID where the orchestrator is of the same project. */
  replyTo: readonly string[];
  /** The project of topics that are given by their IDs alone. Default: that of the store's client, where it was given one. */
  projectId?: string;
  /** By their names in the sagas. */
  steps: Readonly<Record<string, OutsideStep>>;
}>;

/**
 * A plain handler: put `publishing` inside of it, `deadLettering` around it, and no `dedup` and no inbox, because its
 * record is all that it needs. Outcomes and errors are those of `participant`.
 *
 * Cost of a `do`: two transactions on the record, each a read and a write.
 *
 * @example
 * const charge = outsideParticipant(firestoreStepRecords(firestore), {
 *   replyTo: ['saga'],
 *   steps: {
 *     charge: {
 *       async call({ total }: { total: number }, { saga, signal }) {
 *         const answer = await payments.charge({ total, idempotencyKey: saga.key, signal });
 *         return answer.declined ? refused('DECLINED') : done({ charge: answer.id });
 *       },
 *     },
 *   },
 * });
 * const handler = compose(charge, [deadLetters, publishing(publisher)]);
 */
export function outsideParticipant<Tx>(records: StepRecords<Tx>, options: OutsideOptions): Handler {
  checkRecords(records, ['change']);
  const accepts = checkParticipant(options, ['call', 'refund'], records);

  /** Writes `next` if the record is as it was left; otherwise what it has become is judged anew. */
  const move = (ref: StepRef, from: StepRecord['state'], next: StepRecord): Promise<boolean> =>
    records.change(ref, (record) => {
      if (record?.state === from) return { answer: true, record: next };
      return { answer: record?.state === next.state };
    });

  /** The call until its answer is definite, and what that makes of the record. Undefined: the step has no call. */
  const calling = async (received: Received, bodyText: string): Promise<Answer | undefined> => {
    const { ref, command, context } = received;
    const call = options.steps[ref.step]?.call;
    if (call === undefined) return undefined;
    const said = await call(valueOf(bodyText), { ...context, saga: stepIn(command) });
    const record = recordOf(ref, said);
    const isKept = record.state !== 'refused' || command.kind !== 'retriable';
    if (isKept && !(await move(ref, 'started', record))) return undefined;
    if (record.state === 'cancelled') return { outcome: 'cancelled', reply: '' };
    const { reply, code } = record;
    return record.state === 'done'
      ? { outcome: 'done', reply }
      : { outcome: 'refused', reply: '', ...(code !== undefined && { code }) };
  };

  const refunding = async ({ ref, command, body, context }: Received): Promise<Answer | undefined> => {
    const refund = options.steps[ref.step]?.refund;
    if (refund === undefined) return undefined;
    const saga = stepIn(command);
    const said = await refund(body, { ...context, saga: { ...saga, key: `${saga.key}/undo` } });
    if (said?.kind === 'refused') return { outcome: 'refused', reply: '', code: said.code };
    if (said?.kind !== 'undone') throw nothingSaid(ref.step, 'undone() or refused(code)');
    const { reply } = said;
    const isMine = await move(ref, 'undoing', { ref, state: 'undone', reply });
    return isMine ? { outcome: 'undone', reply } : undefined;
  };

  /** What to do first is decided and recorded in one transaction. */
  const begin = (received: Received, bodyText: string): Promise<Next> =>
    records.change<Next>(received.ref, (record) => {
      const { ref, command } = received;
      const verdict = judge(ref, command, record);
      if (verdict.kind === 'say') {
        const { answer, record: written } = verdict;
        return { answer: { kind: 'say', answer }, ...(written !== undefined && { record: written }) };
      }
      const step = options.steps[ref.step];
      if (verdict.kind === 'repeat') {
        const call = { kind: 'call', body: verdict.record.body ?? '' } as const;
        return { answer: step?.call === undefined ? { kind: 'unknown' } : call };
      }
      if ((verdict.what === 'do' ? step?.call : step?.refund) === undefined)
        return { answer: { kind: 'unknown' } };
      if (verdict.what === 'undo') {
        const undoing: StepRecord = { ref, state: 'undoing', reply: record?.reply ?? '' };
        return { answer: { kind: 'refund' }, ...(record?.state !== 'undoing' && { record: undoing }) };
      }
      if (record !== undefined) return { answer: { kind: 'call', body: record.body ?? '' } };
      return {
        answer: { kind: 'call', body: bodyText },
        record: { ref, state: 'started', reply: '', body: bodyText },
      };
    });

  const answerTo = async (received: Received, bodyText: string): Promise<Answer | 'unknown'> => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const next = await begin(received, bodyText);
      if (next.kind === 'unknown') return next.kind;
      if (next.kind === 'say') return next.answer;
      const answer = next.kind === 'refund' ? await refunding(received) : await calling(received, next.body);
      // An undo or a withdrawal goes on from what the call has said.
      const isAnswer = next.kind === 'refund' || received.command.action === 'do';
      if (answer !== undefined && isAnswer) return answer;
    }
    throw new TransientError('SAGA_STEP_BUSY', 'other deliveries changed the record of the step each time');
  };

  return async (message: Message, context) => {
    const received = { ...commandIn(message, context, accepts), context };
    const { command } = received;
    return observeStep(command, context, options.steps, async () => {
      const answer = await answerTo(received, jsonText(message));
      return answer === 'unknown' ? unknownStep(command) : answered(message, command, answer);
    });
  };
}

type Received = Readonly<{ ref: StepRef; command: Command; body: unknown; context: Context }>;

type Next =
  | Readonly<{ kind: 'say'; answer: Answer }>
  | Readonly<{ kind: 'call'; body: string }>
  | Readonly<{ kind: 'refund' }>
  | Readonly<{ kind: 'unknown' }>;

/** Looks at the record: one for the command, one after its call, and some for deliveries that are beside it. */
const ROUNDS = 5;

function recordOf(ref: StepRef, said: Done | Refused | Voided): StepRecord {
  if (said?.kind === 'done') return { ref, state: 'done', reply: said.reply };
  if (said?.kind === 'refused') return { ref, state: 'refused', reply: '', code: said.code };
  if (said?.kind === 'voided') return { ref, state: 'cancelled', reply: '' };
  throw nothingSaid(ref.step, 'done(), refused(code) or voided()');
}

const nothingSaid = (step: string, accepted: string): TransientError =>
  new TransientError('NO_OUTCOME', `the call of ${step} answered nothing; accepted: ${accepted}`);
