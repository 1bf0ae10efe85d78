import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { credentials, makeGenericClientConstructor, status, type ServiceError } from '@grpc/grpc-js';
import { startFixture, type Fixture } from './fixture.ts';
import { cloudTasksDefinition } from './protos.ts';

let fixture: Fixture;
before(async () => {
  fixture = await startFixture();
});
after(() => fixture.close());

/** Calls a method with the message's bytes followed by more bytes inside its second field (the queue or the task). */
async function call(method: 'CreateQueue' | 'CreateTask', message: object, more: Buffer): Promise<number> {
  const definition = cloudTasksDefinition();
  const original = definition[method];
  assert.ok(original);
  const appended = Buffer.concat([Buffer.from([2 * 8 + 2, more.length]), more]);
  const requestSerialize = (value: object): Buffer =>
    Buffer.concat([original.requestSerialize(value), ...(more.length > 0 ? [appended] : [])]);
  const Client = makeGenericClientConstructor({ [method]: { ...original, requestSerialize } }, '');
  const client = new Client(fixture.tasks.address, credentials.createInsecure());
  const code = await new Promise<number>((resolve) => {
    const send = client[method] as (request: object, callback: (error: ServiceError | null) => void) => void;
    send.call(client, message, (error) => resolve(error?.code ?? status.OK));
  });
  client.close();
  return code;
}

test('refuses a queue or a task with a field that its protos do not know', async () => {
  const queue = { name: fixture.queue };
  const field17 = Buffer.from([((17 * 8 + 2) % 128) | 128, 1, 0]);
  assert.equal(await call('CreateQueue', { parent: fixture.parent, queue }, field17), status.UNIMPLEMENTED);
  assert.equal(await call('CreateQueue', { parent: fixture.parent, queue }, Buffer.alloc(0)), status.OK);

  const task = {
    scheduleTime: { seconds: 4_000_000_000, nanos: 5 },
    httpRequest: { url: fixture.target.url, headers: { a: 'b' }, body: Buffer.alloc(300) },
  };
  const field7OfHttp = Buffer.from([3 * 8 + 2, 2, 7 * 8, 1]);
  assert.equal(await call('CreateTask', { parent: fixture.queue, task }, field7OfHttp), status.UNIMPLEMENTED);
  const near = { ...task, scheduleTime: { seconds: fixture.clock.now() / 1000 + 60 } };
  assert.equal(await call('CreateTask', { parent: fixture.queue, task: near }, Buffer.alloc(0)), status.OK);
});
