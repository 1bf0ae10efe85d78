/**
 * Choreography: services that react to each other's events, with no process that knows the whole. What a handler publishes
 * names the business action that it belongs to and the message that caused it, and every message that was handled leaves a
 * trace in the same commit. The only symptom of a choreography that is stuck is that its end does not come: `traces` finds
 * what has none.
 *
 * A crash leaves the handler's work, its messages and its trace, or none of them.
 */
import { ATTRIBUTE } from '../attributes.ts';
import type { InboxContext, InboxHandler } from '../dedup/inbox-run.ts';
import { hashOf } from '../hash.ts';
import type { Message, OutgoingMessage } from '../message.ts';
import { callable, checkOptions, oneOf, port, required } from '../options.ts';
import { ack } from '../outcome.ts';
import { dedupIdOf } from '../publish/identity.ts';
import { byteLength, LIMITS } from '../message.ts';
import { SAGA_ATTRIBUTE } from './attributes.ts';
import type { TraceEnd, TraceStore } from './saga-traces.ts';
import type { StepRecord, StepRecords } from './step-records.ts';

export type CorrelatedOptions<Tx> = Readonly<{
  /** Where it is recorded which action a message is of. */
  traces: TraceStore<Tx>;
  /** For `step`: where it is recorded what this service has done of an action. Without it `step` is refused. */
  records?: StepRecords<Tx>;
}>;

/** A service's own part of an action, so that an event which compensates it may overtake the event that asks for it. */
export type Part = Readonly<{
  /** `new`: nothing is recorded. `cancelled`: it was compensated before it came, and must have no effect. */
  state: 'new' | 'done' | 'cancelled' | 'undone';
  /** Once the work is done. */
  done(): void;
  /** In place of undoing what was never done: a tombstone. */
  cancelled(): void;
  /** Once the work is undone. */
  undone(): void;
}>;

export type Correlation = Readonly<{
  /** The input's, or its `dedupId` where it is the first message of its action. */
  id: string;
  /** Reads in the transaction, so before its first write. `name` is this service's own, for example `reserve`. */
  step(name: string): Promise<Part>;
  /** Marks the end of the action, in this commit. */
  end(how: TraceEnd): void;
}>;

export type CorrelatedHandler<Tx> = (
  message: Message,
  context: InboxContext<Tx> & Readonly<{ correlation: Correlation }>,
) => ReturnType<InboxHandler<Tx>>;

/**
 * Makes a handler for `inbox`. Throws ConfigError `INVALID_OPTION`; `step` rejects with it where there are no `records`.
 *
 * Cost beside the inbox's: a write, and a read and a write more for the first message of an action and for its end.
 *
 * @example
 * const stock = correlated({ traces: firestoreTraces(firestore), records: firestoreStepRecords(firestore) })(async (message, context) => {
 *   const reserve = await context.correlation.step('reserve');
 *   if (reserve.state !== 'new') return ack();
 *   context.transaction.set(firestore.doc(`stock/${message.id}`), { reserved: true });
 *   reserve.done();
 *   return ack('handled', [outgoing('stock-reserved', { data: message.data })]);
 * });
 * const handler = compose(inbox(firestoreInbox(firestore), { publisher })(stock), [deadLetters]);
 * receive(pubsub.subscription('stock-sub'), handler, { consumer: 'stock' });
 */
export function correlated<Tx>(
  options: CorrelatedOptions<Tx>,
): (handler: CorrelatedHandler<Tx>) => InboxHandler<Tx> {
  checkOptions<CorrelatedOptions<Tx>>(options, {
    traces: required(
      port(['isKnownIn', 'writeIn'], 'a store of traces, for example firestoreTraces(firestore)'),
    ),
    records: port(['readIn', 'writeIn'], 'step records, for example firestoreStepRecords(firestore)'),
  });
  const { traces, records } = options;

  const handle =
    (handler: CorrelatedHandler<Tx>): InboxHandler<Tx> =>
    async (message, context) => {
      const { transaction, consumer } = context;
      const dedupId = dedupIdOf(message, context);
      const id = message.attributes[SAGA_ATTRIBUTE.correlationId] ?? fitting(dedupId);
      const cause = message.attributes[SAGA_ATTRIBUTE.causationId];
      const isFirst = cause === undefined && !(await traces.isKnownIn(transaction, id));
      let end: TraceEnd | undefined;

      const step = async (name: string): Promise<Part> => {
        const own = required(port(['readIn', 'writeIn'], 'step records'));
        own('records', records);
        const ref = { consumer, saga: 'choreography', id, step: name };
        const found = await records?.readIn(transaction, ref);
        const mark = (state: StepRecord['state']) => (): void =>
          records?.writeIn(transaction, { ref, state, reply: '' });
        return {
          state: stateOf(found),
          done: mark('done'),
          cancelled: mark('cancelled'),
          undone: mark('undone'),
        };
      };
      const correlation: Correlation = {
        id,
        step,
        end(how) {
          oneOf('completed', 'compensated')('how', how);
          end = how;
        },
      };
      const outcome = await handler(message, { ...context, correlation });
      if (outcome.kind !== 'ack') return outcome;

      const { publish = [], reason } = outcome;
      if (isFirst) traces.beginIn(transaction, id);
      if (end !== undefined) traces.endIn(transaction, id, end);
      traces.writeIn(transaction, {
        correlationId: id,
        consumer,
        dedupId,
        ...(cause !== undefined && { causationId: cause }),
        outcome: reason,
        sent: publish.map(({ topic }) => topic),
        atMs: 'commit',
      });
      return ack(
        reason,
        publish.map((outgoing) => named(outgoing, id, fitting(dedupId))),
      );
    };
  return (handler) => {
    callable('handler', handler);
    return handle(handler);
  };
}

function stateOf(record: StepRecord | undefined): Part['state'] {
  if (record === undefined) return 'new';
  return record.state === 'cancelled' || record.state === 'undone' ? record.state : 'done';
}

/** What the handler has written itself stays. */
const named = (outgoing: OutgoingMessage, id: string, cause: string): OutgoingMessage => ({
  ...outgoing,
  attributes: {
    [SAGA_ATTRIBUTE.correlationId]: id,
    [SAGA_ATTRIBUTE.causationId]: cause,
    ...outgoing.attributes,
  },
});

/** As an attribute's value: an identity that is made of a long source and a message ID may be longer. */
const fitting = (text: string): string =>
  byteLength(text) <= LIMITS.attributeValueBytes ? text : hashOf(ATTRIBUTE.dedupId, text);
