/**
 * A participant whose answer is a person's. It keeps the question and acknowledges it without an answer; once the person has
 * decided, the question is asked again, under a name of its own, and is answered by what was decided.
 *
 * A crash between the decision and that question loses nothing: the orchestrator asks again a day later. A saga that is
 * cancelled before withdraws the step, and a decision that comes after that has no effect.
 */
import type { Firestore, Transaction } from '@google-cloud/firestore';
import { ack, type OutgoingMessage, type Publisher } from 'pubsub-guarantees';
import type { InboxHandler } from 'pubsub-guarantees/dedup';
import { done, participant, refused } from 'pubsub-guarantees/sagas';
import { firestoreStepRecords } from 'pubsub-guarantees/sagas/firestore';

type Question = Readonly<{ data: string; attributes: Readonly<Record<string, string>> }>;
type Body = Readonly<{ id: string }>;

export type Approvals = Readonly<{
  handler: InboxHandler<Transaction>;
  /** What waits for a person. */
  waiting(): Promise<readonly string[]>;
  /** What a person has decided. The first decision stands. */
  decide(id: string, isApproved: boolean): Promise<void>;
}>;

type ApprovalsOptions = Readonly<{ publisher: Publisher; topic: string; replyTo: string }>;

export function approvals(firestore: Firestore, { publisher, topic, replyTo }: ApprovalsOptions): Approvals {
  const questions = firestore.collection('expense-questions');
  const step = participant(firestoreStepRecords(firestore), {
    replyTo: [replyTo],
    steps: {
      approval: {
        async do({ id }: Body, { transaction }) {
          const { decision } = (await transaction.get(questions.doc(id))).data() ?? {};
          return decision === 'approved' ? done() : refused('NOT_APPROVED');
        },
      },
    },
  });

  return {
    async handler(message, context) {
      const { transaction } = context;
      const { sagaAction, sagaId = '' } = message.attributes;
      const question = questions.doc(sagaId);
      const known = (await transaction.get(question)).data();
      // The participant knows what to say once there is a decision, and what it means to be withdrawn.
      if (sagaAction !== 'do' || known?.['decision'] !== undefined) return step(message, context);
      const { data, attributes } = message;
      if (known === undefined)
        transaction.create(question, { data: data.toString('base64'), attributes } satisfies Question);
      return ack();
    },
    async waiting() {
      const { docs } = await questions.get();
      return docs.filter((document) => document.get('decision') === undefined).map(({ id }) => id);
    },
    async decide(id, isApproved) {
      const { data, attributes } = await firestore.runTransaction(async (transaction) => {
        const question = await transaction.get(questions.doc(id));
        if (!question.exists) throw new Error(`nothing is asked about ${id}`);
        if (question.get('decision') === undefined)
          transaction.update(question.ref, { decision: isApproved ? 'approved' : 'refused' });
        return question.data() as Question;
      });
      // The question itself is done, as its `dedupId` says: this is another message.
      const again: OutgoingMessage = {
        topic,
        data: Buffer.from(data, 'base64'),
        attributes: { ...attributes, dedupId: `${attributes['dedupId']} decided` },
      };
      await publisher.publish(again);
    },
  };
}
