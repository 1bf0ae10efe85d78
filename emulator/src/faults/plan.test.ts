import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Call, fires, wildcard } from './decide.ts';
import { createFaults, type Rule } from './index.ts';
import { createRecords } from './record.ts';

const FAIL = { type: 'fail', code: 'UNAVAILABLE' };
const publish = (more: object, action: object = FAIL): object => ({
  rules: [{ service: 'pubsub', method: 'Publish', action, ...more }],
});

/** What is wrong, and the whole message. */
const WRONG: readonly (readonly [unknown, string])[] = [
  [undefined, 'the plan is missing; accepted: an object'],
  [[], 'the plan is []; accepted: an object'],
  [{ sed: 7 }, 'sed is not known; accepted: seed, rules'],
  [{ seed: 0.5 }, 'seed is 0.5; accepted: a whole number from -9007199254740991 to 9007199254740991'],
  [{ rules: {} }, 'rules is {}; accepted: a list'],
  [{ rules: ['fail'] }, 'rules[0] is "fail"; accepted: an object'],
  [{ rules: [{}] }, 'rules[0].service is missing; accepted: pubsub, firestore, tasks'],
  [
    publish({ metod: 'x' }),
    'rules[0].metod is not known; accepted: service, method, resource, nth, share, times, action',
  ],
  [publish({ resource: '' }), 'rules[0].resource is ""; accepted: a text'],
  [publish({ nth: 0 }), 'rules[0].nth is 0; accepted: a whole number from 1 to 1000000000'],
  [publish({ nth: [] }), 'rules[0].nth is []; accepted: a number or a list of numbers'],
  [publish({ nth: [1, '2'] }), 'rules[0].nth[1] is "2"; accepted: a whole number from 1 to 1000000000'],
  [publish({ share: 3 }), 'rules[0].share is 3; accepted: above 0 to 1'],
  [publish({ share: 0 }), 'rules[0].share is 0; accepted: above 0 to 1'],
  [
    publish({ nth: 1, share: 0.5 }),
    'rules[0] has both nth and share; accepted: one of them, or none for every call',
  ],
  [publish({ times: 0 }), 'rules[0].times is 0; accepted: a whole number from 1 to 1000000000'],
  [
    publish({}, { type: 'explode' }),
    /^rules\[0\]\.action\.type is "explode"; accepted: fail, .*restart$/,
  ] as never,
  [publish({ action: undefined }), 'rules[0].action is missing; accepted: an object'],
  [
    publish({}, { type: 'reorder', window: 2 }),
    'rules[0].action.type is "reorder"; accepted: with Publish of pubsub: fail, lose-reply, delay, cut, restart, duplicate',
  ],
  [publish({}, { ...FAIL, status: 500 }), 'rules[0].action.status is not known; accepted: code, message'],
  [
    publish({}, { type: 'fail', code: 'OK' }),
    /^rules\[0\]\.action\.code is "OK"; accepted: CANCELLED, /,
  ] as never,
  [
    publish({}, { type: 'delay' }),
    'rules[0].action.ms is missing; accepted: a whole number from 1 to 2147483647',
  ],
  [publish({}, { type: 'duplicate', n: 2 }), 'rules[0].action.n is not known; accepted: no fields'],
  [publish({}, { type: 'cut', when: 'soon' }), 'rules[0].action.when is "soon"; accepted: before, after'],
  [
    publish({}, { type: 'cut', afterMessages: 1 }),
    'rules[0].action.afterMessages is not known; accepted: when',
  ],
  [publish({}, { type: 'restart', state: 'gone' }), 'rules[0].action.state is "gone"; accepted: kept, lost'],
  [
    publish({ method: 'StreamingPull' }, { type: 'lose-reply' }),
    'rules[0].action.type is "lose-reply"; accepted: with StreamingPull of pubsub: fail, delay, cut, restart',
  ],
  [
    publish({ method: 'Acknowledge' }, { type: 'duplicate' }),
    /^rules\[0\]\.action\.type is "duplicate"; accepted: with Acknowledge .*, drop-ack$/,
  ] as never,
  [
    publish({ method: 'deliver' }, FAIL),
    'rules[0].action.type is "fail"; accepted: with deliver of pubsub: delay, duplicate, reorder',
  ],
  [
    publish({ method: 'push' }, { type: 'fail', status: 200 }),
    'rules[0].action.status is 200; accepted: a whole number from 300 to 599',
  ],
  [
    publish({ method: '*' }, { type: 'reorder', window: 2 }),
    'rules[0].action.type is "reorder"; accepted: with the method deliver only',
  ],
  [
    publish({ method: '*' }, { ...FAIL, status: 500 }),
    'rules[0].action.status is not known; accepted: code, message',
  ],
  [
    { rules: [{ service: 'tasks', action: { type: 'drop-ack' } }] },
    'rules[0].action.type is "drop-ack"; accepted: not with tasks',
  ],
  [
    { rules: [{ service: 'firestore', method: 'commit', action: FAIL }] },
    /^rules\[0\]\.method is "commit"; accepted: \*, GetDocument, /,
  ] as never,
];

test('a wrong plan is refused with its place, in one line, and the plan before it stays', () => {
  const faults = createFaults();
  faults.set(publish({ nth: 2 }));
  const before = faults.plan();
  for (const [plan, message] of WRONG) {
    assert.throws(
      () => faults.set(plan),
      (error: Error) => {
        if (typeof message === 'string') assert.equal(error.message, message);
        else assert.match(error.message, message);
        assert.ok(!error.message.includes('\n'));
        return true;
      },
    );
  }
  assert.equal(faults.plan(), before);
});

test('a plan reads back as one that can be set again', () => {
  const faults = createFaults();
  faults.set({
    seed: 7,
    rules: [
      {
        service: 'pubsub',
        method: 'deliver',
        action: { type: 'reorder', window: 3, atMostMs: 50 },
        share: 0.5,
      },
      { service: 'tasks', method: 'dispatch', nth: 3, action: { type: 'fail', status: 503 } },
      { service: 'firestore', times: 2, action: { type: 'restart', state: 'kept', downMs: 10 } },
    ],
  });
  const plan = faults.plan();
  faults.set(JSON.parse(JSON.stringify(plan)));
  assert.deepEqual(faults.plan(), plan);
  assert.deepEqual(plan.rules[1]?.nth, [3]);
  faults.clear();
  assert.deepEqual(faults.plan(), { seed: 0, rules: [] });
});

test('the first rule that fires decides, each resource is counted by itself, and times bounds each of them', () => {
  const faults = createFaults();
  faults.set({
    rules: [
      { service: 'pubsub', method: 'Publish', resource: 'projects/*/topics/a*', nth: [1, 3], action: FAIL },
      {
        service: 'pubsub',
        method: 'Publish',
        resource: '*/topics/ab',
        times: 2,
        action: { type: 'delay', ms: 1 },
      },
    ],
  });
  const seen = (topic: string, calls: number): string =>
    Array.from(
      { length: calls },
      () => faults.decide('pubsub', 'Publish', `projects/p/topics/${topic}`)?.rule ?? '-',
    ).join('');
  assert.equal(seen('ab', 6), '0101--');
  assert.equal(seen('ax', 4), '0-0-');
  assert.equal(seen('b', 2), '--');
  assert.equal(faults.decide('pubsub', 'Pull', 'projects/p/topics/ab'), undefined);
  assert.deepEqual(faults.fired(), [4, 2]);
  const records = faults.log();
  assert.deepEqual(records.map(({ sequence, n, rule, action }) => [sequence, n, rule, action]).slice(0, 4), [
    [1, 1, 0, 'fail'],
    [2, 2, 1, 'delay'],
    [3, 3, 0, 'fail'],
    [4, 4, 1, 'delay'],
  ]);
  faults.set(faults.plan());
  assert.equal(seen('ab', 1), '0', 'a plan counts anew');
});

test('a star stands for the RPCs that the action fits, and for nothing that the server does by itself', () => {
  const faults = createFaults();
  faults.set({ rules: [{ service: 'pubsub', action: { type: 'cut', when: 'after' } }] });
  assert.ok(faults.concern('pubsub', 'Publish'));
  for (const method of ['StreamingPull', 'deliver', 'push']) assert.ok(!faults.concern('pubsub', method));
  faults.set({ rules: [{ service: 'pubsub', action: { type: 'drop-ack' } }] });
  assert.ok(faults.concern('pubsub', 'Acknowledge') && !faults.concern('pubsub', 'Publish'));
  assert.ok(!faults.concern('firestore', 'Commit'));
});

test('what a service does not do is recorded as skipped, and counts as no injection', () => {
  const faults = createFaults();
  faults.set({
    rules: [{ service: 'pubsub', method: 'Acknowledge', times: 1, action: { type: 'drop-ack' } }],
  });
  assert.equal(faults.decide('pubsub', 'Acknowledge', 's', { skip: () => 'it is promised' }), undefined);
  assert.equal(faults.log()[0]?.skipped, 'it is promised');
  assert.deepEqual(faults.fired(), [0]);
  assert.equal(faults.decide('pubsub', 'Acknowledge', 's', { only: 'fail' }), undefined);
  assert.equal(faults.decide('pubsub', 'Acknowledge', 's')?.n, 3);
});

const rule = (share: number): Rule => ({
  service: 'pubsub',
  method: 'Publish',
  resource: '*',
  share,
  action: { type: 'duplicate' },
});
const hits = (seed: number, share: number, resource = 't', index = 0): readonly number[] =>
  Array.from({ length: 1_000 }, (_, i) => i + 1).filter((n) => {
    const call: Call = { service: 'pubsub', method: 'Publish', resource, n };
    return fires(seed, index, rule(share), call);
  });

test('a share of 0.2 is near a fifth of 1,000 calls, for every seed', () => {
  for (let seed = 0; seed < 50; seed += 1) {
    const { length } = hits(seed, 0.2);
    // Four standard deviations of a fair draw: 4 * sqrt(1000 * 0.2 * 0.8) = 51.
    assert.ok(Math.abs(length - 200) <= 51, `seed ${seed}: ${length}`);
  }
  assert.equal(hits(1, 1).length, 1_000);
});

test('another seed, another resource and another rule hit other calls; the same ones hit the same', () => {
  assert.deepEqual(hits(7, 0.2), hits(7, 0.2));
  for (const other of [hits(8, 0.2), hits(-7, 0.2), hits(7, 0.2, 'u'), hits(7, 0.2, 't', 1)]) {
    assert.notDeepEqual(other, hits(7, 0.2));
  }
});

test('records are bounded, and the count says how many are gone', () => {
  const records = createRecords(10);
  const one = { timeMs: 0, service: 'pubsub', method: 'm', resource: 'r', rule: 0, action: 'fail' } as const;
  for (let n = 1; n <= 35; n += 1) records.add({ ...one, n });
  assert.deepEqual(
    records.all().map(({ sequence }) => sequence),
    [26, 27, 28, 29, 30, 31, 32, 33, 34, 35],
  );
  assert.equal(records.dropped(), 25);
  records.clear();
  assert.deepEqual([records.all(), records.dropped()], [[], 0]);
});

test('a star stands for any characters, however many stars there are', () => {
  const fits: readonly (readonly [pattern: string, resource: string, fits: boolean])[] = [
    ['*', '', true],
    ['**', 'a', true],
    ['a', 'a', true],
    ['a', 'aa', false],
    ['a*', 'a', true],
    ['*a', 'ba', true],
    ['a*a', 'a', false],
    ['a*a', 'aa', true],
    ['a*b*a', 'aba', true],
    ['a*b*a', 'aca', false],
    ['*ab*ab', 'abab', true],
    ['*ab*ab', 'abxb', false],
    ['*/topics/*-mail', 'projects/p/topics/e-mail', true],
    ['*.*', 'ab', false],
    ['a*', 'a\nb', true],
    [`${'*a'.repeat(30)}*b`, 'a'.repeat(10_000), false],
  ];
  for (const [pattern, resource, expected] of fits) {
    assert.equal(
      wildcard(pattern)(resource),
      expected,
      `${pattern.slice(0, 20)} on ${resource.slice(0, 20)}`,
    );
  }
});
