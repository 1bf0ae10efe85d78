/** Policies of queues. */
import assert from 'node:assert/strict';
import { openQueue, refused, section, type TasksCase } from '../section.ts';
import { IAM, METHODS, POLICY } from '../sources.ts';
import type { TasksWorld } from '../world.ts';

const make = section('Policies of queues');

const ENQUEUER = { role: 'roles/cloudtasks.enqueuer', members: ['user:a@example.com'], condition: null };

const get = (world: TasksWorld) => world.call('GetIamPolicy', { resource: world.queue });
const set = (world: TasksWorld, policy: object) =>
  world.call('SetIamPolicy', { resource: world.queue, policy });

export const policyCases: readonly TasksCase[] = [
  make('A queue without a policy has an empty one', IAM, async (world) => {
    await openQueue(world);
    const { bindings, version } = await get(world);
    assert.deepEqual([bindings, version], [[], 0]);
  }),
  make('The policy of a queue can be set and read', METHODS, async (world) => {
    await openQueue(world);
    const answered = await set(world, { bindings: [ENQUEUER] });
    assert.deepEqual(answered['bindings'], [ENQUEUER]);
    assert.deepEqual(await get(world), answered);
  }),
  make('An older etag is ABORTED', POLICY, async (world) => {
    await openQueue(world);
    const { etag } = await get(world);
    await set(world, { bindings: [ENQUEUER], etag });
    await refused(set(world, { bindings: [], etag }), 'ABORTED');
  }),
  make('The policy of a queue that is not there is NOT_FOUND', METHODS, async (world) => {
    await refused(get(world), 'NOT_FOUND');
    await refused(set(world, { bindings: [] }), 'NOT_FOUND');
  }),
  make('TestIamPermissions gives permissions of queues and tasks', METHODS, async (world) => {
    await openQueue(world);
    const permissions = ['cloudtasks.queues.get', 'cloudtasks.tasks.create'];
    const answered = await world.call('TestIamPermissions', { resource: world.queue, permissions });
    assert.deepEqual(answered['permissions'], permissions);
  }),
  make('TestIamPermissions of a queue that is not there is an empty list', IAM, async (world) => {
    const permissions = ['cloudtasks.queues.get'];
    const answered = await world.call('TestIamPermissions', { resource: world.queue, permissions });
    assert.deepEqual(answered['permissions'], []);
  }),
  make('The policy of a queue can be set and read over REST', METHODS, async (world) => {
    await openQueue(world);
    const policy = { bindings: [{ role: ENQUEUER.role, members: ENQUEUER.members }] };
    const put = await world.http('POST', `/v2/${world.queue}:setIamPolicy`, { policy });
    assert.equal(put.status, 200);
    const { body } = await world.http('POST', `/v2/${world.queue}:getIamPolicy`, {});
    assert.deepEqual(body, put.body);
    assert.deepEqual((body as { bindings: unknown }).bindings, policy.bindings);
  }),
];
