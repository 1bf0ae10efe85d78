/**
 * Messages whose attempts are used up, and the form in which they go to a dead-letter topic:
 * https://cloud.google.com/pubsub/docs/handling-failures
 */
import type { Entry } from './backlog.ts';
import { idOf, projectOf } from './names.ts';
import type { PubsubMessage, Subscription } from './wire.ts';

const SOURCE = 'CloudPubSubDeadLetterSource';

/** Publishes a message to the dead-letter topic; false when that topic does not exist, or it is a second copy. */
export function toDeadLetters(
  config: () => Subscription,
  topics: Readonly<{ has(name: string): boolean }>,
  publish: (topic: string, messages: readonly PubsubMessage[]) => Readonly<{ deliver(): void }>,
  log: (line: string) => void,
): (entry: Entry) => boolean {
  return (entry) => {
    if (entry.isCopy) return false;
    const { name, deadLetterPolicy } = config();
    const target = deadLetterPolicy?.deadLetterTopic ?? '';
    if (!topics.has(target)) {
      log(`dead-letter topic ${target} does not exist: ${name} keeps the message`);
      return false;
    }
    publish(target, [deadLetter(entry, name)]).deliver();
    return true;
  };
}

/** The message with what names its origin. Limits are not applied again: a dead letter must always fit. */
function deadLetter({ message, countedFailures, publishTimeMs }: Entry, subscription: string): PubsubMessage {
  return {
    ...message,
    attributes: {
      ...message.attributes,
      [`${SOURCE}DeliveryCount`]: String(countedFailures),
      [`${SOURCE}Subscription`]: idOf(subscription),
      [`${SOURCE}SubscriptionProject`]: projectOf(subscription),
      // The service writes the offset out here: 2022-08-12T15:56:29.732+00:00.
      [`${SOURCE}TopicPublishTime`]: new Date(publishTimeMs).toISOString().replace('Z', '+00:00'),
    },
  };
}
