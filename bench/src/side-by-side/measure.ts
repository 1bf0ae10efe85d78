/**
 * What is measured on one pair of servers, with Google's own clients over sockets.
 */
import { Firestore } from '@google-cloud/firestore';
import { type Message, PubSub } from '@google-cloud/pubsub';
import { median } from '../median.ts';
import type { RunningServers } from '../servers/start.ts';

export type Figures = Readonly<{
  readyMs: number;
  idleMb: number;
  /** From the call of publish until the handler of a streaming subscriber runs, one message at a time. */
  latencyP50Ms: number;
  /** 5,000 messages published, and all received. */
  bulkMs: number;
  /** 20 clients, 20 increments each of one document, in transactions. */
  counterMs: number;
  /** Of 400: with the client's default attempts most increments fail on the official emulator. */
  counted: number;
}>;

const PROJECT = 'bench';
const WARM_UP = 20;
const SINGLE = 60;
const BULK = 5_000;
const [CLIENTS, INCREMENTS] = [20, 20];
/** What is not counted by then is not waited for. */
const COUNTER_LIMIT_MS = 20_000;

export async function measure(servers: RunningServers): Promise<Figures> {
  const idleMb = (await servers.residentMb()) ?? Number.NaN;
  const { latencyP50Ms, bulkMs } = await measurePubsub(servers.pubsub);
  const { counterMs, counted } = await measureCounter(servers.firestorePort);
  return { readyMs: servers.readyMs, idleMb, latencyP50Ms, bulkMs, counterMs, counted };
}

async function measurePubsub(apiEndpoint: string): Promise<Pick<Figures, 'latencyP50Ms' | 'bulkMs'>> {
  const client = new PubSub({ projectId: PROJECT, apiEndpoint, emulatorMode: true });
  const [topic] = await client.createTopic('bench');
  const [subscription] = await topic.createSubscription('bench');
  let arrived: () => void = () => {};
  let left = 0;
  subscription.on('message', (message: Message) => {
    message.ack();
    left -= 1;
    if (left === 0) arrived();
  });
  const round = async (count: number, publish: () => unknown): Promise<number> => {
    const begun = performance.now();
    left = count;
    const done = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    publish();
    await done;
    return performance.now() - begun;
  };
  const single = client.topic('bench', { batching: { maxMilliseconds: 0 } });
  const times: number[] = [];
  for (let index = 0; index < WARM_UP + SINGLE; index++) {
    const time = await round(1, () => single.publishMessage({ data: Buffer.from('x') }));
    if (index >= WARM_UP) times.push(time);
  }
  const bulkMs = await round(BULK, () => {
    for (let index = 0; index < BULK; index++)
      void topic.publishMessage({ data: Buffer.from(`message ${index}`) });
  });
  await subscription.close();
  await client.close();
  return { latencyP50Ms: Number(median(times).toFixed(1)), bulkMs: Math.round(bulkMs) };
}

async function measureCounter(port: number): Promise<Pick<Figures, 'counterMs' | 'counted'>> {
  const clients = Array.from(
    { length: CLIENTS },
    () =>
      new Firestore({
        projectId: PROJECT,
        host: `127.0.0.1:${port}`,
        ssl: false,
        customHeaders: { Authorization: 'Bearer owner' },
      }),
  );
  const begun = performance.now();
  let counted = 0;
  const increment = async (firestore: Firestore): Promise<void> => {
    const counter = firestore.doc('bench/counter');
    for (let index = 0; index < INCREMENTS && performance.now() - begun < COUNTER_LIMIT_MS; index++) {
      await firestore
        .runTransaction(async (transaction) => {
          const found = await transaction.get(counter);
          transaction.set(counter, { value: Number(found.get('value') ?? 0) + 1 });
        })
        .then(
          () => {
            counted += 1;
          },
          // Failed after the client's own attempts: that is what is counted.
          () => undefined,
        );
    }
  };
  await Promise.all(clients.map(increment));
  const counterMs = Math.round(performance.now() - begun);
  await Promise.all(clients.map((firestore) => firestore.terminate()));
  return { counterMs, counted };
}
