import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualClock } from '../manual-clock.ts';
import { answerFaults, createFaults, type Faults } from './index.ts';

const ask = async (faults: Faults, method: string, path: string, body = '', query = '') => {
  const answer = await answerFaults(faults, method, path, query, Buffer.from(body));
  assert.ok(answer);
  return answer as { status: number; body: Record<string, unknown> };
};

test('sets a plan, counts how often its rules fired, shows what was injected, and removes all of it', async () => {
  const faults = createFaults();
  const detach = faults.attach('pubsub', {
    clock: manualClock(5_000),
    restart: async () => {},
    up: async () => {},
  });
  const plan = {
    seed: 3,
    rules: [{ service: 'pubsub', method: 'Pull', nth: [1, 2], action: { type: 'fail' } }],
  };
  assert.equal((await ask(faults, 'POST', '/faults', JSON.stringify(plan))).status, 200);
  for (let n = 0; n < 3; n += 1) faults.decide('pubsub', 'Pull', 's');
  assert.deepEqual(await ask(faults, 'GET', '/faults'), {
    status: 200,
    body: { seed: 3, rules: [{ ...plan.rules[0], resource: '*', fired: 2 }], recorded: 2, dropped: 0 },
  });
  const record = { timeMs: 5_000, service: 'pubsub', method: 'Pull', resource: 's', rule: 0, action: 'fail' };
  const [first, second] = [1, 2].map((n) => ({ sequence: n, ...record, n }));
  const log = (query: string) => ask(faults, 'GET', '/log', '', query);
  assert.deepEqual((await log('')).body, { records: [first, second], left: 0, dropped: 0 });
  assert.deepEqual((await log('limit=1')).body, { records: [first], left: 1, dropped: 0 });
  assert.deepEqual((await log('after=1&service=pubsub&method=Pull')).body['records'], [second]);
  assert.deepEqual((await log('service=tasks')).body['records'], []);
  assert.deepEqual((await ask(faults, 'DELETE', '/faults')).body, {
    seed: 0,
    rules: [],
    recorded: 0,
    dropped: 0,
  });
  assert.deepEqual((await log('')).body['records'], []);
  detach();
});

test('restarts a service at once, and records it', async () => {
  const faults = createFaults();
  const seen: object[] = [];
  faults.attach('tasks', {
    clock: manualClock(0),
    restart: async (spec) => void seen.push(spec),
    up: async () => {},
  });
  const answer = await ask(
    faults,
    'POST',
    '/faults/restart',
    '{"service":"tasks","state":"lost","downMs":5}',
  );
  assert.deepEqual(answer, { status: 200, body: { service: 'tasks', state: 'lost', downMs: 5 } });
  assert.deepEqual(seen, [{ state: 'lost', downMs: 5 }]);
  assert.deepEqual(faults.log(), [
    {
      sequence: 1,
      timeMs: 0,
      service: 'tasks',
      method: 'restart',
      resource: '',
      n: 0,
      rule: null,
      action: 'restart',
    },
  ]);
});

test('answers 400 with one line for what it does not understand, and leaves other paths alone', async () => {
  const faults = createFaults();
  const wrong: readonly (readonly [string, string, string, string, number, string])[] = [
    ['POST', '/faults', '{', '', 400, 'the body is not JSON'],
    [
      'POST',
      '/faults',
      '{"rules":[{}]}',
      '',
      400,
      'rules[0].service is missing; accepted: pubsub, firestore, tasks',
    ],
    ['POST', '/faults/restart', '{}', '', 400, 'service is missing; accepted: pubsub, firestore, tasks'],
    ['POST', '/faults/restart', '{"service":"tasks"}', '', 400, 'state is missing; accepted: kept, lost'],
    [
      'POST',
      '/faults/restart',
      '{"service":"tasks","state":"kept"}',
      '',
      400,
      'service is "tasks", which does not run here',
    ],
    ['GET', '/log', '', 'limit=0', 400, 'limit is 0; accepted: a whole number from 1 to 100000'],
    ['GET', '/log', '', 'after=x', 400, 'after is "x"; accepted: a whole number from 0 to 9007199254740991'],
    ['GET', '/log', '', 'service=x', 400, 'service is "x"; accepted: pubsub, firestore, tasks'],
    ['GET', '/log', '', 'resource=x', 400, 'resource is not known; accepted: service, method, after, limit'],
    ['PUT', '/faults', '', '', 405, 'method PUT on /faults; accepted: GET, POST, DELETE'],
    ['GET', '/faults/restart', '', '', 405, 'method GET on /faults/restart; accepted: POST'],
    ['POST', '/log', '', '', 405, 'method POST on /log; accepted: GET'],
  ];
  for (const [method, path, body, query, status, error] of wrong) {
    assert.deepEqual(await ask(faults, method, path, body, query), { status, body: { error } });
  }
  assert.equal(answerFaults(faults, 'GET', '/state', '', Buffer.alloc(0)), undefined);
});
