/* oxlint-disable no-console -- an example shows what it does */
/**
 * Later: two reminders, one in two seconds and one at a given time, through the function and the republisher.
 *
 * The publisher asks by attributes (from another language: `delay` in seconds, or `deliverAt`); the subscriber behind
 * `delay-out` is an ordinary one. Run it beside `npm start`, with the variable that it prints:
 *
 *   PUBSUB_EMULATOR_HOST=… npm exec -- node --conditions=source examples/src/later.ts
 */
import { randomUUID } from 'node:crypto';
import { PubSub } from '@google-cloud/pubsub';
import { ack, type Handler, outgoing } from 'pubsub-guarantees';
import { pubsubPublisher } from 'pubsub-guarantees/publish/pubsub';
import { receive } from 'pubsub-guarantees/receive/pubsub';
import { localProject, localTime } from './local-stack.ts';

const projectId = await localProject('PUBSUB_EMULATOR_HOST');
const pubsub = new PubSub({ projectId });
const run = randomUUID();
const [subscription] = await pubsub.topic('delay-out').createSubscription(`example-later-${run}`);

// The subscriber. Others may use the topic as well: it looks for its own messages. The server says when one came out.
const due = new Map<string, number>();
const finished = Promise.withResolvers<void>();
const remind: Handler = async (message) => {
  const dedupId = message.attributes['dedupId'] ?? '';
  const dueAtMs = due.get(dedupId);
  if (dueAtMs === undefined) return ack();
  console.log(
    `${message.data.toString()}: ${message.publishTime.getTime() >= dueAtMs ? 'not early' : 'EARLY'}`,
  );
  due.delete(dedupId);
  if (due.size === 0) finished.resolve();
  return ack();
};

// The publisher. A delay counts from the server's publish time, so a time noted before the publish is never too late.
const publisher = pubsubPublisher(pubsub);
const nowMs = await localTime();
const at = new Date(nowMs + 3_000);
due.set(`${run}-1`, nowMs + 2_000).set(`${run}-2`, at.getTime());
const receiver = receive(subscription, remind, { consumer: 'example-reminders' });
await publisher.publish(outgoing('delay-in', { data: 'in two seconds', delay: '2s', dedupId: `${run}-1` }));
await publisher.publish(outgoing('delay-in', { data: 'at a time', deliverAt: at, dedupId: `${run}-2` }));

await finished.promise;
await receiver.close();
await publisher.close();
await subscription.delete();
await pubsub.close();
