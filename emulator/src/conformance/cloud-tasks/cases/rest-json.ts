/** The REST form of the API: JSON and errors. */
import assert from 'node:assert/strict';
import { openQueue, section, type TasksCase } from '../section.ts';
import { ERRORS, JSON_MAPPING } from '../sources.ts';
import type { TasksWorld } from '../world.ts';

const of = section('REST: JSON and errors');
const HOUR_MS = 3_600_000;

const queuePath = (world: TasksWorld, rest = ''): string => `/v2/${world.queue}${rest}`;
const post = async (world: TasksWorld, task: object) =>
  await world.http('POST', queuePath(world, '/tasks'), { task, responseView: 'FULL' });

export const restJsonCases: readonly TasksCase[] = [
  of(
    'enums may be given as numbers, and are answered as numbers where that is asked for',
    JSON_MAPPING,
    async (world) => {
      await openQueue(world);
      const { body } = await world.http(
        'POST',
        queuePath(world, '/tasks?%24alt=json%3Benum-encoding%3Dint'),
        {
          task: {
            scheduleTime: new Date(world.now() + HOUR_MS).toISOString(),
            httpRequest: { url: world.target.url, httpMethod: 3 },
          },
          responseView: 2,
        },
      );
      assert.deepEqual(
        [body['view'], (body['httpRequest'] as Record<string, unknown>)['httpMethod']],
        [2, 3],
      );
    },
  ),
  of('fields may be given in snake case', JSON_MAPPING, async (world) => {
    await openQueue(world);
    assert.equal(
      (await post(world, { http_request: { url: world.target.url, http_method: 'PUT' } })).status,
      200,
    );
    await world.pass(0);
    assert.equal(world.target.received[0]?.method, 'PUT');
  }),
  of('an unknown field is answered 400', JSON_MAPPING, async (world) => {
    await openQueue(world);
    const { status, body } = await post(world, { httpRequest: { url: world.target.url }, colour: 'red' });
    assert.equal(status, 400);
    assert.match(JSON.stringify(body), /colour/);
  }),
  of('a body that is no JSON is answered 400', ERRORS, async (world) => {
    await openQueue(world);
    assert.equal((await world.http('POST', queuePath(world, '/tasks'), '{')).status, 400);
  }),
  ...(
    [
      ['INVALID_ARGUMENT', 400, (world) => post(world, { httpRequest: { url: '' } })],
      ['NOT_FOUND', 404, (world) => world.http('GET', queuePath(world, '/tasks/unknown'))],
      [
        'ALREADY_EXISTS',
        409,
        (world) => world.http('POST', `/v2/${world.parent}/queues`, { name: world.queue }),
      ],
      ['FAILED_PRECONDITION', 400, (world) => recreated(world)],
    ] as const satisfies readonly (readonly [
      string,
      number,
      (world: TasksWorld) => ReturnType<TasksWorld['http']>,
    ])[]
  ).map(([name, code, ask]) =>
    of(
      `${name} is answered ${code}, with the code, the name and the text in the body`,
      ERRORS,
      async (world) => {
        await openQueue(world);
        const { status, body } = await ask(world);
        const error = body['error'] as Readonly<Record<string, unknown>> | undefined;
        assert.deepEqual([status, error?.['code'], error?.['status']], [code, code, name]);
        assert.ok(String(error?.['message']).length > 0);
      },
    ),
  ),
];

async function recreated(world: TasksWorld): ReturnType<TasksWorld['http']> {
  await world.http('DELETE', queuePath(world));
  return await world.http('POST', `/v2/${world.parent}/queues`, { name: world.queue });
}
