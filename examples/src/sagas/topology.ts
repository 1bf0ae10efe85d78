/**
 * The topics and subscriptions of the food order's participants, and the topic of the orchestrator, which is the function `saga` of
 * `npm start`. Everything is created once; what is there stays.
 */
import type { PubSub } from '@google-cloud/pubsub';

export const PARTICIPANTS = ['payments', 'couriers', 'kitchen', 'notices'] as const;
export type ParticipantName = (typeof PARTICIPANTS)[number];

/** The consumer of the function `saga` on the local stack. */
export const ORCHESTRATOR = 'saga';
/** In full, because that is how the function names it in `replyTo`. */
export const sagaTopic = (projectId: string): string => `projects/${projectId}/topics/saga`;
const topicOf = (name: ParticipantName): string => `food-${name}`;
export const subscriptionOf = (name: ParticipantName): string => `food-${name}-sub`;

const ALREADY_EXISTS = 6;

/** A command that is sent before its participant listens waits in the subscription. */
export async function createTopics(pubsub: PubSub): Promise<void> {
  await Promise.all(
    PARTICIPANTS.map(async (name) => {
      const topic = pubsub.topic(topicOf(name));
      await unlessThere(() => topic.create());
      await unlessThere(() => topic.createSubscription(subscriptionOf(name)));
    }),
  );
}

async function unlessThere(create: () => Promise<unknown>): Promise<void> {
  try {
    await create();
  } catch (error) {
    if ((error as Readonly<{ code?: unknown }>).code !== ALREADY_EXISTS) throw error;
  }
}
