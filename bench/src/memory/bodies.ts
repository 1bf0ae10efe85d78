/** What is sent: pushes with `bytes` of data, and tasks whose messages wait in the payload store. */
import type { Firestore } from '@google-cloud/firestore';
import { ack, compose, type Context, silent, systemClock } from 'pubsub-guarantees';
import { delay } from 'pubsub-guarantees/delay';
import { firestorePayloads } from 'pubsub-guarantees/payload/firestore';

const clock = systemClock();
/** Text, which Firestore and gRPC do not make smaller, and neither does anything on the way. */
const dataOf = (bytes: number): Buffer => Buffer.alloc(bytes, 'large message ');

export function pushOf(id: string, bytes: number): Buffer {
  const message = {
    messageId: `m${id}`,
    data: dataOf(bytes).toString('base64'),
    attributes: { origin: id },
    publishTime: new Date().toISOString(),
  };
  return Buffer.from(
    JSON.stringify({ message, subscription: 'projects/demo-project/subscriptions/incoming-sub' }),
  );
}

/** The body of a task that is due, made as the function makes it; its payload is stored. */
export async function largeTask(store: Firestore, id: string, bytes: number): Promise<Buffer> {
  let body: Uint8Array = Buffer.alloc(0);
  const queue = {
    overheadBytes: 0,
    create: async (task: Readonly<{ body: Uint8Array }>) => {
      ({ body } = task);
      return 'created' as const;
    },
  };
  const payloads = firestorePayloads(store, { collection: 'pubsub-guarantees-payload', clock });
  const stage = compose(
    async () => ack(),
    [delay(queue, { clock, topic: 'projects/demo-project/topics/out', payloads })],
  );
  const context = { consumer: 'delay', source: 'in', log: silent } as unknown as Context;
  const publishTime = new Date(clock.now() - 5_000);
  const message = { id: `t${id}`, data: dataOf(bytes), attributes: { delay: '5', origin: id }, publishTime };
  await stage(message, context);
  return Buffer.from(body);
}
