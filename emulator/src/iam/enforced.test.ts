import assert from 'node:assert/strict';
import { test } from 'node:test';
import { caller as grpcCaller } from '../stack/grpc-call.ts';
import { cloudTasksDefinition } from '../cloud-tasks/protos.ts';
import { startStack } from '../stack/stack.ts';
import { pubsubServiceDefinitions } from '../pubsub/protos.ts';
import { seedFrom } from '../seed/seed.ts';
import { PubSub } from '@google-cloud/pubsub';
import type { TestContext } from 'node:test';
import { isPermitted } from './access.ts';
import { PERMISSIONS } from './roles.ts';

const ME = 'serviceAccount:worker@demo-project.iam.gserviceaccount.com';
const SEED = {
  topics: { orders: { subscriptions: ['billing'] } },
  queues: { emails: {} },
};
const QUEUE = 'projects/demo-project/locations/us-central1/queues/emails';

async function stackOf(t: TestContext, caller?: string) {
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  const stack = await startStack({
    services: ['pubsub', 'tasks'],
    seed: seedFrom(SEED),
    ...(caller !== undefined && { caller }),
  });
  const pubsub = new PubSub({ apiEndpoint: stack.addresses.pubsub, projectId: 'demo-project' });
  const tasks = grpcCaller(stack.addresses.tasks, cloudTasksDefinition());
  t.after(async () => {
    tasks.close();
    await pubsub.close();
    await stack.close();
  });
  return { stack, pubsub, tasks };
}

const grant = (role: string, member = ME) => ({ bindings: [{ role, members: [member] }] });
const NOT_AUTHORIZED = { code: 7, details: 'User not authorized to perform this action.' };
const publish = (pubsub: PubSub) => pubsub.topic('orders').publishMessage({ data: Buffer.from('x') });

test('without a caller a policy is kept and refuses nothing', async (t) => {
  const { pubsub } = await stackOf(t);
  await pubsub.topic('orders').iam.setPolicy(grant('roles/pubsub.viewer', 'user:other@example.com'));
  await publish(pubsub);
});

test('a named caller needs the permission of each method, on the resource', async (t) => {
  const { pubsub } = await stackOf(t, ME);
  const topic = pubsub.topic('orders');
  await assert.rejects(publish(pubsub), NOT_AUTHORIZED);
  await topic.iam.setPolicy(grant('roles/pubsub.publisher'));
  await publish(pubsub);
  await assert.rejects(topic.getMetadata(), NOT_AUTHORIZED);
  await assert.rejects(topic.delete(), NOT_AUTHORIZED);
  assert.deepEqual((await topic.iam.testPermissions(['pubsub.topics.publish', 'pubsub.topics.get']))[0], {
    'pubsub.topics.publish': true,
    'pubsub.topics.get': false,
  });
  await topic.iam.setPolicy(grant('roles/pubsub.publisher', 'user:other@example.com'));
  await assert.rejects(publish(pubsub), NOT_AUTHORIZED);
});

test('a stream is refused without the permission to consume, and goes on with it', async (t) => {
  const { pubsub } = await stackOf(t, ME);
  await pubsub.topic('orders').iam.setPolicy(grant('roles/pubsub.publisher'));
  await publish(pubsub);
  const refused = pubsub.subscription('billing');
  const failed = new Promise<Error>((resolve) => refused.once('error', resolve));
  refused.on('message', () => assert.fail('a message came'));
  assert.equal(((await failed) as Error & { code?: number }).code, 7);
  await refused.close();
  await pubsub.subscription('billing').iam.setPolicy(grant('roles/pubsub.subscriber'));
  const allowed = pubsub.subscription('billing');
  const data = await new Promise<string>((resolve) =>
    allowed.once('message', (message) => {
      message.ack();
      resolve(message.data.toString());
    }),
  );
  assert.equal(data, 'x');
  await allowed.close();
});

test('the owner of a topic may detach a subscription of others', async (t) => {
  const { pubsub } = await stackOf(t, ME);
  await assert.rejects(pubsub.detachSubscription('billing'), NOT_AUTHORIZED);
  await pubsub.topic('orders').iam.setPolicy(grant('roles/pubsub.editor'));
  await pubsub.detachSubscription('billing');
});

test('Cloud Tasks names the permission that is missing, over gRPC and REST', async (t) => {
  const { stack, tasks } = await stackOf(t, ME);
  const message = `The principal (user or service account) lacks IAM permission "cloudtasks.tasks.create" for the resource "${QUEUE}" (or the resource may not exist).`;
  const task = {
    httpRequest: { url: 'http://127.0.0.1:9/' },
    scheduleTime: { seconds: Math.floor(Date.now() / 1_000) + 3_600 },
  };
  await assert.rejects(tasks.call('CreateTask', { parent: QUEUE, task }), { code: 7, details: message });
  const url = `${stack.addresses.control}/v2/${QUEUE}/tasks`;
  const body = JSON.stringify({ task: { httpRequest: { url: 'http://127.0.0.1:9/' } } });
  const answer = await fetch(url, { method: 'POST', body });
  assert.equal(answer.status, 403);
  assert.equal(((await answer.json()) as { error: { message: string } }).error.message, message);
  await tasks.call('SetIamPolicy', { resource: QUEUE, policy: grant('roles/cloudtasks.enqueuer') });
  const { name } = (await tasks.call('CreateTask', { parent: QUEUE, task })) as { name: string };
  await assert.rejects(tasks.call('DeleteTask', { name }), { code: 7 });
});

test('a condition, which nothing here evaluates, is refused where policies are enforced', async (t) => {
  const { pubsub } = await stackOf(t, ME);
  const [binding] = grant('roles/pubsub.publisher').bindings;
  const policy = { version: 3, bindings: [{ ...binding, condition: { expression: 'true' } }] };
  await assert.rejects(pubsub.topic('orders').iam.setPolicy(policy as never), { code: 12 });
});

test('policies are saved, loaded and reset with the stack', async (t) => {
  const { stack, pubsub, tasks } = await stackOf(t);
  const [topic, subscription] = [pubsub.topic('orders'), pubsub.subscription('billing')];
  await topic.iam.setPolicy(grant('roles/pubsub.publisher'));
  await subscription.iam.setPolicy(grant('roles/pubsub.subscriber'));
  await subscription.createSnapshot('shot');
  const policies = grpcCaller(stack.addresses.pubsub, pubsubServiceDefinitions().iamPolicy);
  t.after(() => policies.close());
  const names = ['snapshots/shot', 'schemas/avro'].map((id) => `projects/demo-project/${id}`);
  await pubsub.createSchema('avro', 'AVRO', '{"type":"record","name":"R","fields":[]}');
  for (const resource of names) {
    await policies.call('SetIamPolicy', { resource, policy: grant('roles/pubsub.editor') });
  }
  await tasks.call('SetIamPolicy', { resource: QUEUE, policy: grant('roles/cloudtasks.viewer') });
  const all = async () => [
    ...(await Promise.all([topic, subscription].map(async (each) => (await each.iam.getPolicy())[0]))),
    ...(await Promise.all(names.map((resource) => policies.call('GetIamPolicy', { resource })))),
    await tasks.call('GetIamPolicy', { resource: QUEUE }),
  ];
  const before = await all();
  const saved = JSON.parse(JSON.stringify(stack.save())) as { pubsub: { topics: object[] } };
  await stack.reset();
  assert.deepEqual((await topic.iam.getPolicy())[0].bindings, []);
  await stack.load(saved);
  assert.deepEqual(await all(), before);
  const wrong = structuredClone(saved);
  Object.assign(wrong.pubsub.topics[0] ?? {}, {
    iamPolicy: { bindings: [{ role: 'x', members: [] }], etag: '' },
  });
  await assert.rejects(stack.load(wrong), /pubsub\.topics\[0\]\.iamPolicy is refused: Role x/);
  assert.deepEqual(await all(), before);
});

test('knows members by their kind', () => {
  const permitted = (member: string, caller: string): boolean =>
    isPermitted(
      {
        version: 1,
        etag: Buffer.alloc(0),
        bindings: [{ role: 'roles/pubsub.publisher', members: [member] }],
      },
      caller,
      'pubsub.topics.publish',
    );
  assert.ok(permitted('user:a@example.com', 'user:A@example.com'));
  assert.ok(permitted('domain:example.com', 'user:a@example.com'));
  assert.ok(permitted('allAuthenticatedUsers', ME));
  assert.ok(!permitted('serviceAccount:a@example.com', 'user:a@example.com'));
  assert.ok(!permitted('group:a@example.com', 'user:a@example.com'));
  assert.ok(!permitted('domain:ample.com', 'user:a@example.com'));
});

test('basic roles read, write and own', () => {
  const has = (role: string, permission: string): boolean =>
    isPermitted(
      { version: 1, etag: Buffer.alloc(0), bindings: [{ role, members: ['allUsers'] }] },
      ME,
      permission,
    );
  for (const permission of Object.values(PERMISSIONS).flat()) assert.ok(has('roles/owner', permission));
  assert.ok(has('roles/editor', 'pubsub.topics.publish'));
  assert.ok(!has('roles/editor', 'pubsub.topics.setIamPolicy'));
  assert.ok(has('roles/viewer', 'cloudtasks.queues.get'));
  assert.ok(!has('roles/viewer', 'pubsub.topics.publish'));
  assert.ok(!has('projects/p/roles/mine', 'pubsub.topics.publish'));
});
