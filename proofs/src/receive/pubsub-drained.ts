/**
 * A process that pulls until it is told to end: one handler at a time, which takes a moment and reports to its parent
 * when it begins and ends. Started by pubsub-process.test.ts; it ends with its parent.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { PubSub } from '@google-cloud/pubsub';
import { ack } from '../../../shared/src/outcome.ts';
import { receive } from '../../../shared/src/receive/pubsub.ts';

const [address = '', name = '', milliseconds = '', isOwn = ''] = process.argv.slice(2);

process.once('disconnect', () => process.exit(1));
if (isOwn === 'own listener') process.once('SIGTERM', () => setTimeout(() => process.exit(7), 1_000));

const client = new PubSub({ apiEndpoint: address, projectId: 'test-project' });
receive(
  client.subscription(name),
  async ({ data }) => {
    process.send?.(`begin ${data.toString()}`);
    await pause(Number(milliseconds));
    process.send?.(`end ${data.toString()}`);
    return ack();
  },
  { consumer: 'c', concurrency: 1 },
);
