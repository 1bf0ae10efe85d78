/**
 * The cheapest call that a server can answer: any status that the server itself gives counts, so that the same probe
 * serves a server that knows the resource and one that does not.
 */
import { connect } from 'node:net';
import { Client, credentials, status } from '@grpc/grpc-js';

export type Probe = Readonly<{ method: string; resource: string }>;

export const PUBSUB: Probe = { method: '/google.pubsub.v1.Publisher/ListTopics', resource: 'projects/p' };
export const FIRESTORE: Probe = {
  method: '/google.firestore.v1.Firestore/BeginTransaction',
  resource: 'projects/p/databases/(default)',
};
export const TASKS: Probe = {
  method: '/google.cloud.tasks.v2.CloudTasks/GetQueue',
  resource: 'projects/p/locations/us-central1/queues/q',
};

export async function answers({ method, resource }: Probe, port: number): Promise<boolean> {
  // A gRPC channel that was refused waits a second before it tries again: it is made once the port accepts.
  if (!(await accepts(port))) return false;
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  const code = await new Promise<number>((resolve) => {
    client.makeUnaryRequest(
      method,
      fieldOne,
      (bytes) => bytes,
      resource,
      { deadline: Date.now() + 2_000 },
      (error) => resolve(error === null ? status.OK : error.code),
    );
  });
  client.close();
  return code !== status.UNAVAILABLE && code !== status.DEADLINE_EXCEEDED;
}

/** All three requests carry the resource's name as their first field (protobuf: tag 1, length, bytes). */
function fieldOne(text: string): Buffer {
  const bytes = Buffer.from(text, 'utf8');
  return Buffer.concat([Buffer.from([0x0a, bytes.length]), bytes]);
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    const answer = (yes: boolean) => (): void => {
      socket.destroy();
      resolve(yes);
    };
    socket.once('connect', answer(true)).once('error', answer(false));
  });
}
