/** The three local servers with what the packaged processes are set to, for tests. The test that starts them closes them. */
import { PubSub } from '@google-cloud/pubsub';
import { cloudTasksClient } from 'pubsub-guarantees/tasks/cloud-tasks';
import { startCloudTasks, startFirestore, startPubsub, systemClock } from 'pubsub-guarantees-emulator';

export type Servers = Readonly<{
  /** For every deployable: each reads its own. */
  env: Readonly<Record<string, string>>;
  /** The data of the first `count` messages on the target topic, sorted. */
  delivered(count: number): Promise<readonly string[]>;
  close(): Promise<void>;
}>;

const PROJECT = 'demo-project';
const LOCATION = `projects/${PROJECT}/locations/us-central1`;
const QUEUE = `${LOCATION}/queues/delay-queue`;

export async function startServers(): Promise<Servers> {
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  const clock = systemClock();
  const pubsub = await startPubsub({ clock });
  const firestore = await startFirestore({ clock });
  const tasks = await startCloudTasks({ clock, appEngine: () => 'http://127.0.0.1:9' });
  const client = new PubSub({ projectId: PROJECT, apiEndpoint: pubsub.address });
  for (const topic of ['incoming', 'outgoing', 'dead-letters']) await client.createTopic(topic);
  const [subscription] = await client.topic('outgoing').createSubscription('outgoing-sub');
  const queues = cloudTasksClient({ projectId: PROJECT, emulatorHost: tasks.address });
  await queues.createQueue({ parent: LOCATION, queue: { name: QUEUE } });
  await queues.close();
  return {
    env: {
      GOOGLE_CLOUD_PROJECT: PROJECT,
      SOURCE_TOPIC: 'incoming',
      TARGET_TOPIC: 'outgoing',
      ALLOWED_TOPICS: 'outgoing',
      DEAD_LETTER_TOPIC: 'dead-letters',
      DELAY_QUEUE: QUEUE,
      REPUBLISHER_SERVICE: 'republisher',
      GAE_ENV: 'standard',
      PUBSUB_EMULATOR_HOST: pubsub.address,
      FIRESTORE_EMULATOR_HOST: firestore.address,
      CLOUD_TASKS_EMULATOR_HOST: tasks.address,
    },
    delivered: (count) =>
      new Promise((resolve) => {
        const found: string[] = [];
        subscription.on('message', (message) => {
          message.ack();
          found.push(message.data.toString());
          if (found.length === count) resolve(found.toSorted());
        });
      }),
    async close() {
      // First: a client whose server has gone looks for it for a long time.
      await subscription.close();
      await client.close();
      await Promise.all([tasks.close(), firestore.close(), pubsub.close()]);
    },
  };
}

/** The body of a push: a message whose ID and data are `id`. */
export function push(id: string, attributes: Readonly<Record<string, string>> = {}): string {
  const data = Buffer.from(id).toString('base64');
  return JSON.stringify({
    message: { messageId: id, data, attributes, publishTime: new Date().toISOString() },
    subscription: `projects/${PROJECT}/subscriptions/incoming-sub`,
  });
}
