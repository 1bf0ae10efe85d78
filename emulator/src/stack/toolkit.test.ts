import assert from 'node:assert/strict';
import { createPublicKey, type JsonWebKey, verify } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { Firestore } from '@google-cloud/firestore';
import { type Message, PubSub, type Subscription } from '@google-cloud/pubsub';
import { until } from '../until.ts';
import { type Toolkit, startToolkit } from './toolkit.ts';

let stack: Toolkit;
let client: PubSub;
const lines: string[] = [];
const subscriptions: Subscription[] = [];
const received = new Map<string, { message: Message; at: number }[]>();

const OUTPUTS = ['dedup-out', 'delay-out', 'fifo-out', 'pipeline-out', 'dead-letters'] as const;
type Output = (typeof OUTPUTS)[number];

// Otherwise the client first looks for a metadata server.
process.env['METADATA_SERVER_DETECTION'] = 'none';

before(async () => {
  stack = await startToolkit({ log: (line) => lines.push(line), outboxTrigger: true });
  client = new PubSub({
    projectId: stack.addresses.project,
    apiEndpoint: stack.addresses.pubsub,
    emulatorMode: true,
  });
  for (const output of OUTPUTS) {
    received.set(output, []);
    const subscription = client.subscription(`${output}-sub`);
    subscriptions.push(subscription);
    subscription.on('message', (message: Message) => {
      received.get(output)?.push({ message, at: Date.now() });
      message.ack();
    });
  }
});

after(async () => {
  await Promise.all(subscriptions.map((subscription) => subscription.close()));
  await client?.close();
  await stack?.close();
});

type Sent = Readonly<{ data?: string | Buffer; attributes?: Record<string, string>; orderingKey?: string }>;

function send(topic: string, { data = 'data', attributes = {}, orderingKey }: Sent): Promise<string> {
  const message = { data: Buffer.from(data), attributes, ...(orderingKey !== undefined && { orderingKey }) };
  return client.topic(topic, { messageOrdering: orderingKey !== undefined }).publishMessage(message);
}

/** What came out with this attribute `case`, once there are `count` of it and a moment more has passed. */
async function outcome(
  output: Output,
  name: string,
  count: number,
): Promise<{ message: Message; at: number }[]> {
  const matching = () =>
    (received.get(output) ?? []).filter(({ message }) => message.attributes['case'] === name);
  await until(
    () => matching().length >= count,
    () => `${output} ${name}\n${lines.slice(-20).join('\n')}`,
  );
  // Long enough for a repeat that should not be there.
  await wait(300);
  assert.equal(matching().length, count, `${output} ${name}\n${lines.slice(-20).join('\n')}`);
  return matching();
}

test('once: publishes of one dedupId come out once, with their bytes and attributes', async () => {
  const data = Buffer.from('00fffe80c328', 'hex');
  const attributes = { case: 'once', dedupId: 'order-1', tenant: 'a' };
  await Promise.all([1, 2, 3].map(() => send('dedup-in', { data, attributes })));
  const [only] = await outcome('dedup-out', 'once', 1);
  assert.deepEqual(only?.message.data, data);
  assert.equal(only?.message.attributes['dedupId'], 'order-1');
  assert.equal(only?.message.attributes['tenant'], 'a');
});

test('once: without a dedupId the message ID is the key, and each message comes out', async () => {
  const ids = await Promise.all([1, 2].map(() => send('dedup-in', { attributes: { case: 'own id' } })));
  const messages = await outcome('dedup-out', 'own id', 2);
  const source = `projects/${stack.addresses.project}/subscriptions/dedup-in-sub`;
  const keys = new Set(messages.map(({ message }) => message.attributes['dedupId']));
  assert.deepEqual(keys, new Set(ids.map((id) => `${source}/${id}`)));
});

test('once: the same dedupId with other data goes to the dead letters', async () => {
  const attributes = { case: 'conflict', dedupId: 'order-2' };
  await send('dedup-in', { data: 'one', attributes });
  await outcome('dedup-out', 'conflict', 1);
  await send('dedup-in', { data: 'other', attributes });
  const [dead] = await outcome('dead-letters', 'conflict', 1);
  assert.equal(dead?.message.data.toString(), 'other');
  assert.match(dead?.message.attributes['deadLetterReason'] ?? '', /CONFLICT/);
});

for (const route of ['delay', 'pipeline'] as const) {
  test(`later: a message through ${route} is never early, and its delivery options are removed`, async () => {
    const name = `later ${route}`;
    await send(`${route}-in`, { attributes: { case: name, delay: '1' }, orderingKey: 'k' });
    const [only] = await outcome(`${route}-out`, name, 1);
    const attributes = only?.message.attributes ?? {};
    const due = Date.parse(attributes['originPublishTime'] ?? '') + 1_000;
    assert.ok((only?.at ?? 0) >= due, `${only?.at} is before ${due}`);
    assert.equal(attributes['delay'], undefined);
    assert.ok(attributes['deliveredAfter'] !== undefined);
    assert.equal(only?.message.orderingKey, 'k');
  });
}

test('later: attribute-only messages are delayed too', async () => {
  await send('delay-in', { data: '', attributes: { case: 'no data', delay: '1' } });
  const [only] = await outcome('delay-out', 'no data', 1);
  assert.equal(only?.message.data.length, 0);
});

for (const route of ['fifo', 'pipeline'] as const) {
  test(`in order: a shuffled stream through ${route} comes out as 1, 2, 3, …`, async () => {
    const name = `order ${route}`;
    for (const sequence of ['4', '2', '3', '1', '6', '5', '3']) {
      await send(`${route}-in`, { data: sequence, attributes: { case: name, sequence, sequenceKey: name } });
    }
    const messages = await outcome(`${route}-out`, name, 6);
    assert.deepEqual(
      messages.map(({ message }) => message.data.toString()),
      ['1', '2', '3', '4', '5', '6'],
    );
  });
}

for (const route of ['fifo', 'pipeline'] as const) {
  test(`in order: ${route} wakes a stream whose message failed, and its sweep relays the outbox`, async () => {
    const dispatched = (): number =>
      (stack.state() as unknown as { tasks: { dispatched: number } }).tasks.dispatched;
    const name = `woken ${route}`;
    const before = dispatched();
    const rule = { service: 'pubsub', method: 'Publish', resource: `*/${route}-out`, times: 1 };
    stack.faults.set({ rules: [{ ...rule, action: { type: 'fail', code: 'PERMISSION_DENIED' } }] });
    await send(`${route}-in`, { attributes: { case: name, sequence: '1', sequenceKey: name } });
    await outcome(`${route}-out`, name, 1);
    await until(() => dispatched() !== before, 'the wake-up is dispatched');
    stack.faults.clear();
    assert.equal(dispatched() - before, 1, lines.slice(-20).join('\n'));
    const url = stack.addresses.functions[route];
    const swept = await fetch(`${url}/sweep`, { method: 'POST' });
    assert.equal(((await swept.json()) as { outbox: { isWhole: boolean } }).outbox.isWhole, true);
  });
}

test('an event of the outbox’s trigger is taken by the function saga', async (t) => {
  const [host, port] = stack.addresses.firestore.split(':');
  const options = { projectId: stack.addresses.project, host: host ?? '', port: Number(port), ssl: false };
  const firestore = new Firestore(options);
  t.after(() => firestore.terminate());
  const resource = '*/documents/pubsub-guarantees-outbox-rows';
  const rule = { service: 'firestore', method: 'trigger', resource, times: 1 };
  // The second copy tells that there was a first one, and neither is left to be sent again.
  stack.faults.set({ rules: [{ ...rule, action: { type: 'duplicate' } }] });
  await firestore.doc('pubsub-guarantees-outbox-rows/no-row-of-ours').set({ state: 'unknown' });
  for (let turn = 0; turn < 4_800 && stack.faults.log().length === 0; turn++) await wait(25);
  assert.deepEqual(
    stack.faults.log().map(({ method, action }) => [method, action]),
    [['trigger', 'duplicate']],
  );
  // A move waits for what is in flight.
  await stack.clock.advance(1);
  stack.faults.clear();
  assert.deepEqual(
    lines.filter((line) => line.includes('the event of')),
    [],
  );
  const url = `${stack.addresses.functions.saga}/outbox`;
  const refused = await fetch(url, { method: 'POST', body: '{}' });
  assert.equal(refused.status, 400);
  assert.match(await refused.text(), /header ce-type is missing; accepted: google\.cloud\.firestore/);
});

test('a delayed message through the pipeline comes out once, however often it was published', async () => {
  const attributes = { case: 'later once', dedupId: 'order-3', delay: '1' };
  await Promise.all([1, 2, 3].map(() => send('pipeline-in', { attributes })));
  await outcome('pipeline-out', 'later once', 1);
});

test('an invalid attribute goes to the dead letters with a reason', async () => {
  await send('delay-in', { attributes: { case: 'invalid', delay: '60s' } });
  const [dead] = await outcome('dead-letters', 'invalid', 1);
  assert.equal(dead?.message.attributes['deadLetterReason'], 'INVALID_ATTRIBUTE');
  assert.match(dead?.message.attributes['deadLetterError'] ?? '', /attribute delay is "60s"; accepted:/);
});

test('a body that is no message is refused with one line', async () => {
  const response = await fetch(stack.addresses.functions.dedup, { method: 'POST', body: '{"x":1}' });
  assert.equal(response.status, 400);
  assert.match(await response.text(), /expected|accepted/);
});

test('messages published while the functions are down come out after they are back', async () => {
  await stack.functions.kill();
  await send('dedup-in', { attributes: { case: 'down', dedupId: 'order-4' } });
  for (const sequence of ['2', '1']) {
    await send('fifo-in', { data: sequence, attributes: { case: 'down', sequence, sequenceKey: 'down' } });
  }
  await stack.functions.start();
  await outcome('dedup-out', 'down', 1);
  const ordered = await outcome('fifo-out', 'down', 2);
  assert.deepEqual(
    ordered.map(({ message }) => message.data.toString()),
    ['1', '2'],
  );
});

test('the control API shows the addresses and what the servers hold', async () => {
  const response = await fetch(`${stack.addresses.control}/state`);
  const state = (await response.json()) as { addresses: unknown; pubsub: { topics: number } };
  assert.deepEqual(state.addresses, stack.addresses);
  assert.equal(state.pubsub.topics, 10);
});

test('publish, pull and acknowledge also work over REST', async () => {
  const base = `${stack.addresses.control}/v1/projects/${stack.addresses.project}`;
  const call = async (
    path: string,
    body: unknown,
  ): Promise<{ status: number; body: Record<string, unknown> }> => {
    const response = await fetch(`${base}/${path}`, { method: 'POST', body: JSON.stringify(body) });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const data = Buffer.from('00fffe80c328', 'hex').toString('base64');
  const sent = await call('topics/dedup-in:publish', { messages: [{ data, attributes: { case: 'rest' } }] });
  assert.equal(sent.status, 200);
  const [only] = await outcome('dedup-out', 'rest', 1);
  assert.equal(only?.message.data.toString('base64'), data);
  const refused = async (path: string, body: unknown) => (await call(path, body)).status;
  assert.equal(await refused('topics/none:publish', { messages: [{ data }] }), 404);
  assert.equal(await refused('topics/a%ZZ:publish', { messages: [{ data }] }), 400);
  assert.equal(await refused('topics/dedup-in:publish', { messages: [{ data: '%' }] }), 400);
  assert.equal(await refused('topics/dedup-in:publish', { messages: [{ data, attributes: { a: 1 } }] }), 400);
  assert.equal(await refused('topics/dedup-in:publish', { messages: [{ data, bogus: 1 }] }), 400);
  assert.equal(await refused('topics', {}), 501);
});

test('a task with an OIDC token is dispatched with one that the key of the stack verifies', async (t) => {
  const { control, project } = stack.addresses;
  const seen = Promise.withResolvers<string>();
  const target = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    seen.resolve(request.headers.authorization ?? '');
    response.end();
  });
  await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve));
  t.after(() => target.close());
  const url = `http://127.0.0.1:${(target.address() as AddressInfo).port}/`;
  const created = await fetch(
    `${control}/v2/projects/${project}/locations/us-central1/queues/delay-queue/tasks`,
    {
      method: 'POST',
      body: JSON.stringify({
        task: {
          httpRequest: {
            url,
            oidcToken: { serviceAccountEmail: 'caller@demo-project.iam.gserviceaccount.com' },
          },
        },
      }),
    },
  );
  assert.equal(created.status, 200, await created.text());
  const [header, payload, signature = ''] = (await seen.promise).replace('Bearer ', '').split('.');
  const { keys } = (await (await fetch(`${control}/oidc/jwks`)).json()) as { keys: JsonWebKey[] };
  const key = createPublicKey({ key: keys[0] ?? {}, format: 'jwk' });
  const signed = Buffer.from(`${header}.${payload}`);
  assert.ok(verify('RSA-SHA256', signed, key, Buffer.from(signature, 'base64url')));
});

test('attributes come through REST as they are, whatever they are called', async () => {
  const attributes = { seconds: '1', nanos: '2', empty: '', ackId: 'x' };
  const base = `${stack.addresses.control}/v1/projects/${stack.addresses.project}`;
  const post = (path: string, body: object) =>
    fetch(`${base}/${path}`, { method: 'POST', body: JSON.stringify(body) }).then((response) =>
      response.json(),
    );
  // No client streams from this subscription: only what pulls here is given the message.
  const [plain] = await client.topic('dead-letters').createSubscription('plain');
  await post('topics/dead-letters:publish', { messages: [{ attributes }] });
  const pulled = (await post('subscriptions/plain:pull', { maxMessages: 10 })) as {
    receivedMessages: { message: { attributes: unknown } }[];
  };
  assert.deepEqual(
    pulled.receivedMessages.map(({ message }) => message.attributes),
    [attributes],
  );
  await plain.delete();
});
