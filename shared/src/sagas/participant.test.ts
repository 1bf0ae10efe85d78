import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PermanentError } from '../errors.ts';
import { aContext } from '../testing/deliveries.ts';
import { compose } from '../handler.ts';
import type { OutgoingMessage } from '../message.ts';
import { commandMessage, type Sending } from './messages.ts';
import { outsideParticipant, type OutsideStep, voided } from './outside-participant.ts';
import { done, participant, type ParticipantStep, refused, undone } from './participant.ts';
import { memoryGround } from '../testing/saga-ground.ts';
import { stage } from '../testing/saga-stage.ts';

const REF = { consumer: 'order-sagas', saga: 'order', id: 'i' };

function command(change: Partial<Sending> = {}, replyTo = 'saga'): OutgoingMessage {
  const sending: Sending = {
    step: 'credit',
    topic: 'credit',
    action: 'do',
    attempt: 1,
    kind: 'compensable',
    isKnown: false,
    body: '{"amount":5}',
    ...change,
  };
  return commandMessage(REF, sending, replyTo, 'cause');
}

type Said = Readonly<Record<string, string | undefined>>;

/** A participant of one step, its commands and what it says to them. */
function serving(step: ParticipantStep<never>) {
  const ground = memoryGround();
  const play = stage(ground, []);
  const handler = participant(ground.records, {
    replyTo: ['saga'],
    steps: { credit: step as ParticipantStep<unknown> as never },
  });
  play.handlers.set('credit', play.inInbox(handler));
  const ask = async (message: OutgoingMessage): Promise<string | Said> => {
    const reason = await play.copy(message, { dedupId: `d${Math.random()}` });
    const [reply] = play.posted.splice(0);
    if (reply === undefined) return reason;
    const { sagaOutcome, sagaCode } = reply.attributes;
    const data = Buffer.from(reply.data).toString();
    return {
      outcome: sagaOutcome,
      ...(sagaCode !== undefined && { code: sagaCode }),
      ...(data !== '' && { data }),
    };
  };
  return { ground, play, ask };
}

const UNDO = { action: 'undo', body: '{}' } as const;

test('what a step answers goes where its command says, with all that names it', async () => {
  const { play } = serving({ do: async () => done({ limit: 9 }) });
  await play.copy(command({ attempt: 3 }));
  const [reply] = play.posted;
  const { dedupId, causationId, ...attributes } = reply?.attributes ?? {};
  assert.match(dedupId ?? '', /^[\w-]{43}$/);
  assert.match(causationId ?? '', /^[\w-]{43}$/);
  assert.deepEqual(attributes, {
    saga: 'order',
    sagaId: 'i',
    sagaAction: 'do',
    sagaStep: 'credit',
    sagaAttempt: '3',
    sagaOutcome: 'done',
    correlationId: 'order/i',
  });
  assert.equal(Buffer.from(reply?.data ?? '').toString(), '{"limit":9}');
});

test('a refusal drops the writes of the handler, and is said again', async () => {
  let runs = 0;
  const { ground, ask } = serving({
    async do(_body, { transaction, afterCommit }) {
      runs += 1;
      ground.set(transaction, 'account', 1);
      afterCommit(() => assert.fail('its writes were not committed'));
      return refused('LIMIT');
    },
  });
  for (const attempt of [1, 2])
    assert.deepEqual(await ask(command({ attempt })), { outcome: 'refused', code: 'LIMIT' });
  assert.deepEqual([runs, await ground.read('account')], [1, 0]);
});

test('what a step wants after its commit is called once, however often its command comes', async () => {
  const called: string[] = [];
  const { ask } = serving({
    async do(_body, { afterCommit, saga }) {
      afterCommit(() => called.push(saga.step));
      return done();
    },
  });
  for (const attempt of [1, 2]) assert.deepEqual(await ask(command({ attempt })), { outcome: 'done' });
  assert.deepEqual(called, ['credit']);
});

test('a refusal of a retriable step is not remembered, and its handler is asked again', async () => {
  let runs = 0;
  const { ask } = serving({ do: async () => ((runs += 1) === 1 ? refused('LATER') : done()) });
  assert.deepEqual(await ask(command({ kind: 'retriable' })), { outcome: 'refused', code: 'LATER' });
  assert.deepEqual(await ask(command({ kind: 'retriable', attempt: 2 })), { outcome: 'done' });
});

test('what was done by the starting transaction is undone once, without a record before', async () => {
  let runs = 0;
  const { ask } = serving({
    async undo() {
      runs += 1;
      return undone({ was: 5 });
    },
  });
  const undo = { ...UNDO, kind: 'begun', isKnown: true } as const;
  for (const attempt of [1, 2])
    assert.deepEqual(await ask(command({ ...undo, attempt })), { outcome: 'undone', data: '{"was":5}' });
  assert.equal(runs, 1);
});

test('a body is what the saga made, and the step is named for services that are idempotent by key', async () => {
  const seen: unknown[] = [];
  const { ask } = serving({
    async do(body, { saga }) {
      seen.push(body, saga);
      return done();
    },
  });
  await ask(command());
  const key = 'order/i/credit';
  assert.deepEqual(seen, [{ amount: 5 }, { saga: 'order', id: 'i', step: 'credit', attempt: 1, key }]);
});

test('a command that wants its reply elsewhere is a dead letter, before anything runs', async () => {
  let runs = 0;
  const { ask } = serving({ do: async () => done((runs += 1)) });
  assert.equal(await ask(command({}, 'projects/other/topics/saga')), 'deadLetter SAGA_REPLY_TOPIC_REFUSED');
  assert.equal(runs, 0);
});

test('a step that it does not have, or an action of it, is a retry: another deployment may have it', async () => {
  const { ask } = serving({ do: async () => done() });
  assert.equal(await ask(command({ step: 'other' })), 'retry SAGA_STEP_UNKNOWN');
  await ask(command());
  assert.equal(await ask(command(UNDO)), 'retry SAGA_STEP_UNKNOWN');
});

test('a handler that throws, or answers nothing, has done nothing', async () => {
  const cases: readonly (readonly [() => Promise<never>, string])[] = [
    [async () => Promise.reject(new Error('down')), 'retry Error'],
    [async () => Promise.reject(new PermanentError('BAD', 'never')), 'deadLetter BAD'],
    [async () => undefined as never, 'retry NO_OUTCOME'],
    [async () => undone() as never, 'retry NO_OUTCOME'],
  ];
  for (const [run, reason] of cases) {
    const { ask } = serving({ do: run });
    assert.equal(await ask(command()), reason);
  }
});

test('a message that is no command is a dead letter that names the attribute', async () => {
  const { ask } = serving({ do: async () => done() });
  const message = command();
  for (const [name, value] of [
    ['sagaAction', 'start'],
    ['sagaKind', 'other'],
    ['sagaKnown', 'false'],
    ['sagaAttempt', '0'],
    ['sagaId', ''],
    ['sagaStep', '\ud800'],
    ['replyTo', ''],
  ] as const) {
    const wrong = { ...message, attributes: { ...message.attributes, [name]: value } };
    assert.equal(await ask(wrong), 'deadLetter INVALID_ATTRIBUTE', name);
  }
  assert.equal(await ask({ ...message, data: Buffer.from('{') }), 'deadLetter INVALID_DATA');
});

/** A service that is idempotent by key, and what is asked of it. */
function outside(step: OutsideStep) {
  const { records } = memoryGround();
  const handler = compose(outsideParticipant(records, { replyTo: ['saga'], steps: { charge: step } }), []);
  const ask = async (change: Partial<Sending>): Promise<string> => {
    const { data, attributes } = command({ step: 'charge', kind: 'pivot', ...change });
    const message = { id: '1', data: Buffer.from(data), attributes, publishTime: new Date(0) };
    const clock = { now: () => 0, monotonic: () => 0, after: () => () => {} };
    const outcome = await handler(message, aContext(clock));
    if (outcome.kind !== 'ack') return outcome.kind;
    return outcome.publish?.[0]?.attributes['sagaOutcome'] ?? 'nothing';
  };
  return { records, ask };
}

test('S14: that a call is being made is committed before it, and it is repeated by its key', async () => {
  const keys: string[] = [];
  let dies = true;
  const { ask } = outside({
    async call(body, { saga }) {
      keys.push(saga.key);
      assert.deepEqual(body, { amount: 5 });
      if (dies) throw new Error('died');
      return done();
    },
  });
  assert.equal(await ask({}), 'retry');
  dies = false;
  assert.equal(await ask({ action: 'withdraw', body: '' }), 'done', 'the withdrawal has asked');
  assert.equal(await ask({ attempt: 2 }), 'done');
  assert.deepEqual(keys, ['order/i/charge', 'order/i/charge']);
});

test('S14: an undo of a call in doubt asks until the answer is definite, and takes back what stands', async () => {
  const seen: string[] = [];
  let dies = true;
  const { ask } = outside({
    async call(_body, { saga }) {
      seen.push(`call ${saga.key}`);
      if (dies) throw new Error('died');
      return done();
    },
    async refund(_body, { saga }) {
      seen.push(`refund ${saga.key}`);
      if (dies) throw new Error('died');
      return undone();
    },
  });
  const undo = { ...UNDO, kind: 'compensable' } as const;
  assert.equal(await ask({ kind: 'compensable' }), 'retry');
  assert.equal(await ask(undo), 'retry');
  dies = false;
  assert.equal(await ask(undo), 'undone');
  assert.equal(await ask({ ...undo, attempt: 2 }), 'undone');
  assert.equal(await ask({ kind: 'compensable', attempt: 2 }), 'cancelled');
  const call = 'call order/i/charge';
  assert.deepEqual(seen, [call, call, call, 'refund order/i/charge/undo']);
});

test('S14: a refund whose process died is made again by its own key', async () => {
  let refunds = 0;
  const { ask } = outside({
    call: async () => done(),
    async refund() {
      refunds += 1;
      if (refunds === 1) throw new Error('died');
      return undone();
    },
  });
  const undo = { ...UNDO, kind: 'compensable', isKnown: true } as const;
  await ask({ kind: 'compensable' });
  assert.equal(await ask(undo), 'retry');
  assert.equal(await ask({ kind: 'compensable', attempt: 2 }), 'cancelled', 'it is being taken back');
  assert.equal(await ask(undo), 'undone');
  assert.equal(refunds, 2);
});

test('S14: a call that is withdrawn before it came is never made', async () => {
  let calls = 0;
  const { ask } = outside({ call: async () => done((calls += 1)) });
  assert.equal(await ask({ action: 'withdraw', body: '' }), 'withdrawn');
  assert.equal(await ask({}), 'cancelled');
  assert.equal(calls, 0);
});

test('S14: what the service refused, or made void, is withdrawn', async () => {
  for (const [said, first, then] of [
    [refused('DECLINED'), 'refused', 'withdrawn'],
    [voided(), 'cancelled', 'withdrawn'],
  ] as const) {
    const { ask } = outside({ call: async () => said });
    assert.equal(await ask({}), first);
    assert.equal(await ask({ action: 'withdraw', body: '' }), then);
    assert.equal(await ask({ attempt: 2 }), first);
  }
});

test('S14: two deliveries of a command at once make one record', async () => {
  const waiting: (() => void)[] = [];
  const { ask } = outside({
    call: () => new Promise((resolve) => void waiting.push(() => resolve(done({ receipt: 1 })))),
  });
  const asked = [ask({}), ask({ attempt: 2 })];
  while (waiting.length < 2) await new Promise((resolve) => setImmediate(resolve));
  for (const answer of waiting) answer();
  assert.deepEqual(await Promise.all(asked), ['done', 'done']);
});

test('S18: of a step that is known to be done a missing record is no tombstone', async () => {
  const { ask } = outside({ call: async () => done(), refund: async () => undone() });
  const undo = { ...UNDO, kind: 'compensable' } as const;
  assert.equal(await ask({ ...undo, isKnown: true }), 'missing');
  assert.equal(await ask(undo), 'undone');
});
