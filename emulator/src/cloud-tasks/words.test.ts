import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startFixture, type Fixture } from './fixture.ts';

let fixture: Fixture;
before(async () => {
  fixture = await startFixture();
  await fixture.client.createQueue({ parent: fixture.parent, queue: { name: fixture.queue } });
});
after(() => fixture?.close());

type Refused = Error &
  Readonly<{
    code: number;
    details: string;
    statusDetails?: readonly { links: { description: string; url: string }[] }[];
  }>;

const refusal = (call: Promise<unknown>): Promise<Refused> =>
  call.then(
    () => assert.fail('it was accepted'),
    (error: unknown) => error as Refused,
  );

test('settings out of range are refused in the words that the service was recorded with', async () => {
  const cases: readonly (readonly [settings: object, words: string])[] = [
    [{ rateLimits: { maxDispatchesPerSecond: -1 } }, 'RateLimits.maxDispatchesPerSecond cannot be negative.'],
    [
      { rateLimits: { maxDispatchesPerSecond: 500.5 } },
      'RateLimits.maxDispatchesPerSecond must be less than or equal to 500.',
    ],
    [
      { rateLimits: { maxConcurrentDispatches: -1 } },
      'RateLimits.maxConcurrentDispatches cannot be negative.',
    ],
    [
      { rateLimits: { maxConcurrentDispatches: 5001 } },
      'RateLimits.maxConcurrentDispatches must be less than or equal to 5000.',
    ],
    [{ retryConfig: { maxAttempts: -2 } }, 'RetryConfig.maxAttempts must be greater or equal to -1.'],
    [{ retryConfig: { maxDoublings: -1 } }, 'RetryConfig.maxDoublings cannot be negative.'],
    [{ retryConfig: { minBackoff: { seconds: -1 } } }, 'RetryConfig.minBackoff cannot be negative.'],
    [{ retryConfig: { maxBackoff: { seconds: -1 } } }, 'RetryConfig.maxBackoff cannot be negative.'],
    [
      { retryConfig: { maxRetryDuration: { nanos: -1 } } },
      'RetryConfig.maxRetryDuration cannot be negative.',
    ],
    [
      { retryConfig: { minBackoff: { seconds: 6 }, maxBackoff: { seconds: 5 } } },
      'RetryConfig.minBackoff must be less than or equal to RetryConfig.maxBackoff.',
    ],
  ];
  const { client, parent, queue: name } = fixture;
  for (const [settings, words] of cases) {
    const created = client.createQueue({ parent, queue: { name: `${parent}/queues/refused`, ...settings } });
    const updated = client.updateQueue({ queue: { name, ...settings } });
    for (const call of [created, updated]) {
      const { code, details } = await refusal(call);
      assert.deepEqual([code, details], [3, words]);
    }
  }
});

test('a malformed name comes with the description and the link of what it should be, over gRPC and REST', async () => {
  const { client, parent, queue, tasks } = fixture;
  const task = { httpRequest: { url: 'http://127.0.0.1/' } };
  const reference = 'https://cloud.google.com/tasks/docs/reference/rest/v2/projects.locations.queues';
  const queueLink = { description: 'Definition of queue name', url: `${reference}#Queue.FIELDS.name` };
  const taskLink = { description: 'Definition of task name', url: `${reference}.tasks#Task.FIELDS.name` };
  const idLink = { description: 'Definition of task ID', url: `${reference}.tasks#Task.FIELDS.name` };
  const cases: readonly (readonly [Promise<unknown>, object, RegExp])[] = [
    [
      client.createQueue({ parent, queue: { name: 'q' } }),
      queueLink,
      /^Queue name must be formatted: "projects\//,
    ],
    [client.getQueue({ name: 'q' }), queueLink, /^Queue name must be formatted: /],
    [
      client.createTask({ parent: queue, task: { ...task, name: 't' } }),
      taskLink,
      /^Task name must be formatted: /,
    ],
    [
      client.createTask({ parent: queue, task: { ...task, name: `${queue}/tasks/ä` } }),
      idLink,
      /^Task ID "ä" can contain/,
    ],
  ];
  for (const [call, link, words] of cases) {
    const { code, details, statusDetails } = await refusal(call);
    assert.equal(code, 3);
    assert.match(details, words);
    assert.deepEqual(
      statusDetails?.map(({ links }) => links.map((each) => ({ ...each }))),
      [[link]],
    );
  }
  const answer = await tasks.rest('GET', `/v2/${parent}/queues/a_b`, '', Buffer.alloc(0));
  assert.ok(answer !== undefined);
  assert.equal(answer.status, 400);
  const { error } = answer.body as { error: { details: unknown } };
  assert.deepEqual(error.details, [{ '@type': 'type.googleapis.com/google.rpc.Help', links: [queueLink] }]);
});

test('parents, deadlines and times out of range are refused in recorded words', async () => {
  const { client, parent, queue } = fixture;
  const httpRequest = { url: 'http://127.0.0.1/' };
  const appEngineHttpRequest = { relativeUri: '/' };
  const words = async (call: Promise<unknown>): Promise<string> => (await refusal(call)).details;
  assert.equal(
    await words(client.createQueue({ parent: 'projects/p', queue: { name: queue } })),
    'Invalid resource field value in the request.',
  );
  const elsewhere = 'projects/demo-project/locations/europe-west1/queues/q';
  assert.equal(
    await words(client.createQueue({ parent, queue: { name: elsewhere } })),
    `${elsewhere} must begin with ${parent}.`,
  );
  const dispatchDeadline = { seconds: 14 };
  assert.equal(
    await words(client.createTask({ parent: queue, task: { httpRequest, dispatchDeadline } })),
    'Task.dispatchDeadline must be between [15s, 30m].',
  );
  assert.equal(
    await words(client.createTask({ parent: queue, task: { appEngineHttpRequest, dispatchDeadline } })),
    'Task.dispatchDeadline must be between [15s, 24h15s].',
  );
  for (const [time, shown] of [
    ['2027-12-31T20:00:00Z', '2027-12-31T12:00:00-08:00'],
    ['2027-07-01T07:00:00Z', '2027-07-01T00:00:00-07:00'],
  ] as const) {
    const scheduleTime = { seconds: Date.parse(time) / 1000 };
    assert.equal(
      await words(client.createTask({ parent: queue, task: { httpRequest, scheduleTime } })),
      `The Task.scheduleTime, ${shown}, is too far in the future. Schedule time must be no more than 720h in the future.`,
    );
  }
});
