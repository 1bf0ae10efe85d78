import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, credentials } from '@grpc/grpc-js';
import { startFixture } from './cloud-tasks/fixture.ts';
import { systemClock } from './clock.ts';
import { testBed } from './firestore/testing.ts';
import { testServer, topicName } from './pubsub/test-server.ts';
import { countUnimplemented } from './unimplemented.ts';

test('counts options that Pub/Sub refuses, by method', async (t) => {
  const { server, call } = await testServer(t);
  await assert.rejects(call('CreateTopic', { name: topicName('keyed'), messageTransforms: [{}] }), {
    code: 12,
  });
  await assert.rejects(call('CreateTopic', { name: 'no name' }), { code: 3 });
  assert.deepEqual(server.unimplemented(), {
    'google.pubsub.v1.Publisher/CreateTopic': 1,
  });
});

test('counts what Cloud Tasks refuses, over gRPC and REST together', async (t) => {
  const { client, parent, queue, tasks, close } = await startFixture();
  t.after(close);
  await client.createQueue({ parent, queue: { name: queue } });
  const task = { httpRequest: { url: 'http://127.0.0.1:9/', oauthToken: { serviceAccountEmail: 'a@b' } } };
  const body = Buffer.from(JSON.stringify({ task }));
  assert.equal((await tasks.rest('POST', `/v2/${queue}/tasks`, '', body))?.status, 501);
  await assert.rejects(client.createTask({ parent: queue, task }), { code: 12 });
  assert.deepEqual(tasks.unimplemented(), {
    'google.cloud.tasks.v2.CloudTasks/CreateTask': 2,
  });
});

test('counts a stream that Firestore has not, and a service that was not described to it', async (t) => {
  const { call, server, close } = await testBed(systemClock());
  const client = new Client(server.address, credentials.createInsecure());
  t.after(async () => {
    client.close();
    await close();
  });
  const database = 'projects/test-project/databases/(default)';
  await assert.rejects(call('ExecutePipeline', { database }), { code: 12 });
  const path = '/google.firestore.admin.v1.FirestoreAdmin/ListIndexes';
  const empty = (): Buffer => Buffer.alloc(0);
  const code = await new Promise((resolve) => {
    client.makeUnaryRequest(path, empty, empty, {}, (error) => resolve(error?.code));
  });
  assert.equal(code, 12);
  assert.deepEqual(server.unimplemented(), {
    'google.firestore.v1.Firestore/ExecutePipeline': 1,
    'google.firestore.admin.v1.FirestoreAdmin/ListIndexes': 1,
  });
});

test('counts no more names than it can hold, whatever is called', () => {
  const { count, counts } = countUnimplemented();
  for (let n = 0; n < 1_500; n += 1) count(`some.Service/Method${n}`);
  count('some.Service/Method0');
  assert.equal(Object.keys(counts()).length, 1_001);
  assert.deepEqual([counts()['others'], counts()['some.Service/Method0']], [500, 2]);
});
