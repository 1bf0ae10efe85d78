/**
 * The commands of `sagas` as a process, on the local stack's servers, with an orchestrator that answers them. Each call is
 * made twice, because an operator may not see the first answer.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { startStack, until } from 'pubsub-guarantees-emulator';
import { readCommandLine } from '../../../shared/src/cli/command-line.ts';
import { CommandLineError } from '../../../shared/src/cli/usage.ts';
import { firestoreInbox } from '../../../shared/src/dedup/firestore.ts';
import { inbox } from '../../../shared/src/dedup/inbox.ts';
import { pubsubPublisher } from '../../../shared/src/publish/pubsub.ts';
import { receive } from '../../../shared/src/receive/pubsub.ts';
import { defineSaga } from '../../../shared/src/sagas/definition.ts';
import { firestoreSagas } from '../../../shared/src/sagas/firestore.ts';
import { orchestrator } from '../../../shared/src/sagas/orchestrator.ts';
import { sagas } from '../../../shared/src/sagas/sagas.ts';

const BIN = fileURLToPath(new URL('../../../shared/bin/pubsub-guarantees.js', import.meta.url));
const PROJECT = 'demo-project';
const TOPIC = `projects/${PROJECT}/topics/saga`;

/** Nothing answers its commands: the test sends the replies. */
const trip = defineSaga<{ city: string }>('trip', { version: 1 })
  .compensable('hotel', { topic: 'steps', do: (data) => data, undo: () => ({}), replyTimeout: '1h' })
  .pivot('flight', { topic: 'steps', do: (data) => data, replyTimeout: '1h' })
  .retriable('letter', { topic: 'steps', do: (data) => data, replyTimeout: '1h' });

suite('sagas on the local stack', () => {
  let stack: Awaited<ReturnType<typeof startStack>>;
  let env: NodeJS.ProcessEnv;
  const closers: (() => Promise<unknown>)[] = [];
  let publish: (saga: string, id: string, attributes: Record<string, string>) => Promise<unknown>;
  let seen: (id: string, step: string, status: string) => Promise<void>;

  before(async () => {
    stack = await startStack({ project: PROJECT });
    const { firestore: address, pubsub: pubsubAddress } = stack.addresses;
    env = {
      PATH: process.env['PATH'],
      METADATA_SERVER_DETECTION: 'none',
      FIRESTORE_EMULATOR_HOST: address,
      PUBSUB_EMULATOR_HOST: pubsubAddress,
      GOOGLE_CLOUD_PROJECT: PROJECT,
      CONSUMER: 'trips',
      SAGA_TOPIC: 'saga',
    };
    Object.assign(process.env, { ...env, PATH: process.env['PATH'] });
    const pubsub = new PubSub({ projectId: PROJECT });
    const firestore = new Firestore({ projectId: PROJECT });
    const publisher = pubsubPublisher(pubsub);
    await pubsub.createTopic('steps');
    const [topic] = await pubsub.createTopic('saga');
    const [subscription] = await topic.createSubscription('saga-sub');
    const store = firestoreSagas(firestore);
    const handle = inbox(firestoreInbox(firestore), { publisher })(
      orchestrator(store, [trip], { topic: TOPIC }),
    );
    const receiver = receive(subscription, handle, { consumer: 'trips' });
    closers.push(
      () => receiver.close(),
      () => publisher.close(),
      () => pubsub.close(),
      () => firestore.terminate(),
    );
    publish = (saga, id, attributes) =>
      publisher.publish({
        topic: TOPIC,
        data: Buffer.from('{"city":"Ulm"}'),
        attributes: { saga, sagaId: id, dedupId: JSON.stringify([id, attributes]), ...attributes },
      });
    const operator = sagas(store, { consumer: 'trips', topic: TOPIC, publisher });
    seen = async (id, step, status) => {
      let steps: unknown;
      await until(
        async () => {
          const view = await operator.inspect('trip', id);
          steps = view?.steps;
          return view?.steps.find(({ name }) => name === step)?.status === status;
        },
        () => `${step} of ${id} is ${status}: ${JSON.stringify(steps)}`,
      );
    };
  });
  after(async () => {
    for (const close of closers) await close();
    await stack.close();
  });

  const run = (...args: string[]): Promise<{ code: number; out: string; err: string }> =>
    new Promise((resolve) => {
      execFile(process.execPath, [BIN, 'sagas', ...args], { env, timeout: 240_000 }, (error, out, err) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1, out, err });
      });
    });
  const start = (id: string) => publish('trip', id, { sagaAction: 'start', sagaVersion: '1' });
  const reply = (id: string, step: string, sagaOutcome: string, more: Record<string, string> = {}) =>
    publish('trip', id, { sagaAction: 'do', sagaStep: step, sagaAttempt: '1', sagaOutcome, ...more });

  test('list and inspect show what is there; an unknown saga is one line', async () => {
    await start('t1');
    await seen('t1', 'hotel', 'doing');
    const list = await run('list', '--state', 'running', '--version', '1');
    assert.deepEqual([list.code, list.err], [0, '']);
    assert.match(list.out, /^SAGA +ID +VERSION +STATE +STARTED\ntrip +t1 +1 +running +20/);
    assert.equal((await run('list', '--saga', 'other')).out, 'no sagas\n');
    assert.equal((await run('list', '--older-than', '1h')).out, 'no sagas\n');
    const { code, out } = await run('inspect', 'trip', 't1');
    assert.equal(code, 0);
    assert.match(out, /^saga +trip, version 1\nid +t1\nstate +running\n/);
    assert.match(out, /\ndata +\{"city":"Ulm"\}\n/);
    assert.match(out, /\nhotel +compensable +doing +1 +20.*\nflight +pivot +idle +0\n/);
    const object = JSON.parse((await run('inspect', 'trip', 't1', '--json')).out) as { state: string };
    assert.equal(object.state, 'running');
    assert.deepEqual(await run('inspect', 'trip', 'none'), {
      code: 1,
      out: '',
      err: 'error: this consumer has no instance none of trip; accepted: one that sagas list shows (SAGA_INSTANCE_UNKNOWN)\n',
    });
  });

  test('cancel says what is certain, and says it again for the same call', async () => {
    await start('t2');
    await seen('t2', 'hotel', 'doing');
    const first = await run('cancel', 'trip', 't2', '--call', 'c1');
    assert.match(first.out, /^cancelling: it will be compensated, for certain \(--call c1\)\n$/);
    assert.deepEqual(await run('cancel', 'trip', 't2', '--call', 'c1'), first);
    await seen('t2', 'hotel', 'undoing');
    assert.equal((await run('cancel', 'trip', 'none', '--call', 'c2', '--wait', '1s')).code, 1);
  });

  test('retry sends again, settle accepts parked instances alone, and each call has one answer', async () => {
    await start('t3');
    await seen('t3', 'hotel', 'doing');
    const settle = (call: string) =>
      run(
        'settle',
        'trip',
        't3',
        'letter',
        'done',
        '--reason',
        'sent by hand',
        '--reply',
        '{}',
        '--call',
        call,
      );
    assert.match((await settle('s1')).out, /^notParked: /);
    await reply('t3', 'hotel', 'done');
    await seen('t3', 'flight', 'doing');
    const asked = await run('cancel', 'trip', 't3');
    assert.match(asked.out, /^asked: the pivot is in doubt/);
    await reply('t3', 'flight', 'done');
    await seen('t3', 'letter', 'doing');
    await reply('t3', 'letter', 'refused', { sagaCode: 'NO_STAMP' });
    for (let left = 40; !(await run('list', '--parked')).out.includes('t3'); left -= 1) assert.ok(left > 0);
    const parked = await run('list', '--parked');
    assert.match(parked.out, /\ntrip +t3 +1 +running, parked +\S+ +letter: .*NO_STAMP/);
    const retried = await run('retry', 'trip', 't3', '--call', 'r1');
    assert.match(retried.out, /^retried: every open command was sent again \(--call r1\)\n$/);
    assert.deepEqual(await run('retry', 'trip', 't3', '--call', 'r1'), retried);
    await reply('t3', 'letter', 'refused', { sagaCode: 'NO_STAMP', sagaAttempt: '2' });
    for (let left = 40; !(await run('list', '--parked')).out.includes('t3'); left -= 1) assert.ok(left > 0);
    const settled = await settle('s2');
    assert.match(settled.out, /^settled: /);
    assert.deepEqual(await settle('s2'), settled);
    assert.match((await run('list', '--state', 'completed')).out, /\ntrip +t3 +1 +completed/);
    assert.match((await run('cancel', 'trip', 't3')).out, /^tooLate: it will be completed/);
  });
});

test('a wrong command line is one line that names the option and what is accepted', () => {
  const environment = { GOOGLE_CLOUD_PROJECT: 'p', CONSUMER: 'trips' };
  const wrong: readonly (readonly [readonly string[], RegExp])[] = [
    [['sagas'], /accepted: list, inspect, cancel, retry, settle/],
    [['sagas', 'list', '--state', 'parked'], /--state is "parked"; accepted: running, compensating/],
    [['sagas', 'list', '--version', '0'], /--version is "0"/],
    [['sagas', 'list', '--older-than', '1'], /--older-than is "1"; accepted: a whole number with ms/],
    [['sagas', 'list', '--call', 'c'], /--call is no option of sagas list/],
    [['sagas', 'list', '--rate', '1'], /--rate is no option of sagas/],
    [['sagas', 'inspect', 'trip'], /accepted: sagas inspect SAGA ID/],
    [['sagas', 'cancel', 'trip', 't1'], /--topic is not given/],
    [['sagas', 'cancel', 'trip', 't1', '--topic', 'a/b'], /--topic is "a\/b"/],
    [['sagas', 'retry', 'trip', 't1', '--topic', 'saga', '--wait', 'long'], /--wait is "long"/],
    [['sagas', 'settle', 'trip', 't1', 's', 'lost', '--topic', 'saga'], /OUTCOME is "lost"; accepted: done/],
    [['sagas', 'settle', 'trip', 't1', 's', 'done', '--topic', 'saga'], /--reason is not given/],
    [
      ['sagas', 'settle', 'trip', 't1', 's', 'done', '--reason', 'r', '--reply', '{'],
      /--reply is "\{"; accepted: JSON/,
    ],
    [['sagas', 'settle', 'trip', 't1', 's', 'undone', '--reason', 'r', '--reply', '1'], /only with done/],
  ];
  for (const [args, message] of wrong)
    assert.throws(
      () => readCommandLine(args, environment),
      (error) => error instanceof CommandLineError && message.test(error.message),
      args.join(' '),
    );
  assert.throws(() => readCommandLine(['sagas', 'list'], { GOOGLE_CLOUD_PROJECT: 'p' }), /--consumer/);
});

test('the environment names the orchestrator, its topic and its collection', () => {
  const environment = {
    GOOGLE_CLOUD_PROJECT: 'p',
    CONSUMER: 'c',
    SAGA_TOPIC: 'saga',
    COLLECTION_PREFIX: 'shop',
  };
  const line = readCommandLine(['sagas', 'retry', 'trip', '--', '-1'], environment);
  assert.ok(line !== 'help' && line.area === 'sagas');
  assert.deepEqual(line.command, { kind: 'retry', saga: 'trip', id: '-1' });
  assert.deepEqual(
    [line.topic, line.collection, line.consumer, line.wait],
    ['projects/p/topics/saga', 'shop-sagas', 'c', '30s'],
  );
});
