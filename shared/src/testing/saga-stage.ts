/**
 * An orchestrator and its participants over one ground, with every message in the test's hands: it delivers, repeats,
 * holds back or loses what it likes. What is never touched waits.
 */
import { randomUUID } from 'node:crypto';
import { compose, type Context, type Handler } from '../handler.ts';
import { inbox } from '../dedup/inbox.ts';
import type { InboxHandler } from '../dedup/inbox-run.ts';
import { codeOf } from '../errors.ts';
import { contextFor } from '../context.ts';
import type { Message, OutgoingMessage } from '../message.ts';
import type { Outcome } from '../outcome.ts';
import type { Publisher } from '../publish/publisher.ts';
import type { SagaDefinition } from '../sagas/definition.ts';
import type { Instance } from '../sagas/instance.ts';
import { orchestrator } from '../sagas/orchestrator.ts';
import { done, participant, type ParticipantStep, refused, undone } from '../sagas/participant.ts';
import { sagas } from '../sagas/sagas.ts';
import { sweepSagas } from '../sagas/sweep.ts';
import type { Ground } from './saga-ground.ts';

/** A message on its way. */
export type Posted = OutgoingMessage;

const TOPIC = 'saga';

/** Each stage has instances of its own, unless it is given the consumer of another one. */
export function stage<Tx>(
  ground: Ground<Tx>,
  definitions: readonly SagaDefinition[],
  ownConsumer = `order-sagas-${randomUUID()}`,
) {
  const { clock } = ground;
  const posted: Posted[] = [];
  const delivered: Posted[] = [];
  const refusing = new Set<string>();
  const publisher: Publisher = {
    async publish(message) {
      posted.push(message);
      return String(posted.length);
    },
  };
  const context = (consumer: string): Context => contextFor(clock, { consumer });
  const inInbox = (handler: InboxHandler<Tx>): Handler =>
    compose(inbox(ground.inbox, { publisher, clock })(handler), []);

  /** Adds one to the step's effect of this instance, and takes it away again. */
  const step = (name: string): ParticipantStep<Tx> => {
    const add = async (transaction: Tx, id: string, amount: number): Promise<void> => {
      const effect = `effect/${name}/${id}`;
      ground.set(transaction, effect, (await ground.get(transaction, effect)) + amount);
    };
    return {
      async do(_body, { transaction, saga }) {
        await add(transaction, saga.id, 1);
        return refusing.has(name) ? refused('NO') : done({ by: name, attempt: saga.attempt });
      },
      async undo(_body, { transaction, saga }) {
        await add(transaction, saga.id, -1);
        return refusing.has(`undo ${name}`) ? refused('NO') : undone();
      },
    };
  };
  const stepNames = definitions.flatMap(({ plan }) => plan.map(({ name }) => name));
  const handlers = new Map<string, Handler>([
    [TOPIC, inInbox(orchestrator(ground.store, definitions, { topic: TOPIC }))],
    ...stepNames.map((name): [string, Handler] => [
      name,
      inInbox(participant(ground.records, { replyTo: [TOPIC], steps: { [name]: step(name) } })),
    ]),
  ]);
  const topicOf = ({ topic }: Posted): string => topic.split('/').at(-1) ?? '';
  const consumerOf = (topic: string): string => (topic === TOPIC ? ownConsumer : topic);

  let ids = 0;
  const receivedOf = ({ data, attributes }: Posted): Message => {
    const { deliverAt: _applied, ...rest } = attributes;
    ids += 1;
    return {
      id: String(ids),
      data: Buffer.from(data),
      attributes: rest,
      publishTime: new Date(ground.now()),
    };
  };
  const handle = (message: Posted): Promise<Outcome> => {
    const topic = topicOf(message);
    const handler = handlers.get(topic);
    if (handler === undefined) throw new Error(`nothing receives from ${topic}`);
    delivered.push(message);
    return handler(receivedOf(message), context(consumerOf(topic)));
  };
  const deliver = async (message: Posted): Promise<string> => {
    const at = posted.indexOf(message);
    if (at >= 0) posted.splice(at, 1);
    return reasonOf(await ground.until(handle(message)));
  };
  const isTick = ({ attributes }: Posted): boolean => attributes['sagaAction'] === 'tick';

  /** The message as it is called in tests: `do credit #1`, `credit done`, `tick 2`, `start`. */
  const nameOf = ({ attributes }: Posted): string => {
    const { sagaAction = '', sagaStep, sagaOutcome, sagaAttempt, sagaArm } = attributes;
    if (sagaOutcome !== undefined) return `${sagaStep} ${sagaOutcome}`;
    if (sagaStep !== undefined) return `${sagaAction} ${sagaStep} #${sagaAttempt}`;
    return sagaArm === undefined ? sagaAction : `${sagaAction} ${sagaArm}`;
  };

  const self = {
    ground,
    consumer: ownConsumer,
    handlers,
    refusing,
    posted,
    publisher,
    nameOf,
    inInbox,
    context,
    topicOf,
    start: (definition: SagaDefinition & { start: Function }, id: string): void => {
      posted.push(definition.start(id, { id }, { topic: TOPIC }) as Posted);
    },
    /** What waits, without ticks. */
    waiting: (): readonly string[] => posted.filter((message) => !isTick(message)).map(nameOf),
    /** What was ever delivered. */
    delivered: (): readonly string[] => delivered.map(nameOf),
    find(name: string): Posted {
      const found = posted.find((message) => nameOf(message) === name);
      if (found === undefined) throw new Error(`${name} does not wait; ${posted.map(nameOf).join(', ')} do`);
      return found;
    },
    deliver: (name: string): Promise<string> => deliver(self.find(name)),
    /** Again, or under another identity. */
    copy: (message: Posted, attributes: Record<string, string> = {}): Promise<string> =>
      deliver({ ...message, attributes: { ...message.attributes, ...attributes } }),
    /** Several at once. */
    race: async (...names: readonly string[]): Promise<readonly string[]> => {
      const messages = names.map((name) => self.find(name));
      for (const message of messages) posted.splice(posted.indexOf(message), 1);
      return (await ground.until(Promise.all(messages.map(handle)))).map(reasonOf);
    },
    lose(name: string): Posted {
      const [lost] = posted.splice(posted.indexOf(self.find(name)), 1);
      return lost as Posted;
    },
    /** Delivers what waits, ticks aside, until nothing does. */
    async flow(): Promise<void> {
      for (let next = self.waiting()[0]; next !== undefined; next = self.waiting()[0])
        await self.deliver(next);
    },
    /** The latest tick, at its time. Earlier ones are lost. */
    async tick(): Promise<string> {
      const ticks = posted.filter(isTick);
      for (const tick of ticks) posted.splice(posted.indexOf(tick), 1);
      const last = ticks.at(-1);
      if (last === undefined) throw new Error('no timer is set');
      await self.passUntil(last);
      return deliver(last);
    },
    async passUntil({ attributes }: Posted): Promise<void> {
      const atMs = Date.parse(attributes['deliverAt'] ?? '');
      if (atMs > ground.now()) await ground.pass(atMs - ground.now());
    },
    /** Ticks until one sends something. */
    async tickUntilSent(): Promise<void> {
      const limit = 40;
      for (let round = 0; round < limit; round += 1) {
        await self.tick();
        if (self.waiting().length > 0) return;
      }
      throw new Error('no tick sent anything');
    },
    async instance(saga: string, id: string): Promise<Instance> {
      const { instance } = await ground.until(ground.store.read({ consumer: ownConsumer, saga, id }));
      if (instance === undefined) throw new Error(`there is no ${saga} ${id}`);
      return instance;
    },
    effect: (name: string, id: string): Promise<number> => ground.read(`effect/${name}/${id}`),
    async sweep() {
      const sweep = sweepSagas(ground.store, publisher, { topic: TOPIC, clock });
      const first = await ground.until(sweep(context(ownConsumer)));
      // An adapter learns the server's time from its first look, and a test has moved that.
      return first.due > 0 ? first : ground.until(sweep(context(ownConsumer)));
    },
    sagas: sagas(ground.store, {
      consumer: ownConsumer,
      topic: TOPIC,
      publisher,
      clock,
      answerTimeout: '5s',
    }),
  };
  return self;
}

const reasonOf = (outcome: Outcome): string =>
  outcome.kind === 'ack' ? outcome.reason : `${outcome.kind} ${codeOf(outcome.error)}`;
