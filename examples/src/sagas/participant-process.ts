/**
 * What the participants' processes have in common: clients, the inbox around their steps, dead letters, an end on SIGTERM.
 *
 * A step's writes, its record and its reply are one commit. A process that dies behind it leaves the reply in the outbox,
 * where the sweep of the function `saga` finds it, because both keep their rows under the same prefix.
 */
import { Firestore, type Transaction } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { compose, type Publisher, silent } from 'pubsub-guarantees';
import { deadLettering } from 'pubsub-guarantees/dead-letters';
import { inbox } from 'pubsub-guarantees/dedup';
import { firestoreInbox } from 'pubsub-guarantees/dedup/firestore';
import { pubsubPublisher } from 'pubsub-guarantees/publish/pubsub';
import { receive } from 'pubsub-guarantees/receive/pubsub';
import { participant, type ParticipantStep } from 'pubsub-guarantees/sagas';
import { firestoreStepRecords } from 'pubsub-guarantees/sagas/firestore';
import { type Effects, effectsIn } from './effects.ts';
import { type ParticipantName, sagaTopic, subscriptionOf } from './topology.ts';

export type Steps = Readonly<Record<string, ParticipantStep<Transaction>>>;

export type ServeOptions = Readonly<{
  /** What replies go through, for an experiment with replies that are lost. Default: as they are. */
  replies?(publisher: Publisher): Publisher;
}>;

/** Until SIGTERM. Says `ready` to a process that has started it. */
export async function serve(
  name: ParticipantName,
  steps: (firestore: Firestore, effects: Effects) => Steps,
  { replies = (publisher) => publisher }: ServeOptions = {},
): Promise<void> {
  // Otherwise Google's clients look for a metadata server, and warn that there is none.
  process.env['METADATA_SERVER_DETECTION'] ??= 'none';
  const projectId = process.env['GOOGLE_CLOUD_PROJECT'] ?? 'demo-project';
  const pubsub = new PubSub({ projectId });
  const firestore = new Firestore({ projectId });
  const publisher = pubsubPublisher(pubsub);
  const effects = effectsIn(process.env['FOOD_EFFECTS'], firestore);
  const step = participant(firestoreStepRecords(firestore), {
    replyTo: [sagaTopic(projectId)],
    steps: steps(firestore, effects),
  });
  // Short, so that what a killed process was at work on does not keep you waiting.
  const once = inbox(firestoreInbox(firestore), {
    publisher: replies(publisher),
    lease: '5s',
    projectId,
  });
  const handler = compose(once(step), [deadLettering(publisher, 'dead-letters')]);
  const receiver = receive(pubsub.subscription(subscriptionOf(name)), handler, {
    consumer: name,
    // What fails on purpose here would fill the screen.
    ...(process.env['FOOD_LOG'] === undefined && { log: silent }),
  });
  process.once('SIGTERM', () => {
    void (async () => {
      await receiver.close();
      await publisher.close();
      await pubsub.close();
      await firestore.terminate();
      process.exit();
    })();
  });
  // Without the program that has started it, it ends: nothing would start it again or end it.
  process.once('disconnect', () => process.exit());
  process.send?.('ready');
}
