/**
 * What a task costs the local stack's Cloud Tasks while others wait in the queue: scheduled at its end and fired at its front
 * on a clock that is moved, with 1,000 and with 100,000 pending, in turn. The calls are made inside the process, so that
 * no network hides what the server itself does; what it fires goes to an HTTP server.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Clock, type RunningCloudTasks, startCloudTasks } from 'pubsub-guarantees-emulator';
import { median } from '../median.ts';

type Print = (line: string) => void;

const SIZES = [1_000, 100_000] as const;
/** Scheduled, and fired, in each round. */
const BATCH = 500;
/** So many that the larger queue has run a good part of what it began with. */
const ROUNDS = 60;
/** From one task to the next: within the rate of a queue. */
const STEP_MS = 10;
const QUEUE = '/v2/projects/bench/locations/us-central1/queues';
const NAME = 'projects/bench/locations/us-central1/queues/pending';

type Cost = Readonly<{ schedule: number; fire: number }>;

/** A queue with so many tasks in it at all times, but for the time between the two halves of a round. */
type Line = Readonly<{ round(): Promise<Cost>; close(): Promise<void> }>;

export async function pendingCost(print: Print): Promise<object> {
  const target = createServer((request, response) => {
    request.resume().once('end', () => response.writeHead(204).end());
  });
  target.listen(0, '127.0.0.1');
  await once(target, 'listening');
  const lines: Line[] = [];
  try {
    for (const size of SIZES) lines.push(await lineOf(size, target));
    const costs: Cost[][] = SIZES.map(() => []);
    for (let round = 0; round <= ROUNDS; round += 1) {
      for (const [index, line] of lines.entries()) {
        const cost = await line.round();
        // The first warms up.
        if (round > 0) costs[index]?.push(cost);
      }
    }
    return compared(costs, print);
  } finally {
    await Promise.all(lines.map((line) => line.close()));
    target.close();
    target.closeAllConnections();
  }
}

function compared(costs: readonly (readonly Cost[])[], print: Print): object {
  const [few, many] = costs.map((of) => ({
    schedule: median(of.map(({ schedule }) => schedule)),
    fire: median(of.map(({ fire }) => fire)),
  }));
  if (few === undefined || many === undefined) throw new Error('nothing was measured');
  const ratios = {
    schedule: Number((many.schedule / few.schedule).toFixed(3)),
    fire: Number((many.fire / few.fire).toFixed(3)),
  };
  print(`µs a task, medians of ${ROUNDS} rounds of ${BATCH}, with ${SIZES.join(' and with ')} pending:`);
  for (const what of ['schedule', 'fire'] as const) {
    print(
      `  ${what.padEnd(9)}${few[what].toFixed(1).padStart(8)}${many[what].toFixed(1).padStart(8)}  ratio ${ratios[what]} (at most 2)`,
    );
  }
  const shown = ({ schedule, fire }: Cost) => ({
    scheduleMicros: Number(schedule.toFixed(1)),
    fireMicros: Number(fire.toFixed(1)),
  });
  return { at1000: shown(few), at100000: shown(many), ratios };
}

async function lineOf(size: number, target: Server): Promise<Line> {
  const url = `http://127.0.0.1:${(target.address() as AddressInfo).port}/`;
  const clock = movedClock();
  const tasks = await startCloudTasks({ clock });
  await post(tasks, QUEUE, { name: NAME });
  let made = 0;
  let nextMs = clock.now() + size * STEP_MS;
  const schedule = async (count: number): Promise<void> => {
    for (let index = 0; index < count; index += 1) {
      const scheduleTime = new Date(nextMs).toISOString();
      const task = { name: `${NAME}/tasks/t${made++}`, scheduleTime, httpRequest: { url, body: 'eA==' } };
      await post(tasks, `${QUEUE}/pending/tasks`, { task });
      nextMs += STEP_MS;
    }
  };
  await schedule(size);
  clock.move(size * STEP_MS - STEP_MS);
  return {
    async round() {
      const schedules = await timed(BATCH, () => schedule(BATCH));
      const fires = await timed(BATCH, async () => {
        for (let index = 0; index < BATCH; index += 1) {
          clock.move(STEP_MS);
          await new Promise((resolve) => setImmediate(resolve));
        }
        while (tasks.inFlight() > 0) await new Promise((resolve) => setImmediate(resolve));
      });
      const { pending } = tasks.stats();
      if (pending !== size) throw new Error(`${pending} tasks are pending instead of ${size}`);
      return { schedule: schedules, fire: fires };
    },
    close: () => tasks.close(),
  };
}

async function timed(count: number, work: () => Promise<void>): Promise<number> {
  const begun = performance.now();
  await work();
  return ((performance.now() - begun) * 1_000) / count;
}

async function post(tasks: RunningCloudTasks, path: string, body: object): Promise<void> {
  const answer = await tasks.rest('POST', path, '', Buffer.from(JSON.stringify(body)));
  if (answer?.status !== 200) throw new Error(`${path}: ${JSON.stringify(answer)}`);
}

type MovedClock = Clock & Readonly<{ move(milliseconds: number): void }>;

/** Frozen until it is moved. A server of one queue has one timer at a time. */
function movedClock(): MovedClock {
  let now = Date.UTC(2030, 0, 1);
  const timers = new Map<symbol, Readonly<{ atMs: number; callback: () => void }>>();
  return {
    now: () => now,
    after(milliseconds, callback) {
      const key = Symbol();
      timers.set(key, { atMs: now + Math.max(milliseconds, 0), callback });
      return () => void timers.delete(key);
    },
    move(milliseconds) {
      now += milliseconds;
      for (const [key, { atMs, callback }] of timers) {
        if (atMs > now) continue;
        timers.delete(key);
        callback();
      }
    },
  };
}
