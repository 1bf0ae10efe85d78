/**
 * Plays one program of sagas on virtual time, and says what went wrong. Two processes, each with the orchestrator and all
 * participants, work over one store; the second one knows version 1 alone. Requests fail, messages come late, twice, in
 * any order or never, and processes pause or die at any await. After a while nothing fails any more, and then everything
 * must come to an end.
 */
import { sleep } from '../../../shared/src/clock.ts';
import { documentInbox } from '../../../shared/src/dedup/document-inbox.ts';
import { inbox } from '../../../shared/src/dedup/inbox.ts';
import { memoryInboxDocuments, type MemoryTransaction } from '../../../shared/src/dedup/inbox-memory.ts';
import type { InboxHandler } from '../../../shared/src/dedup/inbox-run.ts';
import { codeOf, storeUnavailable, textOf } from '../../../shared/src/errors.ts';
import { contextFor } from '../../../shared/src/context.ts';
import { compose, type Handler } from '../../../shared/src/handler.ts';
import { silent } from '../../../shared/src/log.ts';
import type { Message, OutgoingMessage } from '../../../shared/src/message.ts';
import { type Outcome, retry } from '../../../shared/src/outcome.ts';
import { relay } from '../../../shared/src/outbox/relay.ts';
import type { Publisher } from '../../../shared/src/publish/publisher.ts';
import { publishing } from '../../../shared/src/publish/publishing.ts';
import { decide } from '../../../shared/src/sagas/decide.ts';
import type { SagaDefinition } from '../../../shared/src/sagas/definition.ts';
import { isEnded } from '../../../shared/src/sagas/instance.ts';
import { memorySagas, memoryStepRecords } from '../../../shared/src/sagas/memory.ts';
import { operatorMessage, startMessage } from '../../../shared/src/sagas/messages.ts';
import { orchestratorBy } from '../../../shared/src/sagas/orchestrator.ts';
import { outsideParticipant } from '../../../shared/src/sagas/outside-participant.ts';
import { participant } from '../../../shared/src/sagas/participant.ts';
import type { SagaStore } from '../../../shared/src/sagas/saga-store.ts';
import type { StepRecords } from '../../../shared/src/sagas/step-records.ts';
import { sweepSagas } from '../../../shared/src/sagas/sweep.ts';
import { virtualClock } from '../../../shared/src/testing/index.ts';
import { INBOX_REQUESTS, inboxDocumentsOf } from '../dedup/inbox-process.ts';
import { supervise } from '../engine/supervisor.ts';
import { inTurn, type NetworkFault, send } from '../engine/faults.ts';
import { type Named, placesOf, plannedDeaths } from '../engine/places.ts';
import { startProcess } from '../engine/process.ts';
import { through } from '../engine/through.ts';
import { atService, inStore, newEffects } from './participants.ts';
import { behaviourOf, definitionOf, type Fate, type SagaSchedule } from './program.ts';
import { type Violation, violationsOf } from './promises.ts';
import { watchedStore } from './watched-store.ts';

/** What a mutant changes. */
export type Way = Readonly<{
  rules?: (rules: typeof decide) => typeof decide;
  store?: (store: SagaStore<MemoryTransaction>) => SagaStore<MemoryTransaction>;
  records?: (records: StepRecords<MemoryTransaction>) => StepRecords<MemoryTransaction>;
  /** Of each message that is published; undefined: it is lost. */
  posted?: (message: OutgoingMessage) => OutgoingMessage | undefined;
  /** Of the orchestrator, inside of the inbox. */
  handler?: (
    handler: InboxHandler<MemoryTransaction>,
    publisher: Publisher,
  ) => InboxHandler<MemoryTransaction>;
  /** Which versions the second process knows, and which definition it takes for version 2. */
  secondKnows?: (one: SagaDefinition, two: SagaDefinition) => readonly SagaDefinition[];
  answers?: (outcome: Outcome) => Outcome;
  /** Ticks are lost as with a sweep, and none comes. */
  hasNoSweep?: true;
  /** The record of a step that is done is lost. */
  forgets?: true;
}>;

const REQUESTS = [...INBOX_REQUESTS, 'publish', 'record', 'service'] as const;

type Request = (typeof REQUESTS)[number];
export type Site = Named<Request>;
export const deathSites: readonly Site[] = placesOf(REQUESTS);

const CONSUMER = 'order-sagas';
const TOPIC = 'saga';
const WORKERS = 2;
const ACK_DEADLINE_MS = 60_000;
const BACK_OFF_MS = 10_000;
const TIMEOUT_MS = 5_000;
const FAULTS_END_MS = 600_000;
const MINUTE_MS = 60_000;
/** Without a fault, after the last one: waits double up to ten minutes, and one step comes after the other. */
const END_MS = 8 * 60 * MINUTE_MS;
/** In which nothing may change any more. */
const QUIET_MS = 10 * MINUTE_MS;
/** After the last fault: none is needed more often. */
const ATTEMPTS = 60;

export async function playSagas(
  schedule: SagaSchedule,
  died: (site: Site) => void,
  way: Way = {},
): Promise<readonly Violation[]> {
  const { faults, fates, deaths, pauses, sagas, isSwept } = schedule;
  const clock = virtualClock();
  const hasFaults = (): boolean => clock.monotonic() < FAULTS_END_MS;
  const nextFault = inTurn(faults);
  const nextFate = inTurn(fates);
  const fault = (): NetworkFault | undefined => (hasFaults() ? nextFault() : undefined);
  const broken: Violation[] = [];
  const effects = newEffects();
  const definitions = [definitionOf(schedule, 1), definitionOf(schedule, 2)] as const;

  const network = <Value>(_request: string, apply: () => Promise<Value>): Promise<Value> =>
    send(clock, fault(), apply, storeUnavailable);
  const memory = memoryInboxDocuments({ clock, network, shards: 1 });
  const instances = memorySagas(memory, { clock });
  const stepRecords = memoryStepRecords(memory);
  const watched = watchedStore(instances, broken);

  /** Deliveries that are in flight, for the end to wait for. */
  let inFlight = 0;
  const post = (message: OutgoingMessage): void => {
    const kept = way.posted === undefined ? message : way.posted(message);
    const fate = nextFate() as Fate;
    const isTick = message.attributes['sagaAction'] === 'tick';
    const isDead = fate.isDead && hasFaults() && (!isTick || isSwept);
    if (kept === undefined || isDead) return;
    const dueMs = Date.parse(kept.attributes['deliverAt'] ?? '') - clock.now() || 0;
    arrive(kept, Math.max(dueMs, 0) + fate.delayMs);
    if (fate.copyMs !== undefined) arrive(kept, Math.max(dueMs, 0) + fate.copyMs);
  };
  const arrive = (message: OutgoingMessage, afterMs: number): void => {
    inFlight += 1;
    clock.after(afterMs, () => void settle(message));
  };
  const bus: Publisher = {
    publish: (message) => send(clock, fault(), async () => (post(message), '1'), storeUnavailable),
  };

  const dying = plannedDeaths(
    deaths.map(({ site, hit }) => ({ place: deathSites[site % deathSites.length] as Site, hit })),
    died,
  );
  const names = [...new Set(definitions.flatMap(({ plan }) => plan.map(({ name }) => name)))];
  const workers = supervise(WORKERS, (slot, replace) => {
    const process = startProcess<Request>(clock, {
      dies: (request, when) => hasFaults() && dying.dies(`${when} ${request}`),
      died: replace,
      lost: (_request, how) => storeUnavailable(how),
    });
    const { call } = process;
    const store = documentInbox<MemoryTransaction>(
      inboxDocumentsOf(process, memory),
      process.clock,
      TIMEOUT_MS,
    );
    const publisher = through(call, bus, { publish: 'publish' });
    const records: StepRecords<MemoryTransaction> = (way.records ?? ((same) => same))({
      ...stepRecords,
      change: (ref, rule) =>
        call('record', () => send(clock, fault(), () => stepRecords.change(ref, rule), storeUnavailable)),
    });
    const inInbox = (handler: InboxHandler<MemoryTransaction>): Handler =>
      compose(inbox(store, { clock: process.clock, publisher })(handler), []);
    const [one, two] = definitions;
    const known = slot === 0 ? definitions : (way.secondKnows?.(one, two) ?? [one]);
    const orchestrator = orchestratorBy<MemoryTransaction>(
      way.rules?.(decide) ?? decide,
      way.store?.(watched) ?? watched,
      known,
      { topic: TOPIC },
    );
    const handlers = new Map<string, Handler>([
      [TOPIC, inInbox(way.handler?.(orchestrator, publisher) ?? orchestrator)],
    ]);
    for (const name of names) {
      const program = behaviourOf(schedule, name === 'begun' ? 's0' : name);
      const isRetriable = one.plan.some((step) => step.name === name && step.kind === 'retriable');
      const isOutside = program.isOutside && name !== 'begun';
      const service = <Value>(request: 'service', apply: () => Promise<Value>): Promise<Value> =>
        call(request, () => send(clock, fault(), apply, storeUnavailable));
      const handler = isOutside
        ? compose(
            outsideParticipant(records, {
              replyTo: [TOPIC],
              steps: { [name]: atService(effects, name, program, isRetriable, service) },
            }),
            [publishing(publisher)],
          )
        : inInbox(
            participant<MemoryTransaction>(records, {
              replyTo: [TOPIC],
              steps: { [name]: inStore(effects, name, program, isRetriable) },
            }),
          );
      handlers.set(name, handler);
    }
    return { clock: process.clock, pause: process.pause, handlers };
  });
  for (const { at, worker, milliseconds } of pauses)
    clock.after(at, () => workers.at(worker).pause(milliseconds));

  let deliveries = 0;
  const settle = async (outgoing: OutgoingMessage): Promise<void> => {
    const topic = outgoing.topic.split('/').at(-1) ?? '';
    const { deliverAt: _applied, ...attributes } = outgoing.attributes;
    const id = String((deliveries += 1));
    const publishTime = new Date(clock.now());
    const message: Message = { id, data: Buffer.from(outgoing.data), attributes, publishTime };
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const worker = workers.at((deliveries += 1));
      const handler = worker.handlers.get(topic);
      if (handler === undefined) break;
      const consumer = topic === TOPIC ? CONSUMER : topic;
      const deadline = clock.monotonic() + ACK_DEADLINE_MS;
      const context = contextFor(worker.clock, { consumer, deadline });
      const noAnswer = sleep(clock, ACK_DEADLINE_MS).then((): Outcome => retry(new Error('no answer')));
      const heard = await Promise.race([handler(message, context), noAnswer]);
      const outcome = topic === TOPIC ? (way.answers?.(heard) ?? heard) : heard;
      if (outcome.kind === 'ack') break;
      if (outcome.kind === 'deadLetter') {
        const text = `${codeOf(outcome.error)} ${textOf(outcome.error)} ${JSON.stringify(attributes)}`;
        broken.push({ invariant: 'no dead letter', text });
        break;
      }
      await sleep(clock, BACK_OFF_MS);
    }
    inFlight -= 1;
  };

  for (const [index, { startMs, copies, cancels, version }] of sagas.entries()) {
    const id = `i${index}`;
    const body = JSON.stringify({ id, seen: [] });
    const start = startMessage(TOPIC, { saga: 'order', id, version, body });
    arrive(start, startMs);
    for (const [copy, afterMs] of copies.entries())
      arrive(
        { ...start, attributes: { ...start.attributes, dedupId: `copy ${id} ${copy}` } },
        startMs + afterMs,
      );
    for (const [call, afterMs] of cancels.entries()) {
      const ref = { consumer: CONSUMER, saga: 'order', id };
      arrive(operatorMessage(ref, 'cancel', '', TOPIC, `call ${id} ${call}`), startMs + afterMs);
    }
  }

  if (way.forgets) forget();
  const perfect: Publisher = { publish: async (message) => (post(message), '1') };
  const { signal } = new AbortController();
  const rows = relay(memory.outbox, perfect, { clock, log: silent });
  const sweep = sweepSagas(instances, perfect, { topic: TOPIC, clock });
  const isOver = (): boolean => {
    const all = instances.instances();
    return all.length === sagas.length && all.every(isEnded) && !hasFaults();
  };
  let overMs = Infinity;
  while (clock.monotonic() < Math.min(END_MS, overMs + QUIET_MS)) {
    await clock.advance(MINUTE_MS);
    // A network that is down for it is down for the next one no longer.
    await clock.until(rows.sweep({ signal }).catch(() => undefined));
    if (isSwept && way.hasNoSweep !== true)
      await clock.until(sweep(contextFor(clock, { consumer: CONSUMER })).catch(() => undefined));
    if (isOver() && overMs === Infinity) overMs = clock.monotonic();
  }

  for (const [index, { version }] of sagas.entries()) {
    const id = `i${index}`;
    const instance = instances.instances().find(({ ref }) => ref.id === id);
    const definition = definitions[version - 1] as SagaDefinition;
    broken.push(...violationsOf({ id, instance, definition, log: effects.log }));
  }
  return broken;

  /** One record for each saga: of a step whose first attempt is known to be done, so that no command of it is on its way. */
  function forget(): void {
    const forgotten = new Set<string>();
    const look = (): void => {
      for (const { ref, plan, steps, state } of instances.instances()) {
        const done = plan.find(
          ({ name, kind }) =>
            kind === 'compensable' && steps[name]?.status === 'done' && steps[name]?.attempt === 1,
        );
        if (state !== 'running' || done === undefined || forgotten.has(ref.id)) continue;
        forgotten.add(ref.id);
        stepRecords.forget({ consumer: done.name, saga: ref.saga, id: ref.id, step: done.name });
      }
      if (hasFaults()) clock.after(200, look);
    };
    look();
  }
}
