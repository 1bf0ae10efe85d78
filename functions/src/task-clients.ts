/**
 * The clients of Cloud Tasks that a function needs. Its client does not know an emulator variable, so the address comes
 * from the configuration.
 */
import type { Clock } from 'pubsub-guarantees';
import { severalQueues, type TaskQueue } from 'pubsub-guarantees/tasks';
import type { Emulators } from 'pubsub-guarantees/environment';
import type { DelayConfig } from './delay-config.ts';
import type { WakeConfig } from './wake-config.ts';

export async function taskQueue(delay: DelayConfig, { tasks }: Emulators, clock: Clock): Promise<TaskQueue> {
  const { cloudTasksClient, cloudTasksQueue } = await import('pubsub-guarantees/tasks/cloud-tasks');
  const client = cloudTasksClient({ emulatorHost: tasks });
  const target = 'service' in delay.republisher ? { appEngine: delay.republisher } : delay.republisher;
  // Their clock is that of the delivery, whose deadline they keep to.
  return severalQueues(
    delay.queues.map((queue) => ({ name: queue, queue: cloudTasksQueue(client, { queue, target, clock }) })),
  );
}

export async function wakeQueue(
  { queue, url, serviceAccount }: WakeConfig,
  { tasks }: Emulators,
  clock: Clock,
): Promise<TaskQueue> {
  const { cloudTasksClient, cloudTasksQueue } = await import('pubsub-guarantees/tasks/cloud-tasks');
  const client = cloudTasksClient({ emulatorHost: tasks });
  const target = { url: new URL('/wake', url).href, serviceAccount, audience: url };
  return cloudTasksQueue(client, { queue, target, clock });
}
