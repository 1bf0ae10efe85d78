/**
 * A process that pulls until it is told to end: one handler at a time, which reports to its parent when it begins and
 * ends, and ends when its parent says so. Started by pubsub-process.test.ts; it ends with its parent.
 */
import { once } from 'node:events';
import { PubSub } from '@google-cloud/pubsub';
import { ack } from '../../../shared/src/outcome.ts';
import { receive } from '../../../shared/src/receive/pubsub.ts';

const [address = '', name = '', isOwn = ''] = process.argv.slice(2);

process.once('disconnect', () => process.exit(1));
if (isOwn === 'own listener') {
  process.once('SIGTERM', () => {
    process.send?.('told');
    process.on('message', (word) => word === 'exit' && process.exit(7));
  });
}

receive(
  new PubSub({ apiEndpoint: address, projectId: 'test-project' }).subscription(name),
  async ({ data }) => {
    process.send?.(`begin ${data.toString()}`);
    await once(process, 'message');
    process.send?.(`end ${data.toString()}`);
    return ack();
  },
  { consumer: 'c', concurrency: 1 },
);
