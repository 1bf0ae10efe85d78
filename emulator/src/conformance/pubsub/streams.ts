/** Streams as the cases open them. */
import assert from 'node:assert/strict';
import { status } from '@grpc/grpc-js';
import type { Stream } from './calls.ts';
import { until } from './expect.ts';
import type { PubsubWorld } from './world.ts';

export const SUB = 'orders-sub';

export type Request = Parameters<PubsubWorld['stream']>[0];
export const open = (world: PubsubWorld, rest: Request = {}): Stream =>
  world.stream({ subscription: world.subscription(SUB), streamAckDeadlineSeconds: 10, ...rest });

export async function endsWith(stream: Stream, code: keyof typeof status, what: string): Promise<void> {
  let seen: string | undefined;
  void stream.ended.then((ended) => (seen = status[ended] ?? String(ended)));
  await until(() => seen !== undefined, `the end of the stream after ${what}`);
  if (seen !== code) assert.fail(`${what} ends the stream with ${seen}, not ${code}`);
}

/** A stream that has answered, so that what is sent next is a subsequent request. */
export async function opened(world: PubsubWorld, rest: Request = {}): Promise<Stream> {
  await world.create('orders', SUB);
  const stream = open(world, rest);
  await world.publish('orders', 'a');
  await until(() => stream.received().length > 0, 'a first message', 8_000);
  return stream;
}
