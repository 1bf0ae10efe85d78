/** The form in which a message goes to a dead-letter topic: https://cloud.google.com/pubsub/docs/handling-failures */
import type { Entry } from './backlog.ts';
import { idOf, projectOf } from './names.ts';
import type { PubsubMessage } from './wire.ts';

const SOURCE = 'CloudPubSubDeadLetterSource';

/** The message with what names its origin. Limits are not applied again: a dead letter must always fit. */
export function deadLetter(
  { message, countedFailures, publishTimeMs }: Entry,
  subscription: string,
): PubsubMessage {
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
