/**
 * Numbered messages of many streams into one function of the toolkit, and what comes out of it, counted by message.
 */
import { type Message, PubSub } from '@google-cloud/pubsub';
import { setTimeout as wait } from 'node:timers/promises';

const STREAMS = 50;
/** How often the pace is kept. */
const TICK_MS = 50;

export type Traffic = Readonly<{
  published(): number;
  /** Messages that have come out at least once. */
  delivered(): number;
  /** Copies beyond the first. */
  repeated(): number;
  deadLetters(): number;
  /** Publishes for so long, with at most so many messages that have not come out yet. */
  keepOutstanding(count: number, forMs: number): Promise<void>;
  /** Publishes at this rate for so long, however much has not come out yet. Calls `tick` about each second. */
  keepRate(perSecond: number, forMs: number, tick: (elapsedMs: number) => void): Promise<void>;
  /** Resolves when all that was published has come out or is a dead letter, or after so long; answers whether it has. */
  drained(withinMs: number): Promise<boolean>;
  close(): Promise<void>;
}>;

export function trafficOf(apiEndpoint: string, projectId: string, name: 'fifo' | 'pipeline'): Traffic {
  const client = new PubSub({ projectId, apiEndpoint, emulatorMode: true });
  const topic = client.topic(`${name}-in`);
  const seen = new Set<string>();
  const numbers = new Map<string, number>();
  const run = `${name}-${Date.now()}`;
  let published = 0;
  let repeated = 0;
  let deadLetters = 0;
  const flowControl = { maxMessages: 2_000 };
  const output = client.subscription(`${name}-out-sub`, { flowControl });
  output.on('message', (message: Message) => {
    message.ack();
    const { sequenceKey = '', sequence = '' } = message.attributes;
    if (!sequenceKey.startsWith(run)) return;
    const id = `${sequenceKey} ${sequence}`;
    if (seen.has(id)) repeated += 1;
    seen.add(id);
  });
  const deadLetterSubscription = client.subscription('dead-letters-sub', { flowControl });
  deadLetterSubscription.on('message', (message: Message) => {
    message.ack();
    if (String(message.attributes['sequenceKey']).startsWith(run)) deadLetters += 1;
  });

  const publishNext = async (): Promise<void> => {
    const sequenceKey = `${run}-${published % STREAMS}`;
    published += 1;
    const sequence = (numbers.get(sequenceKey) ?? 0) + 1;
    numbers.set(sequenceKey, sequence);
    await topic.publishMessage({
      data: Buffer.from(`{"number":${sequence}}`),
      attributes: { sequenceKey, sequence: String(sequence), dedupId: `${sequenceKey}/${sequence}` },
    });
  };
  const publishUpTo = (count: number): Promise<unknown> =>
    Promise.all(Array.from({ length: Math.max(0, count) }, publishNext));

  return {
    published: () => published,
    delivered: () => seen.size,
    repeated: () => repeated,
    deadLetters: () => deadLetters,
    async keepOutstanding(count, forMs) {
      for (const end = performance.now() + forMs; performance.now() < end; await wait(TICK_MS / 5)) {
        await publishUpTo(count - (published - seen.size - deadLetters));
      }
    },
    async keepRate(perSecond, forMs, tick) {
      const begun = performance.now();
      const before = published;
      let ticks = 0;
      for (let elapsed = 0; elapsed < forMs; elapsed = performance.now() - begun) {
        await publishUpTo(Math.floor((elapsed / 1_000) * perSecond) - (published - before));
        if (elapsed >= (ticks + 1) * 1_000) {
          ticks = Math.floor(elapsed / 1_000);
          tick(elapsed);
        }
        await wait(TICK_MS);
      }
    },
    async drained(withinMs) {
      for (const end = performance.now() + withinMs; performance.now() < end; await wait(TICK_MS)) {
        if (seen.size + deadLetters >= published) return true;
      }
      return false;
    },
    async close() {
      await Promise.all([output.close(), deadLetterSubscription.close()]);
      await client.close();
    },
  };
}
