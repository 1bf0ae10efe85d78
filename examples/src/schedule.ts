/* oxlint-disable no-console -- an example shows what it does */
/**
 * Schedule: a reminder is moved and another one is called off, each by its business key, before they are delivered.
 *
 * The publisher asks by attributes (from another language: `scheduleKey` with `delay` or `deliverAt`, and `cancel`).
 * Run it beside `npm start`, with the variable that it prints:
 *
 *   PUBSUB_EMULATOR_HOST=… npm exec -- node --conditions=source examples/src/schedule.ts
 */
import { randomUUID } from 'node:crypto';
import { PubSub } from '@google-cloud/pubsub';
import { ack, type Handler, outgoing } from 'pubsub-guarantees';
import { pubsubPublisher } from 'pubsub-guarantees/publish/pubsub';
import { receive } from 'pubsub-guarantees/receive/pubsub';
import { localProject } from './local-stack.ts';

const projectId = await localProject('PUBSUB_EMULATOR_HOST');
const pubsub = new PubSub({ projectId });
const run = randomUUID();
const [subscription] = await pubsub.topic('delay-out').createSubscription(`example-schedule-${run}`);

// The subscriber. Others may use the topic as well: it looks for its own messages.
const arrived: string[] = [];
const finished = Promise.withResolvers<void>();
const remind: Handler = async (message) => {
  if (message.attributes['run'] !== run) return ack();
  arrived.push(message.data.toString());
  if (['dinner at nine', 'the end'].every((text) => arrived.includes(text))) finished.resolve();
  return ack();
};
const receiver = receive(subscription, remind, { consumer: 'example-schedules' });

// The publisher. The later message of a key wins, in whatever order they arrive.
const publisher = pubsubPublisher(pubsub);
const send = (parts: Parameters<typeof outgoing>[1]) =>
  publisher.publish(outgoing('delay-in', { ...parts, attributes: { run } }));
const [dinner, train] = [`dinner/${run}`, `train/${run}`];
await send({ data: 'dinner at eight', scheduleKey: dinner, delay: '6s' });
await send({ data: 'train leaves', scheduleKey: train, delay: '6s' });
await send({ data: 'dinner at nine', scheduleKey: dinner, delay: '7s' });
await send({ scheduleKey: train, cancel: true });
await send({ data: 'the end', delay: '9s' });

await finished.promise;
console.log(`arrived: ${arrived.join(', ')}`);

await receiver.close();
await publisher.close();
await subscription.delete();
await pubsub.close();
