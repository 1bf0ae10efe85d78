/**
 * How late a delayed message is, in real time, beside what the same stack takes to dispatch a bare task. The toolkit runs
 * as `npm start` runs it, in processes of its own. On the one side the delay stage, in this process, hands messages to
 * its queue, and its republisher publishes them to a streaming subscriber; on the other, Google's client makes tasks
 * for an HTTP target. Both sides have the same schedule times, and the same client.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Message, PubSub } from '@google-cloud/pubsub';
import { systemClock } from 'pubsub-guarantees';
import { delay } from 'pubsub-guarantees/delay';
import { cloudTasksClient, cloudTasksQueue } from 'pubsub-guarantees/tasks/cloud-tasks';
import type { ToolkitAddresses } from 'pubsub-guarantees-emulator';
import { median } from '../median.ts';
import { aContext, freshMessages, inLanes } from '../once-redis/messages.ts';
import { arrivals, withinLimit } from './arrivals.ts';
import { beside } from './beside.ts';

type Print = (line: string) => void;
type Client = ReturnType<typeof cloudTasksClient>;

const ROUNDS = 5;
const MESSAGES = 1_000;
const WARM_UP = 300;
/** 200 a second. */
const STEP_MS = 5;
/** From the first call to the first due time: with the steps, all are due within ten seconds. */
const LEAD_MS = 5_000;
const LANES = 64;

/** Milliseconds from the due time, of each message or task. */
type Late = readonly number[];
type Side = (count: number, round: string) => Promise<Readonly<Record<string, Late>>>;
type Figures = Readonly<{ p50: number; p99: number }>;

export async function latenessOverBare(print: Print): Promise<object> {
  const toolkit = await beside<ToolkitAddresses>('./serve-toolkit.ts');
  const closers: (() => Promise<unknown>)[] = [toolkit.close];
  try {
    const { project, tasks } = toolkit.ready;
    const client = cloudTasksClient({ projectId: project, emulatorHost: tasks });
    closers.push(() => client.close());
    const sides = [await delayed(toolkit.ready, client, closers), await bare(toolkit.ready, client, closers)];
    for (const side of sides) await side(WARM_UP, 'warm');
    const rounds: Readonly<Record<string, Figures>>[] = [];
    for (let number = 1; number <= ROUNDS; number += 1) {
      const figures: Record<string, Figures> = {};
      for (const side of sides) {
        for (const [name, late] of Object.entries(await side(MESSAGES, String(number)))) {
          figures[name] = { p50: percentile(late, 0.5), p99: percentile(late, 0.99) };
        }
      }
      rounds.push(figures);
      print(`round ${number}: ${JSON.stringify(figures)}`);
    }
    return compared(rounds, print);
  } finally {
    for (const close of closers.toReversed()) await close();
  }
}

function compared(rounds: readonly Readonly<Record<string, Figures>>[], print: Print): object {
  const of = (name: string): Figures => ({
    p50: median(rounds.map((round) => round[name]?.p50 ?? Number.NaN)),
    p99: median(rounds.map((round) => round[name]?.p99 ?? Number.NaN)),
  });
  const [received, published, dispatched] = [of('received'), of('published'), of('bare')];
  const above = { p50: received.p50 - dispatched.p50, p99: received.p99 - dispatched.p99 };
  print(`ms late, medians of ${ROUNDS} rounds of ${MESSAGES} at ${1_000 / STEP_MS} a second:`);
  print('                              p50     p99');
  for (const [name, { p50, p99 }] of [
    ['bare task at its target', dispatched],
    ['message published', published],
    ['message received', received],
    ['received, above the bare task', above],
  ] as const) {
    print(`${name.padEnd(30)}${p50.toFixed(0).padStart(3)}${p99.toFixed(0).padStart(8)}`);
  }
  print('the limits are 25 and 150 above the bare task');
  return { received, published, bare: dispatched, above };
}

async function delayed(
  { project, pubsub }: ToolkitAddresses,
  client: Client,
  closers: (() => Promise<unknown>)[],
): Promise<Side> {
  const subscriber = new PubSub({ projectId: project, apiEndpoint: pubsub, emulatorMode: true });
  const subscription = subscriber.subscription('delay-out-sub');
  closers.push(() => subscriber.close());
  closers.push(() => subscription.close());
  const queue = cloudTasksQueue(client, { queue: queueOf(project), target: { appEngine: {} } });
  const topic = `projects/${project}/topics/delay-out`;
  const handler = delay(queue, { clock: systemClock(), topic })((message) => {
    throw new Error(`message ${message.id} was not delayed`);
  });
  return async (count, round) => {
    const all = arrivals(subscription, round, count);
    const dueTimes = dueTimesOf(count);
    const messages = freshMessages(count).map((message, index) => {
      const deliverAt = new Date(dueTimes[index] ?? Number.NaN).toISOString();
      return { ...message, data: Buffer.from(deliverAt), attributes: { deliverAt, round } };
    });
    await inLanes(messages, LANES, () => async (message) => void (await handler(message, aContext())));
    assertInTime(dueTimes);
    const arrived = await all;
    const dueTimeOf = (message: Message): number => Date.parse(message.data.toString());
    const received = arrived.map(({ message, at }) => at - dueTimeOf(message));
    const published = arrived.map(({ message }) => message.publishTime.getTime() - dueTimeOf(message));
    if (Math.min(...published) < 0) throw new Error('a message was published before its due time');
    return { received, published };
  };
}

const queueOf = (project: string): string => `projects/${project}/locations/us-central1/queues/delay-queue`;

function dueTimesOf(count: number): readonly number[] {
  const first = Date.now() + LEAD_MS;
  return Array.from({ length: count }, (_, index) => first + index * STEP_MS);
}

/** What is scheduled after its due time would say nothing of the stack. */
function assertInTime([first = 0]: readonly number[]): void {
  const leftMs = first - Date.now();
  if (leftMs < 0) throw new Error(`the last was scheduled ${-leftMs} ms after the first due time`);
}

async function bare(
  { project }: ToolkitAddresses,
  client: Client,
  closers: (() => Promise<unknown>)[],
): Promise<Side> {
  let arrived: (dueTimeMs: number) => void = () => {};
  const target = createServer((request, response) => {
    arrived(Number(request.url?.slice(1)));
    request.resume().once('end', () => response.writeHead(204).end());
  });
  target.listen(0, '127.0.0.1');
  await once(target, 'listening');
  closers.push(async () => {
    target.close();
    target.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(target.address() as AddressInfo).port}`;
  const parent = queueOf(project);
  return async (count) => {
    const late: number[] = [];
    const done = Promise.withResolvers<void>();
    arrived = (dueTimeMs) => {
      late.push(Date.now() - dueTimeMs);
      if (late.length === count) done.resolve();
    };
    const dueTimes = dueTimesOf(count);
    await inLanes(dueTimes, LANES, () => async (dueTime) => {
      const scheduleTime = { seconds: Math.floor(dueTime / 1_000), nanos: (dueTime % 1_000) * 1_000_000 };
      await client.createTask({ parent, task: { scheduleTime, httpRequest: { url: `${url}/${dueTime}` } } });
    });
    assertInTime(dueTimes);
    await withinLimit(done.promise, () => `${late.length} of ${count} tasks`);
    return { bare: late };
  };
}

const percentile = (values: readonly number[], part: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(Math.floor(values.length * part), values.length - 1)] ??
  Number.NaN;
