import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Firestore } from '@google-cloud/firestore';
import { findOfficial, startOfficialPubsub } from '../official/index.ts';
import { seedFrom } from '../seed/seed.ts';
import { allFree, portsIn, ready, run } from './cli-fixture.ts';
import { type Stack, startStack } from './stack.ts';

// Otherwise Google's clients first look for a metadata server.
process.env['METADATA_SERVER_DETECTION'] = 'none';

const found = findOfficial();
const options = found.ok ? {} : { skip: found.missing };

const SEED = seedFrom({
  topics: { orders: { subscriptions: ['billing'] } },
  queues: ['emails'],
  firestore: { documents: { 'users/alice': { age: 7 } } },
});

let stack: Stack | undefined;
before(async () => {
  if (found.ok) stack = await startStack({ official: true, seed: SEED });
});
after(() => stack?.close());

async function ask(method: string, path: string, body?: object): Promise<readonly [number, string]> {
  const response = await fetch(`${stack?.addresses.control}${path}`, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return [response.status, await response.text()];
}

test('a seed makes the same on Google’s emulators', options, async (t) => {
  assert.ok(stack !== undefined);
  const firestore = new Firestore({ projectId: 'demo-project', host: stack.addresses.firestore, ssl: false });
  t.after(() => firestore.terminate());
  assert.equal((await firestore.doc('users/alice').get()).get('age'), 7);
  const [sent] = await ask('POST', '/v1/projects/demo-project/topics/orders:publish', {
    messages: [{ data: 'AA==' }],
  });
  const [, pulled] = await ask('POST', '/v1/projects/demo-project/subscriptions/billing:pull', {
    maxMessages: 10,
  });
  assert.deepEqual([sent, pulled.includes('"AA=="')], [200, true]);
});

test('what they cannot do is refused with one line, and the rest goes on', options, async () => {
  const fail = (service: string, method: string): object => ({
    rules: [{ service, method, action: { type: 'fail', code: 'UNAVAILABLE' } }],
  });
  for (const [method, path, body] of [
    ['POST', '/clock/advance', { by: '1s' }],
    ['POST', '/clock/run-until-idle', {}],
    ['POST', '/clock/freeze', undefined],
    ['POST', '/reset', undefined],
    ['GET', '/save', undefined],
    ['POST', '/load', {}],
    ['POST', '/faults', fail('pubsub', 'Publish')],
  ] as const) {
    const [status, text] = await ask(method, path, body);
    assert.equal(status, 501, path);
    assert.match(text, /^\{"error":"[^\n]+"\}\n$/);
  }
  assert.equal((await ask('POST', '/faults', fail('tasks', 'CreateTask')))[0], 200);
  assert.equal((await ask('GET', '/clock'))[0], 200);
  assert.match((await ask('GET', '/state'))[1], /"pubsub":\{"external":true\}/);
});

test(
  'SIGKILL leaves none of their processes, and neither does a start that fails half-way',
  options,
  async (t) => {
    const killed = run(t, ['--json', '--official', '--services', 'pubsub', '--port-base', '0']);
    const addresses = await ready<Stack['addresses']>(killed);
    killed.process.kill('SIGKILL');
    await killed.ended;
    await allFree(portsIn(addresses));
    const taken = Number(stack?.addresses.control.split(':').at(-1));
    const args = ['--quiet', '--official', '--services', 'pubsub', '--port-base', '0'];
    const failed = run(t, [...args, '--control-port', String(taken)]);
    assert.equal(await failed.ended, 1);
    assert.match(failed.err(), /^error: port \d+ on 127\.0\.0\.1 is taken/);
  },
);

test('an emulator that runs already is used, and left running', options, async (t) => {
  const pubsub = await startOfficialPubsub();
  t.after(() => pubsub.close());
  const args = ['--json', '--external', '--services', 'pubsub,tasks', '--port-base', '0'];
  const joined = run(t, args, { PUBSUB_EMULATOR_HOST: pubsub.address, FIRESTORE_EMULATOR_HOST: '' });
  const addresses = await ready<Stack['addresses']>(joined);
  assert.equal(addresses.pubsub, pubsub.address);
  joined.process.kill('SIGTERM');
  assert.equal(await joined.ended, 0);
  assert.equal((await fetch(`http://${pubsub.address}/`)).status, 200);
});
