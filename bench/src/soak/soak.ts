/**
 * Whether the embedded Pub/Sub server keeps anything of what is done: resident memory after 20,000 messages that were
 * published, delivered and acknowledged, and after 200,000.
 */
import { type Message, PubSub } from '@google-cloud/pubsub';
import { startEmbedded } from '../servers/start.ts';

const STEP = 20_000;
const TOTAL = 200_000;
const BYTES = 512;
/** Published at once, and awaited: a steady flow, so that what is resident is not the size of a backlog. */
const FLIGHT = 1_000;
/** What must have arrived within this time of being published, or the run ends with an error. */
const FLIGHT_LIMIT_MS = 30_000;

export async function soak(print: (line: string) => void): Promise<object> {
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  const servers = await startEmbedded();
  const client = new PubSub({ projectId: 'bench', apiEndpoint: servers.pubsub, emulatorMode: true });
  try {
    const idleMb = await servers.residentMb();
    const [topic] = await client.createTopic('soak');
    const [subscription] = await topic.createSubscription('soak');
    let received = 0;
    let arrived: () => void = () => {};
    subscription.on('message', (message: Message) => {
      message.ack();
      received += 1;
      if (received % FLIGHT === 0) arrived();
    });
    const residentMb: (number | undefined)[] = [];
    const data = Buffer.alloc(BYTES, 'x');
    for (let done = FLIGHT; done <= TOTAL; done += FLIGHT) {
      const all = new Promise<void>((resolve) => {
        arrived = resolve;
      });
      await Promise.all(Array.from({ length: FLIGHT }, () => topic.publishMessage({ data })));
      await limited(all, () => `${received} of ${done} messages`);
      if (done % STEP > 0) continue;
      residentMb.push(await servers.residentMb());
      print(`${String(done).padStart(7)} messages: ${residentMb.at(-1)} MB resident`);
    }
    await subscription.close();
    const [first = Number.NaN, last = Number.NaN] = [residentMb[0], residentMb.at(-1)];
    const ratio = Number((last / first).toFixed(3));
    print(`ratio ${ratio} (the limit is 1.5)`);
    return { idleMb, at20000Mb: first, at200000Mb: last, received, ratio };
  } finally {
    await client.close();
    await servers.close();
  }
}

async function limited(all: Promise<void>, soFar: () => string): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`after ${FLIGHT_LIMIT_MS / 1_000} s: ${soFar()}`)),
      FLIGHT_LIMIT_MS,
    );
  });
  try {
    await Promise.race([all, late]);
  } finally {
    clearTimeout(timer);
  }
}
