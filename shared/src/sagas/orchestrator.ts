/**
 * The orchestrator: starts, replies and ticks in, commands and timers out. A handler of the inbox, so that the instance,
 * the record that the event was handled, and every message that leaves are one commit; a crash leaves all of it or nothing,
 * and a message that comes again changes nothing.
 *
 * Put the delay stage in front of it, outside of the inbox: its timers are messages to its own topic.
 */
import type { InboxContext, InboxHandler } from '../dedup/inbox-run.ts';
import { ATTRIBUTE } from '../attributes.ts';
import { PermanentError, TransientError, refused } from '../errors.ts';
import { identifierHash } from '../hash.ts';
import type { Message, OutgoingMessage } from '../message.ts';
import { checkOptions, listOf, port, required, text } from '../options.ts';
import { ack, type Outcome, retry } from '../outcome.ts';
import { parseForOrchestrator, SWEEP_ARM, type ToOrchestrator } from './attributes.ts';
import { type Decision, decide, type SagaEvent } from './decide.ts';
import type { SagaDefinition } from './definition.ts';
import type { SagaRef } from './instance.ts';
import { jsonText } from './json.ts';
import { commandMessage, tickMessage } from './messages.ts';
import { parseSettle } from './operations.ts';
import { ownTopic } from './own-topics.ts';
import { observe, reportCommitted } from './report.ts';
import type { SagaStore } from './saga-store.ts';

export type OrchestratorOptions = Readonly<{
  /** Its own topic: where replies and ticks come to, and what participants have on their list. */
  topic: string;
  /** The project of a topic that is given by its ID alone. Default: that of the store's client, where it was given one. */
  projectId?: string;
}>;

/**
 * `sagas` has each version that instances may still run under. Throws ConfigError `INVALID_OPTION` for two definitions of
 * one name and version, for one without a step, and for a topic that is an ID where neither `projectId` nor the store says
 * in which project.
 *
 * Outcomes beside those of the inbox: retry `SAGA_VERSION_UNKNOWN` (another deployment has started it; nothing is
 * written); dead letters `INVALID_ATTRIBUTE`, `INVALID_DATA`, `SAGA_ID_CONFLICT` (another start of this ID had other data),
 * `SAGA_UNKNOWN` (a reply to an instance that there is not). What changes nothing is acknowledged as `stale`.
 *
 * Cost of an event beside the inbox's: a read, a write, and a row for each message that leaves.
 *
 * @example
 * const handle = inbox(firestoreInbox(firestore), { publisher })(
 *   orchestrator(firestoreSagas(firestore), [placeOrder], { topic: 'saga' }),
 * );
 * receive(pubsub.subscription('saga-sub'), compose(handle, [deadLetters, retryLater(queue, options), delay(queue, options)]), {
 *   consumer: 'order-sagas',
 * });
 */
export function orchestrator<Tx>(
  store: SagaStore<Tx>,
  sagas: readonly SagaDefinition[],
  options: OrchestratorOptions,
): InboxHandler<Tx> {
  return orchestratorBy(decide, store, sagas, options);
}

/** The same by other rules, for a proof that each of the rules is needed. */
export function orchestratorBy<Tx>(
  rules: typeof decide,
  store: SagaStore<Tx>,
  sagas: readonly SagaDefinition[],
  options: OrchestratorOptions,
): InboxHandler<Tx> {
  port(['readIn', 'writeIn'], 'a store of sagas, for example firestoreSagas(firestore)')('store', store);
  checkOptions<OrchestratorOptions>(options, { topic: required(text), projectId: text });
  // Participants may be of another project, and answer to what the commands name.
  const topic = ownTopic('topic', options.topic, { projectId: options.projectId, store });
  const definitionOf = definitions(sagas);

  const handle = async (
    message: Message,
    context: InboxContext<Tx>,
    to: ToOrchestrator,
  ): Promise<Outcome> => {
    const ref: SagaRef = { consumer: context.consumer, saga: to.saga, id: to.id };
    const event = eventOf(to, ref, message);
    const { instance: found, nowMs } = await store.readIn(context.transaction, ref);
    if (found === undefined && to.action !== 'start') return unknown(to);
    const version = found?.version ?? (to.action === 'start' ? to.version : undefined);
    const definition = definitionOf(to.saga, version);
    if (definition === undefined) return unknownVersion(to.saga, version);

    const decision = rules(definition, found, event, nowMs);
    if (decision.answer === 'conflict') {
      const text = `${to.saga} ${identifierHash(to.id)} was started before, with other data`;
      throw new PermanentError('SAGA_ID_CONFLICT', `${text}; accepted: another sagaId`);
    }
    if (decision.instance === undefined) return ack('stale');
    store.writeIn(context.transaction, decision.instance);
    context.afterCommit(() => reportCommitted(found, decision, context));
    return ack('handled', messagesOf(decision, ref, topic, event.id));
  };

  return async (message, context) => {
    const to = parseForOrchestrator(message);
    const isReply = 'step' in to;
    // A name that is not one of ours could be anything, and spans are found by few names.
    const isKnown = definitionOf(to.saga, undefined) !== undefined;
    const name = `saga ${isKnown ? to.saga : 'unknown'} ${isReply ? 'reply' : to.action}`;
    const seen = { consumer: context.consumer, saga: to.saga, id: to.id };
    return observe(name, { ...seen, ...(isReply && { step: to.step }) }, () => handle(message, context, to));
  };
}

/** Without a version the newest. Throws ConfigError. */
function definitions(
  sagas: readonly SagaDefinition[],
): (saga: string, version: number | undefined) => SagaDefinition | undefined {
  const isDefinition = port([], 'a saga, for example defineSaga(name, options).compensable(…)');
  listOf(isDefinition, 'a list of sagas')('sagas', sagas);
  const byName = new Map<string, Map<number, SagaDefinition>>();
  for (const [index, saga] of sagas.entries()) {
    const { name, version, plan } = saga;
    if (!Array.isArray(plan) || plan.length === 0)
      throw refused(`sagas[${index}]`, saga, 'a saga with at least one step');
    const versions = byName.get(name) ?? new Map<number, SagaDefinition>();
    if (versions.has(version))
      throw refused(`sagas[${index}]`, `${name} ${version}`, 'one definition for each name and version');
    byName.set(name, versions.set(version, saga));
  }
  return (saga, version) => {
    const versions = byName.get(saga);
    return versions?.get(version ?? Math.max(...versions.keys()));
  };
}

function eventOf(to: ToOrchestrator, ref: SagaRef, message: Message): SagaEvent {
  const dedupId = message.attributes[ATTRIBUTE.dedupId];
  const id = dedupId === undefined ? {} : { id: dedupId };
  switch (to.action) {
    case 'start':
      return { ...id, kind: 'start', ref, body: jsonText(message) };
    case 'tick':
      return to.arm === SWEEP_ARM ? { ...id, kind: 'sweep' } : { ...id, kind: 'tick', arm: to.arm };
    case 'cancel':
    case 'retry':
      return { ...id, kind: to.action };
    case 'settle':
      return { ...id, kind: 'settle', ...parseSettle(jsonText(message)) };
    case 'do':
    case 'undo':
    case 'withdraw': {
      const { step, action, outcome, code } = to;
      const reply = { step, action, outcome, reply: jsonText(message) };
      return { ...id, kind: 'reply', ...reply, ...(code !== undefined && { code }) };
    }
  }
}

/** A timer, or an operator, may be later than the record of the end is kept. A reply cannot be. */
function unknown({ saga, id, action }: ToOrchestrator): Outcome {
  if (action === 'tick' || action === 'cancel' || action === 'retry' || action === 'settle')
    return ack('stale');
  const text = `there is no instance ${identifierHash(id)} of ${saga}`;
  throw new PermanentError('SAGA_UNKNOWN', `${text}; accepted: replies to one that was started`);
}

/** For `retryLater`: about as long as a deployment takes to reach the next process. */
const UNKNOWN_PAUSE = '30s';

function unknownVersion(saga: string, version: number | undefined): Outcome {
  const which = version === undefined ? '' : `version ${version} of `;
  const text = `this process does not know ${which}the saga ${JSON.stringify(saga)}`;
  return retry(new TransientError('SAGA_VERSION_UNKNOWN', text), UNKNOWN_PAUSE);
}

function messagesOf(
  { commands, tick }: Decision,
  ref: SagaRef,
  topic: string,
  cause: string | undefined,
): readonly OutgoingMessage[] {
  const asked = commands.map((command) => commandMessage(ref, command, topic, cause));
  return tick === undefined ? asked : [...asked, tickMessage(ref, tick, topic, cause)];
}
