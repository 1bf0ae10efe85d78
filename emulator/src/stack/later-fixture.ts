/** For tests of delayed delivery through the whole toolkit: what goes in and comes out, on a clock that is frozen. */
import assert from 'node:assert/strict';
import type { Toolkit } from './toolkit.ts';

type Sent = Readonly<{ data?: Buffer; attributes?: Record<string, string> }>;
export type Arrived = Readonly<{
  data: Buffer;
  attributes: Readonly<Record<string, string>>;
  /** When it was published where it arrived, milliseconds by the stack's clock. */
  atMs: number;
}>;

type Pulled = Readonly<{
  ackId: string;
  message: { data?: string; attributes?: Record<string, string>; publishTime: string };
}>;

export function laterFixture(stack: () => Toolkit) {
  const post = async <Answer>(path: string, body: object): Promise<Answer> => {
    const url = `${stack().addresses.control}/${path.replace('PROJECT', stack().addresses.project)}`;
    const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
    assert.equal(response.status, 200, await response.clone().text());
    return (await response.json()) as Answer;
  };
  const pulled = async (subscription: string): Promise<readonly Arrived[]> => {
    const base = `v1/projects/PROJECT/subscriptions/${subscription}`;
    const request = { maxMessages: 100, returnImmediately: true };
    const { receivedMessages = [] } = await post<{ receivedMessages?: Pulled[] }>(`${base}:pull`, request);
    if (receivedMessages.length === 0) return [];
    await post(`${base}:acknowledge`, { ackIds: receivedMessages.map(({ ackId }) => ackId) });
    return receivedMessages.map(({ message }) => ({
      data: Buffer.from(message.data ?? '', 'base64'),
      attributes: message.attributes ?? {},
      atMs: Date.parse(message.publishTime),
    }));
  };
  return {
    post,
    /** Publishes, and moves the clock by `thenMs`: when this resolves, the function has answered. */
    publish: async (
      topic: string,
      { data = Buffer.from('x'), attributes = {} }: Sent,
      thenMs = 1_000,
    ): Promise<void> => {
      const message = { data: data.toString('base64'), attributes };
      await post(`v1/projects/PROJECT/topics/${topic}:publish`, { messages: [message] });
      if (thenMs > 0) await stack().clock.advance(thenMs);
    },
    /** What has come out, and is acknowledged thereby. */
    pulled,
    /** Takes all that waits out of the queue. */
    purge: () => post('v2/projects/PROJECT/locations/us-central1/queues/delay-queue:purge', {}),
    held: () =>
      stack().state() as unknown as Readonly<{
        tasks: { pending: number; dispatched: number };
        firestore: { documents: number };
      }>,
  };
}
