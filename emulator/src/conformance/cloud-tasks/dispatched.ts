/** What a task did at the world's target: the first request, the headers of all of them, the recorded answers. */
import assert from 'node:assert/strict';
import { createTask, openQueue } from './section.ts';
import type { Received } from './target.ts';
import type { TasksWorld } from './world.ts';

const DAY_MS = 86_400_000;

/** The values of one header of a family (`x-cloudtasks`) over all requests that arrived. */
export const headersOf =
  (family: 'x-cloudtasks' | 'x-appengine') =>
  ({ target }: TasksWorld, header: string): (string | undefined)[] =>
    target.received.map(({ headers }) => headers[`${family}-${header}`] as string | undefined);

/** Dispatches one HTTP task and returns what arrived. */
export const dispatchedHttp = (world: TasksWorld, request: object = {}, path = ''): Promise<Received> =>
  dispatched(world, { httpRequest: { url: `${world.target.url}${path}`, ...request } });

/** Dispatches one App Engine task and returns what arrived. */
export const dispatchedAppEngine = (world: TasksWorld, request: object = {}): Promise<Received> =>
  dispatched(world, { appEngineHttpRequest: request });

/** As recorded: 503, 404, 429, 500, 302, and then 200. */
export async function recording(
  world: TasksWorld,
  dispatch: (world: TasksWorld) => Promise<Received>,
): Promise<void> {
  const statuses = [503, 404, 429, 500, 302, 200];
  world.target.answer.with = (n) => statuses[n] ?? 200;
  await dispatch(world);
  await world.pass(DAY_MS);
  assert.equal(world.target.received.length, statuses.length);
}

async function dispatched(world: TasksWorld, task: object): Promise<Received> {
  await openQueue(world);
  await createTask(world, task, 't');
  await world.pass(0);
  const [first] = world.target.received;
  assert.ok(first !== undefined, 'the task was not dispatched');
  return first;
}
