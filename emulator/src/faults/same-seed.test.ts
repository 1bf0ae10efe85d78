import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, credentials, type ServiceError } from '@grpc/grpc-js';
import { systemClock } from '../clock.ts';
import { startPubsub } from '../pubsub/index.ts';
import { pubsubServiceDefinitions } from '../pubsub/protos.ts';
import { createFaults, type Faults } from './index.ts';

const TOPICS = ['a', 'b', 'c'].map((id) => `projects/p/topics/topic-${id}`);
const CLIENTS = 4;
const CALLS = 30;

const planOf = (seed: number): object => ({
  seed,
  rules: [
    {
      service: 'pubsub',
      method: 'Publish',
      resource: '*-a',
      share: 0.3,
      times: 5,
      action: { type: 'lose-reply' },
    },
    { service: 'pubsub', method: 'Publish', share: 0.2, action: { type: 'fail' } },
    { service: 'pubsub', method: 'Publish', share: 0.1, action: { type: 'delay', ms: 3 } },
    { service: 'pubsub', method: 'Publish', resource: '*-b', nth: [7, 70], action: { type: 'duplicate' } },
    { service: 'pubsub', method: 'Pull', share: 0.2, action: { type: 'fail', code: 'ABORTED' } },
    { service: 'pubsub', method: 'deliver', share: 0.2, action: { type: 'duplicate' } },
  ],
});

/** Calls of several clients at once, each on a connection of its own: which comes first is up to the machine. */
async function talk(address: string, run: number): Promise<void> {
  const { publisher } = pubsubServiceDefinitions();
  const { path, requestSerialize, responseDeserialize } = publisher['Publish']!;
  const clients = Array.from(
    { length: CLIENTS },
    () => new Client(address, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 }),
  );
  await Promise.all(
    clients.map(async (client, index) => {
      for (let call = 0; call < CALLS; call += 1) {
        const topic = TOPICS[(call + index * run) % TOPICS.length];
        await new Promise<void>((resolve) => {
          const done = (_error: ServiceError | null): void => resolve();
          const request = { topic, messages: [{ data: Buffer.from('x') }] };
          client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, done);
        });
        if ((call + index + run) % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    }),
  );
  for (const client of clients) client.close();
}

/** What was decided, resource by resource: between resources there is no order. */
const decisions = (faults: Faults): readonly string[] =>
  faults
    .log()
    .map(({ method, resource, n, rule, action }) =>
      [method, resource, String(n).padStart(4), rule, action].join(' '),
    )
    .toSorted();

async function decided(seed: number, run: number): Promise<readonly string[]> {
  const faults = createFaults();
  const server = await startPubsub({ clock: systemClock(), faults });
  const { publisher } = pubsubServiceDefinitions();
  const { path, requestSerialize, responseDeserialize } = publisher['CreateTopic']!;
  const client = new Client(server.address, credentials.createInsecure());
  for (const name of TOPICS) {
    await new Promise<void>((resolve, reject) => {
      const done = (error: ServiceError | null): void => (error === null ? resolve() : reject(error));
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, { name }, done);
    });
  }
  client.close();
  faults.set(planOf(seed));
  await talk(server.address, run);
  await server.close();
  return decisions(faults);
}

test('the same seed decides the same, over ten runs of several clients at once', async () => {
  const first = await decided(7, 0);
  assert.ok(first.length > 20 && first.length < CLIENTS * CALLS);
  for (let run = 1; run < 10; run += 1) assert.deepEqual(await decided(7, run), first, `run ${run}`);
  assert.notDeepEqual(await decided(8, 0), first, 'another seed decides otherwise');
});
