/**
 * A participant: exactly one effect a step, whatever is repeated, overtaken or withdrawn. A handler of the inbox: what the
 * step writes, its record and its reply are one commit, so a crash leaves all of them or nothing.
 */
import type { InboxContext, InboxHandler } from '../dedup/inbox-run.ts';
import { ATTRIBUTE } from '../attributes.ts';
import { PermanentError, refused as wrong, refusedAs, TransientError } from '../errors.ts';
import type { Context } from '../handler.ts';
import type { Message } from '../message.ts';
import { callable, checkOptions, isObject, listOf, port, required, text } from '../options.ts';
import { ack, type Outcome, retry } from '../outcome.ts';
import { checkCode, type Command, parseCommand } from './attributes.ts';
import { NAME } from './definition.ts';
import { jsonOf, jsonText, valueOf } from './json.ts';
import { replyMessage } from './messages.ts';
import { fullIn, ownTopic } from './own-topics.ts';
import { observe } from './report.ts';
import type { StepRecord, StepRecords, StepRef } from './step-records.ts';
import { type Answer, judge } from './step-rules.ts';

/** Which step of which saga this is. */
export type SagaStep = Readonly<{
  saga: string;
  id: string;
  step: string;
  /** `<saga>/<sagaId>/<step>`: the same for each attempt, for services that are idempotent by key. */
  key: string;
  attempt: number;
}>;

export type Done = Readonly<{ kind: 'done'; reply: string }>;
export type Refused = Readonly<{ kind: 'refused'; code: string }>;
export type Undone = Readonly<{ kind: 'undone'; reply: string }>;

/**
 * The step has its effect. `reply` becomes JSON, and is what `replied` of the saga gets.
 *
 * @example
 * const answer = done({ charge: 'ch-17' });
 */
export const done = (reply?: unknown): Done => ({ kind: 'done', reply: textOf(reply) });

/**
 * The step has no effect, and the handler's writes are dropped. `code` is a word for the saga's history, 1 to 100 bytes.
 * Final for a compensable step or pivot; of an undo or a retriable step it parks the saga, and the step is asked again.
 *
 * @example
 * const answer = refused('LIMIT');
 */
export function refused(code: string): Refused {
  checkCode(code);
  return { kind: 'refused', code };
}

/**
 * The step has no effect any more.
 *
 * @example
 * const answer = undone();
 */
export const undone = (reply?: unknown): Undone => ({ kind: 'undone', reply: textOf(reply) });

const textOf = (reply: unknown): string => (reply === undefined ? '' : jsonOf('the reply', reply));

export type StepContext<Tx> = InboxContext<Tx> & Readonly<{ saga: SagaStep }>;

export type ParticipantStep<Tx> = Readonly<{
  /** Reads and writes through `transaction` alone. A throw is a retry of the delivery, a PermanentError a dead letter. */
  do?(body: unknown, context: StepContext<Tx>): Promise<Done | Refused>;
  /** Absent for a pivot or a retriable step. */
  undo?(body: unknown, context: StepContext<Tx>): Promise<Undone | Refused>;
}>;

export type ParticipantOptions<Tx> = Readonly<{
  /**
   * Topics that it answers to: `projects/…/topics/…`, or an ID where the orchestrator is of the same project. A command that
   * wants its reply elsewhere is a dead letter.
   */
  replyTo: readonly string[];
  /** The project of topics that are given by their IDs alone. Default: that of the store's client, where it was given one. */
  projectId?: string;
  /** By their names in the sagas. */
  steps: Readonly<Record<string, ParticipantStep<Tx>>>;
}>;

/**
 * Throws ConfigError `INVALID_OPTION` for an option that is not valid.
 *
 * Outcomes beside those of the inbox: retry `SAGA_STEP_UNKNOWN` (another deployment may have it); dead letters
 * `INVALID_ATTRIBUTE`, `INVALID_DATA`, `SAGA_REPLY_TOPIC_REFUSED`.
 *
 * Cost of a command beside the inbox's and the handler's own: a read and a write of the record, and a row for the reply.
 *
 * @example
 * const credit = participant<Transaction>(firestoreStepRecords(firestore), {
 *   replyTo: ['saga'],
 *   steps: {
 *     credit: {
 *       async do({ id, reserve }: { id: string; reserve: number }, { transaction }) {
 *         const account = await transaction.get(accounts.doc(id));
 *         if (account.get('free') < reserve) return refused('LIMIT');
 *         transaction.update(account.ref, { free: account.get('free') - reserve });
 *         return done();
 *       },
 *       async undo({ id }: { id: string }, { transaction }) {
 *         transaction.update(accounts.doc(id), { reserved: 0 });
 *         return undone();
 *       },
 *     },
 *   },
 * });
 * const handler = compose(inbox(firestoreInbox(firestore), { publisher })(credit), [deadLetters]);
 * receive(pubsub.subscription('credit-sub'), handler, { consumer: 'credit' });
 */
export function participant<Tx>(records: StepRecords<Tx>, options: ParticipantOptions<Tx>): InboxHandler<Tx> {
  checkRecords(records, ['readIn', 'writeIn', 'buffered']);
  const accepts = checkParticipant(options, ['do', 'undo'], records);

  const run = async (
    received: Received<Tx>,
    what: 'do' | 'undo',
  ): Promise<Readonly<{ answer: Answer; record?: StepRecord }> | undefined> => {
    const { ref, command, body, context } = received;
    const step = options.steps[ref.step]?.[what];
    if (step === undefined) return undefined;
    const own = records.buffered(context.transaction);
    const wanted: (() => void)[] = [];
    const said = await step(body, {
      ...context,
      transaction: own.transaction,
      afterCommit: (call) => void wanted.push(call),
      saga: stepIn(command),
    });
    const { answer, state } = heard(said, what, ref.step);
    // A refusal is committed without what the step wrote, so also without what that was to be followed by.
    if (answer.outcome !== 'refused') {
      own.apply();
      for (const call of wanted) context.afterCommit(call);
    }
    // What must succeed in the end is asked again: its refusal is said, and not remembered.
    const isKept = answer.outcome !== 'refused' || (what === 'do' && command.kind !== 'retriable');
    return { answer, ...(isKept && { record: { ref, state, ...kept(answer) } }) };
  };

  const handle = async (message: Message, received: Received<Tx>): Promise<Outcome> => {
    const { ref, command, context } = received;
    const verdict = judge(ref, command, await records.readIn(context.transaction, ref));
    if (verdict.kind === 'repeat') return otherKind(ref.step);
    const result = verdict.kind === 'run' ? await run(received, verdict.what) : verdict;
    if (result === undefined) return unknownStep(command);
    if (result.record !== undefined) records.writeIn(context.transaction, result.record);
    return answered(message, command, result.answer);
  };

  return async (message, context) => {
    const received = receivedOf<Tx>(message, context, accepts);
    return observeStep(received.command, context, options.steps, () => handle(message, received));
  };
}

/** A span for a command. A step that is not one of ours could have any name. */
export function observeStep(
  { saga, id, step, action }: Command,
  { consumer }: Pick<Context, 'consumer'>,
  steps: Readonly<Record<string, unknown>>,
  work: () => Promise<Outcome>,
): Promise<Outcome> {
  const name = Object.hasOwn(steps, step) ? step : 'unknown';
  return observe(`step ${name} ${action}`, { consumer, saga, id, step }, work);
}

const kept = ({ reply, code }: Answer): Pick<StepRecord, 'reply' | 'code'> => ({
  reply,
  ...(code !== undefined && { code }),
});

type Received<Tx> = Readonly<{
  ref: StepRef;
  command: Command;
  body: unknown;
  context: InboxContext<Tx>;
}>;

const receivedOf = <Tx>(
  message: Message,
  context: InboxContext<Tx>,
  accepts: AcceptedTopics,
): Received<Tx> => ({ ...commandIn(message, context, accepts), context });

/** Throws PermanentError for a message that is no command, and for one that wants its reply elsewhere. */
export function commandIn(
  message: Message,
  { consumer }: Pick<Context, 'consumer'>,
  { topics, project }: AcceptedTopics,
): Readonly<{ ref: StepRef; command: Command; body: unknown }> {
  const asked = parseCommand(message);
  const replyTo = fullIn(asked.replyTo, project);
  if (replyTo === undefined || !topics.includes(replyTo)) {
    const text = `the command wants its reply at ${JSON.stringify(asked.replyTo.slice(0, 100))}`;
    throw new PermanentError('SAGA_REPLY_TOPIC_REFUSED', `${text}; accepted: ${topics.join(', ')}`);
  }
  const command = { ...asked, replyTo };
  const { saga, id, step } = command;
  return { ref: { consumer, saga, id, step }, command, body: valueOf(jsonText(message)) };
}

export const stepIn = ({ saga, id, step, attempt }: Command): SagaStep => ({
  saga,
  id,
  step,
  attempt,
  key: `${saga}/${id}/${step}`,
});

export const answered = (message: Message, command: Command, answer: Answer): Outcome =>
  ack('handled', [replyMessage(command, answer, message.attributes[ATTRIBUTE.dedupId])]);

export const unknownStep = ({ step, action }: Command): Outcome =>
  retry(
    new TransientError(
      'SAGA_STEP_UNKNOWN',
      `this participant has no ${action} of the step ${JSON.stringify(step)}`,
    ),
  );

/** Its record was begun by a participant that calls a service, and only that one can end it. */
const otherKind = (step: string): Outcome =>
  retry(
    new TransientError(
      'SAGA_STEP_UNKNOWN',
      `the step ${JSON.stringify(step)} was started by an outside participant`,
    ),
  );

/** What a step said. A handler in JavaScript that forgets its `return` must not count as done. */
function heard(
  said: unknown,
  what: 'do' | 'undo',
  step: string,
): Readonly<{ answer: Answer; state: StepRecord['state'] }> {
  const { kind, reply = '', code = '' } = (said ?? {}) as Readonly<Partial<Record<string, string>>>;
  if (kind === 'refused') return { answer: { outcome: 'refused', reply: '', code }, state: 'refused' };
  if (kind === 'done' && what === 'do') return { answer: { outcome: 'done', reply }, state: 'done' };
  if (kind === 'undone' && what === 'undo') return { answer: { outcome: 'undone', reply }, state: 'undone' };
  const accepted = what === 'do' ? 'done() or refused(code)' : 'undone() or refused(code)';
  throw new TransientError('NO_OUTCOME', `${what} of ${step} answered nothing; accepted: ${accepted}`);
}

export function checkRecords(records: unknown, methods: readonly string[]): void {
  port(methods, 'step records, for example firestoreStepRecords(firestore)')('records', records);
}

type Options = Readonly<{
  replyTo: readonly string[];
  projectId?: string;
  steps: Readonly<Record<string, unknown>>;
}>;

/** Full names, and the project of commands that name their topic by its ID alone. */
export type AcceptedTopics = Readonly<{ topics: readonly string[]; project: string | undefined }>;

/** Answers with the topics that it answers to. Throws ConfigError. */
export function checkParticipant(
  options: unknown,
  functions: readonly string[],
  records: Pick<StepRecords<never>, 'project'>,
): AcceptedTopics {
  checkOptions<Options>(options, {
    replyTo: required(listOf(text, 'a list of topics')),
    projectId: text,
    steps: required(isObject),
  });
  for (const [name, step] of Object.entries((options as Options).steps)) {
    if (!NAME.test(name)) throw wrong('steps', name, 'names of steps');
    const shape = Object.fromEntries(functions.map((one) => [one, callable]));
    checkOptions<Record<string, unknown>>(step, shape, `steps.${name}`);
    if (functions.every((one) => Reflect.get(step as object, one) === undefined))
      throw refusedAs(`steps.${name}`, 'without a function', functions.join(', '));
  }
  const { replyTo, projectId } = options as Options;
  const own = { projectId, store: records };
  const topics = replyTo.map((topic, index) => ownTopic(`replyTo[${index}]`, topic, own));
  return { topics, project: projectId ?? records.project?.() };
}
