import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Toolkit, startToolkit } from './toolkit.ts';

const [SECOND_MS, MINUTE_MS, DAY_MS] = [1_000, 60_000, 86_400_000];

let stack: Toolkit;
let base: string;
const lines: string[] = [];

before(async () => {
  stack = await startToolkit({ log: (line) => lines.push(line) });
  base = `${stack.addresses.control}/v1/projects/${stack.addresses.project}`;
  stack.clock.freeze();
});
after(() => stack?.close());

type Received = Readonly<{
  ackId: string;
  message: { data?: string; attributes?: Record<string, string>; publishTime: string };
}>;

async function post<Answer>(url: string, body: object): Promise<Answer> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
  assert.equal(response.status, 200, await response.clone().text());
  return (await response.json()) as Answer;
}

const publish = (topic: string, attributes: Record<string, string>): Promise<object> =>
  post(`${base}/topics/${topic}:publish`, { messages: [{ data: 'AA==', attributes }] });

async function pull(subscription: string, ack = true): Promise<readonly Received[]> {
  const url = `${base}/subscriptions/${subscription}`;
  const { receivedMessages = [] } = await post<{ receivedMessages?: Received[] }>(`${url}:pull`, {
    maxMessages: 100,
    returnImmediately: true,
  });
  if (ack && receivedMessages.length > 0) {
    await post(`${url}:acknowledge`, { ackIds: receivedMessages.map(({ ackId }) => ackId) });
  }
  return receivedMessages;
}

/** A push or a dispatch that was not answered with a success. */
const FAILED = /^\[(?:pubsub|tasks)\] .*(?: failed: | at attempt \d+)/m;

/**
 * On a busy machine a call of a program takes longer than its limit, and its repetition waits on the clock: what is not
 * there at its time may come later where the log has such a failure, and nowhere else.
 */
async function pullSoon(subscription: string): Promise<readonly Received[]> {
  let found = await pull(subscription);
  if (found.length === 0) assert.match(lines.join('\n'), FAILED, 'nothing says why it is late');
  for (let look = 0; look < 20 && found.length === 0; look += 1) {
    await stack.clock.advance(10 * SECOND_MS);
    found = await pull(subscription);
  }
  return found;
}

for (const [route, days] of [
  ['delay', 45],
  ['pipeline', 91],
] as const) {
  test(`a delay of ${days} days through ${route} arrives when it is due, not before`, async () => {
    await publish(`${route}-in`, { delay: String(days * 86_400) });
    await stack.clock.advance(days * DAY_MS - SECOND_MS);
    assert.deepEqual(await pull(`${route}-out-sub`), []);
    await stack.clock.advance(SECOND_MS);
    const [arrived, ...more] = await pullSoon(`${route}-out-sub`);
    assert.deepEqual(more, []);
    const attributes = arrived?.message.attributes ?? {};
    const due = Date.parse(attributes['originPublishTime'] ?? '') + days * DAY_MS;
    assert.ok(Date.parse(arrived?.message.publishTime ?? '') >= due);
    assert.equal(Date.parse(attributes['deliveredAfter'] ?? ''), due);
  });
}

test('a message that is not acknowledged comes again after its ack deadline', async () => {
  await publish('dedup-in', { case: 'deadline' });
  await stack.clock.advance(0);
  const [first] = await pull('dedup-out-sub', false);
  await stack.clock.advance(29 * SECOND_MS);
  assert.deepEqual(await pull('dedup-out-sub'), []);
  await stack.clock.advance(2 * SECOND_MS);
  const [second] = await pull('dedup-out-sub');
  assert.equal(second?.message.attributes?.['dedupId'], first?.message.attributes?.['dedupId']);
});

test('moving on does not end the leases of processes that merely had no time to renew', async () => {
  await publish('dedup-in', { case: 'lease', dedupId: 'lease' });
  await stack.clock.advance(10 * MINUTE_MS);
  await publish('dedup-in', { case: 'lease', dedupId: 'lease' });
  await stack.clock.advance(10 * MINUTE_MS);
  assert.equal((await pullSoon('dedup-out-sub')).length, 1);
});

test('a delay of 45 days arrives on a clock that was never frozen as well', async () => {
  stack.clock.resume();
  await publish('delay-in', { delay: String(45 * 86_400) });
  await stack.clock.advance(45 * DAY_MS + SECOND_MS);
  stack.clock.freeze();
  assert.equal((await pullSoon('delay-out-sub')).length, 1);
});

test('no move deletes a subscription of the topology, also one that a loaded state would let expire', async () => {
  const saved = stack.save() as unknown as { pubsub: { subscriptions: object[] } };
  const { subscriptions } = saved.pubsub;
  assert.equal(subscriptions.length, 10);
  for (const each of subscriptions) assert.deepEqual(Reflect.get(each, 'expirationPolicy'), {});
  const expiring = subscriptions.map((each) => ({ ...each, expirationPolicy: { ttl: '2678400s' } }));
  await stack.load({ ...saved, pubsub: { ...saved.pubsub, subscriptions: expiring } });
  await stack.clock.advance(365 * DAY_MS);
  assert.deepEqual((stack.save() as unknown as typeof saved).pubsub.subscriptions, subscriptions);
});

test('the clock is also moved over HTTP, and says what time it is', async () => {
  const url = `${stack.addresses.control}/clock`;
  type Time = { nowMs: number; now: string; frozen: boolean };
  const read = async (): Promise<Time> => (await (await fetch(url)).json()) as Time;
  const before = await read();
  assert.deepEqual([before.frozen, Date.parse(before.now)], [true, Math.floor(before.nowMs)]);
  const moved = await post<Time>(`${url}/advance`, { by: '10m' });
  assert.equal(moved.nowMs, before.nowMs + 10 * MINUTE_MS);
  assert.equal((await post<Time>(`${url}/resume`, {})).frozen, false);
  assert.equal((await post<Time>(`${url}/freeze`, {})).frozen, true);
  await post(`${url}/run-until-idle`, { limit: '1s' });
});

test('a length that is none is refused, naming it', async () => {
  for (const by of ['10', 10, '-1s', '1.5s', '100000d', undefined]) {
    const response = await fetch(`${stack.addresses.control}/clock/advance`, {
      method: 'POST',
      body: JSON.stringify({ by }),
    });
    assert.equal(response.status, 400);
    assert.match(await response.text(), /by is .*accepted: a whole number and a unit/);
  }
});

test('what else stands in the body is refused as well, and a move that would end behind all times', async () => {
  const ask = async (path: string, body: string) => {
    const response = await fetch(`${stack.addresses.control}/clock/${path}`, { method: 'POST', body });
    return `${response.status} ${((await response.json()) as { error: string }).error}`;
  };
  assert.equal(await ask('advance', '{"by":"1s","til":5}'), '400 til is not known; accepted: by');
  assert.equal(await ask('run-until-idle', '[]'), '400 the body is []; accepted: an object with limit');
  assert.equal(await ask('run-until-idle', '"1h"'), '400 the body is "1h"; accepted: an object with limit');
  await assert.rejects(stack.clock.advance(3e14), /would pass the beginning of the year 9999/);
});
