/** Short forms for the cases: how one is made, what a queue and a task look like, how a refusal is asserted. */
import assert from 'node:assert/strict';
import { status } from '@grpc/grpc-js';
import type { Case } from '../case.ts';
import type { TasksWorld } from './world.ts';

export type TasksCase = Case<TasksWorld>;

/** Cases of one feature. */
export const section =
  (feature: string) =>
  (title: string, source: string, run: (world: TasksWorld) => Promise<void>): TasksCase => ({
    feature,
    title,
    source,
    run,
  });

type Code = keyof typeof status;

/** The service does it, this server says UNIMPLEMENTED, in a text that names it. */
export const refusedHere = (
  title: string,
  source: string,
  attempt: (world: TasksWorld) => Promise<unknown>,
  text?: RegExp,
): TasksCase => ({
  feature: 'Refused here, not ignored',
  title,
  source,
  run: async (world) => void (await attempt(world)),
  refusedHere: (world) => refused(attempt(world), 'UNIMPLEMENTED', text),
});

/** The call must be refused with the code, and with exactly the text where it is a string. */
export async function refused(call: Promise<unknown>, code: Code, text?: string | RegExp): Promise<void> {
  let seen = 'it was accepted';
  try {
    await call;
  } catch (error) {
    const { code: given = -1, details = String(error) } = error as { code?: number; details?: string };
    seen = `${status[given] ?? given}: ${details}`;
  }
  if (typeof text === 'string') return assert.equal(seen, `${code}: ${text}`);
  assert.ok(seen.startsWith(`${code}: `), `expected ${code}, seen ${seen}`);
  if (text !== undefined) assert.match(seen, text);
}

export const seconds = (count: number): object => ({ seconds: String(count) });
/** A timestamp as many milliseconds from now. */
export const later = ({ now }: TasksWorld, milliseconds: number): object => ({
  seconds: String(Math.floor((now() + milliseconds) / 1000)),
  nanos: ((now() + milliseconds) % 1000) * 1e6,
});

/** Creates the queue of the world, or another by its id. */
export const openQueue = (world: TasksWorld, settings: object = {}, id?: string): Promise<Shown> =>
  world.call('CreateQueue', {
    parent: world.parent,
    queue: { name: id === undefined ? world.queue : `${world.parent}/queues/${id}`, ...settings },
  }) as Promise<Shown>;

/** Creates a task in the queue of the world. Without a target of its own it is a POST to the world's. */
export const createTask = (world: TasksWorld, task: object = {}, id?: string): Promise<Shown> =>
  world.call('CreateTask', {
    parent: world.queue,
    responseView: 'FULL',
    task: {
      ...(id === undefined ? {} : { name: taskName(world, id) }),
      ...('appEngineHttpRequest' in task ? {} : { httpRequest: { url: world.target.url } }),
      ...task,
    },
  }) as Promise<Shown>;

export const taskName = (world: TasksWorld, id: string): string => `${world.queue}/tasks/${id}`;
export const byName = (world: TasksWorld, id: string): { name: string } => ({ name: taskName(world, id) });

/** A queue or a task as @grpc/proto-loader gives it: the fields that the cases look at. */
export type Shown = Readonly<Record<string, unknown>> &
  Readonly<{
    name: string;
    state: string;
    view: string;
    dispatchCount: number;
    responseCount: number;
    scheduleTime: Time;
    createTime: Time;
    dispatchDeadline: Time;
    purgeTime: Time | null;
    rateLimits: Readonly<Record<string, number>>;
    retryConfig: Readonly<Record<string, unknown>>;
    appEngineRoutingOverride: Readonly<Record<string, string>> | null;
    httpRequest?: ShownRequest;
    appEngineHttpRequest?: ShownRequest;
    firstAttempt: ShownAttempt | null;
    lastAttempt: ShownAttempt | null;
  }>;
type Time = Readonly<{ seconds: string; nanos: number }>;
type ShownRequest = Readonly<{
  url: string;
  relativeUri: string;
  httpMethod: string;
  body: Buffer;
  headers: Readonly<Record<string, string>>;
  appEngineRouting: Readonly<Record<string, string>>;
}>;
type ShownAttempt = Readonly<{
  dispatchTime: Time | null;
  responseTime: Time | null;
  scheduleTime: Time | null;
  responseStatus: Readonly<{ code: number; message: string }> | null;
}>;

export const get = (world: TasksWorld, rpc: 'GetQueue' | 'GetTask', name: string): Promise<Shown> =>
  world.call(rpc, { name, responseView: 'FULL' }) as Promise<Shown>;

/** Milliseconds since the world's time 0 at which the requests arrived, as far as the target has seen them. */
export const times = ({ target }: TasksWorld, from: number): number[] =>
  target.received.map(({ atMs }) => atMs - from);
