/**
 * Messages scheduled per second by one process: the delay stage over Google's client and Cloud Tasks of the local stack,
 * which is a process of its own, beside bare `createTask` calls of the same client for tasks of the same size. The bare
 * side's names and bodies are made beforehand, so that everything that the stage does counts against it.
 */
import { compose, type Handler, type Message, systemClock } from 'pubsub-guarantees';
import { delay } from 'pubsub-guarantees/delay';
import { cloudTasksClient, cloudTasksQueue } from 'pubsub-guarantees/tasks/cloud-tasks';
import { aContext, freshMessages, inLanes } from '../once-redis/messages.ts';
import { medianPace, type Pace, round, type Side } from '../once-redis/throughput.ts';
import { beside } from './beside.ts';

type Print = (line: string) => void;
type Client = ReturnType<typeof cloudTasksClient>;

const LOCATION = 'projects/bench/locations/us-central1';
const QUEUE = `${LOCATION}/queues/delay-queue`;
const TOPIC = 'projects/bench/topics/out';
const ROUNDS = 7;
const WARM_UP = 3;
/** A round: 2,000 messages of each side, in slices. */
const [SLICES, SLICE] = [10, 200];
const LANES = 64;
/** So far ahead that none is dispatched meanwhile. */
const DELAY_SECONDS = 86_400;

export async function scheduleSpeed(print: Print): Promise<object> {
  const server = await beside<Readonly<{ tasks: string }>>('./serve-tasks.ts');
  const client = cloudTasksClient({ projectId: 'bench', emulatorHost: server.ready.tasks });
  try {
    await client.createQueue({ parent: LOCATION, queue: { name: QUEUE } });
    return await compared(client, print);
  } finally {
    await client.close();
    await server.close();
  }
}

async function compared(client: Client, print: Print): Promise<object> {
  const sides = [throughStage(client), bare(client)];
  const rounds: (readonly Pace[])[] = [];
  for (let number = 1 - WARM_UP; number <= ROUNDS; number += 1) {
    const paces = await round(sides, SLICES, SLICE);
    await client.purgeQueue({ name: QUEUE });
    // The first ones warm up.
    if (number < 1) continue;
    rounds.push(paces);
    print(`round ${number}: ${NAMES.map((name, side) => shown(name, paces[side])).join('; ')}`);
  }
  const [ours, raw] = sides.map((_, side) => medianPace(rounds.flatMap((paces) => paces[side] ?? [])));
  if (ours === undefined || raw === undefined) throw new Error('no round was measured');
  const toBare = Number((ours.perSecond / raw.perSecond).toFixed(3));
  const extraCpuMicros = Number((ours.cpuMicros - raw.cpuMicros).toFixed(1));
  print(`medians of ${ROUNDS} rounds, ${SLICES * SLICE} messages of each, ${LANES} at a time:`);
  for (const [side, pace] of [ours, raw].entries()) print(`  ${shown(NAMES[side] ?? '', pace)}`);
  print(`the stage to bare createTask: ${toBare} (at least 0.8), ${extraCpuMicros} µs CPU more a message`);
  return { ours, bare: raw, extraCpuMicros, ratios: { toBare } };
}

const NAMES = ['the delay stage', 'bare createTask'] as const;

const shown = (name: string, pace: Pace | undefined): string =>
  `${name} ${pace?.perSecond} messages/s, ${pace?.cpuMicros} µs CPU a message`;

const delayedMessages = (count: number): readonly Message[] =>
  freshMessages(count).map((message) => ({ ...message, attributes: { delay: String(DELAY_SECONDS) } }));

const unexpected: Handler = (message) => {
  throw new Error(`message ${message.id} was not delayed`);
};

function throughStage(client: Client): Side {
  const queue = cloudTasksQueue(client, { queue: QUEUE, target: { appEngine: {} } });
  const handler = compose(unexpected, [delay(queue, { clock: systemClock(), topic: TOPIC })]);
  return async (count) => {
    const messages = delayedMessages(count);
    return () =>
      inLanes(messages, LANES, () => async (message) => {
        const outcome = await handler(message, aContext());
        if (outcome.kind !== 'ack') throw new Error(`message ${message.id} ended as ${outcome.kind}`);
      });
  };
}

function bare(client: Client): Side {
  type Request = Parameters<Client['createTask']>[0];
  return async (count) => {
    const requests: Request[] = [];
    // What the stage sends for other messages, recorded.
    const recorder = { createTask: async (request: Request) => void requests.push(request) };
    await (await throughStage(recorder as unknown as Client)(count))();
    return () => inLanes(requests, LANES, () => async (request) => void (await client.createTask(request)));
  };
}
