/**
 * The command as a process, on the local stack's servers.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { startStack } from 'pubsub-guarantees-emulator';
import { systemClock } from '../../shared/src/clock.ts';
import { readCommandLine } from '../../shared/src/cli/command-line.ts';
import { runStreams } from '../../shared/src/cli/run-streams.ts';
import { CommandLineError } from '../../shared/src/cli/usage.ts';
import { PermanentError } from '../../shared/src/errors.ts';
import { compose } from '../../shared/src/handler.ts';
import { silent } from '../../shared/src/log.ts';
import type { Message } from '../../shared/src/message.ts';
import { deadLetter } from '../../shared/src/outcome.ts';
import { firestoreStreams } from '../../shared/src/order/firestore.ts';
import { orderedDelivery } from '../../shared/src/order/in-order.ts';
import { memoryStreams } from '../../shared/src/order/memory.ts';
import { freshStream } from '../../shared/src/order/stream-state.ts';
import { CONSUMER, made, patchOf } from '../../shared/src/testing/stream-samples.ts';

const messageOf = (number: number): Message => ({
  id: `k-${number}`,
  data: Buffer.from('a'),
  attributes: { sequence: String(number), sequenceKey: 'k' },
  publishTime: new Date(0),
});

const BIN = fileURLToPath(new URL('../../shared/bin/pubsub-guarantees.js', import.meta.url));
const PROJECT = 'demo-project';

suite('the command on the local stack', () => {
  let stack: Awaited<ReturnType<typeof startStack>>;
  let env: NodeJS.ProcessEnv;
  before(async () => {
    stack = await startStack({ project: PROJECT });
    const { firestore, pubsub } = stack.addresses;
    env = {
      PATH: process.env['PATH'],
      METADATA_SERVER_DETECTION: 'none',
      FIRESTORE_EMULATOR_HOST: firestore,
      PUBSUB_EMULATOR_HOST: pubsub,
      GOOGLE_CLOUD_PROJECT: PROJECT,
      CONSUMER: 'fifo',
    };
    Object.assign(process.env, { ...env, PATH: process.env['PATH'] });
  });
  after(() => stack.close());

  const run = (...args: string[]): Promise<{ code: number; out: string; err: string }> =>
    new Promise((resolve) => {
      execFile(process.execPath, [BIN, ...args], { env, timeout: 240_000 }, (error, out, err) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1, out, err });
      });
    });

  test('shows, resumes and skips a blocked stream, with its dead letter', async () => {
    const firestore = new Firestore({ projectId: PROJECT });
    const pubsub = new PubSub({ projectId: PROJECT });
    const [topic] = await pubsub.createTopic('dead-letters');
    const [subscription] = await topic.createSubscription('dead');
    const store = firestoreStreams(firestore);
    const streams = orderedDelivery(store);
    const chain = compose(
      async () => deadLetter(new PermanentError('BAD', 'never\u001b[2J')),
      [streams.middleware],
    );
    const SOURCE = 'projects/demo-project/subscriptions/s';
    const context = {
      consumer: 'fifo',
      source: SOURCE,
      now: Date.now,
      deadline: performance.now() + 60_000,
      signal: new AbortController().signal,
      log: silent,
    };
    for (const number of [1, 2, 3]) await chain(messageOf(number), context);
    const of = ['--source', SOURCE];

    const list = await run('streams', 'list', '--state', 'blocked');
    assert.match(
      list.out,
      /^KEY .*\nk +projects\/demo-project\/subscriptions\/s +blocked +0 +3 +1 +poison 1: BAD since 2/,
      list.err,
    );
    const ref = { consumer: 'fifo', source: SOURCE, key: 'k' };
    const { lines } = await runStreams(streams, ref, { kind: 'inspect', key: 'k' });
    assert.match(lines.join('\n'), /\nheld {10}3, the first is 1\npoison {8}1: BAD: never\\u001b\[2J \(/);
    assert.deepEqual(await run('streams', 'resume', 'k', ...of), {
      code: 0,
      out: 'resumed: the next sweep goes on with it\n',
      err: '',
    });
    await assert.rejects(streams.skip(ref, 1), { code: 'NUMBER_HELD' });

    const blocked = { code: 'BAD', text: 'again', atMs: Date.now() };
    const { version, state: before = freshStream(1) } = await store.read(ref);
    const patch = patchOf({ blocked, readyAt: null });
    await store.commit(ref, { version, state: before }, { patch });
    const to = ['--dead-letter-topic', 'dead-letters', '--json'];
    const skipped = await run('streams', 'skip', 'k', '1', ...of, ...to);
    assert.deepEqual([skipped.out, skipped.err], ['{"key":"k","number":1,"skipped":true}\n', '']);
    const { state } = await store.read(ref);
    assert.deepEqual([state?.last, state?.blocked, await store.countHeld(ref)], [1, null, 2]);
    const letter = await new Promise<{ attributes: Record<string, string> }>((resolve) => {
      subscription.once('message', resolve);
    });
    assert.deepEqual([letter.attributes['sequence'], letter.attributes['deadLetterReason']], ['1', 'BAD']);
    await subscription.close();
    await pubsub.close();
    await firestore.terminate();
  });

  test('an error is one line, with an exit code that tells a wrong command from a failed one', async () => {
    const unknown = await run('streams', 'inspect', 'unknown', '--source', 's');
    assert.deepEqual([unknown.code, unknown.out], [1, '']);
    assert.match(unknown.err, /^error: .*\(STREAM_UNKNOWN\)\n$/);
    const wrong = await run('streams', 'skip', 'k');
    assert.deepEqual([wrong.code, wrong.out, wrong.err.split('\n').length], [2, '', 2]);
  });
});

test('an unreachable Firestore is one line as well, without what its client prints when it is closed', async () => {
  const env = {
    PATH: process.env['PATH'],
    METADATA_SERVER_DETECTION: 'none',
    FIRESTORE_EMULATOR_HOST: '127.0.0.1:1',
    GOOGLE_CLOUD_PROJECT: PROJECT,
    CONSUMER: 'fifo',
  };
  const [code, err] = await new Promise<[unknown, string]>((resolve) => {
    execFile(process.execPath, [BIN, 'streams', 'list'], { env, timeout: 240_000 }, (error, _, text) => {
      resolve([error?.code, text]);
    });
  });
  assert.equal(code, 1);
  assert.match(err, /^error: Firestore: no answer .*\(STORE_UNAVAILABLE\)\n$/);
});

test('a command line is refused by the name of what is wrong', () => {
  const environment = { GOOGLE_CLOUD_PROJECT: 'p', CONSUMER: 'c' };
  const refused: [readonly string[], RegExp][] = [
    [[], /the command is ""/],
    [['streams'], /accepted: list, inspect, resume, skip/],
    [['streams', 'list', '--state', 'sad'], /--state is "sad"/],
    [['streams', 'list', 'k'], /accepted: streams list/],
    [['streams', 'inspect', 'k'], /--source is not given; accepted: .* or --scope consumer/],
    [['streams', 'inspect', 'k', '--scope', 'topic'], /--scope is "topic"; accepted: source, consumer/],
    [['orders', 'list'], /the command is "orders"; accepted: streams, sagas, jobs, outbox/],
    [['streams', 'inspect'], /accepted: streams inspect KEY/],
    [['streams', 'inspect', ''], /accepted: streams inspect KEY/],
    [['streams', 'skip', 'k', '0'], /NUMBER is "0"/],
    [['streams', 'list', '--page-size', '501'], /--page-size is "501"/],
    [['streams', 'list', '--colour'], /--colour/],
    [['streams', 'list', '--collection', 'a/b'], /--collection/],
    [['streams', 'list', '--project', 'a/b'], /GOOGLE_CLOUD_PROJECT/],
    [['streams', 'skip', 'k', '1', '--source', 's', '--dead-letter-topic', 'a/b'], /--dead-letter-topic/],
  ];
  for (const [args, pattern] of refused) {
    assert.throws(
      () => readCommandLine(args, environment),
      (error) => error instanceof CommandLineError && pattern.test(error.message),
      args.join(' '),
    );
  }
  assert.throws(() => readCommandLine(['streams', 'list'], { GOOGLE_CLOUD_PROJECT: 'p' }), /--consumer/);
  assert.throws(() => readCommandLine(['streams', 'list'], { CONSUMER: 'p' }), /GOOGLE_CLOUD_PROJECT/);
});

test('the environment names the streams, and options come before it', () => {
  const environment = {
    GOOGLE_CLOUD_PROJECT: 'p',
    CONSUMER: 'c',
    COLLECTION_PREFIX: 'x',
    DEAD_LETTER_TOPIC: 'dead',
    SOURCE_SUBSCRIPTION: 'sub',
  };
  const line = readCommandLine(['streams', 'resume', '--json', '--', '-42'], environment);
  assert.ok(line !== 'help' && line.area === 'streams');
  assert.deepEqual(
    [line.collection, line.payloadCollection, line.deadLetterTopic, line.consumer, line.source],
    ['x-order', 'x-payload', 'projects/p/topics/dead', 'c', 'projects/p/subscriptions/sub'],
  );
  for (const [args, source] of [
    [['--source', 'as it is'], 'as it is'],
    [['--scope', 'consumer'], ''],
  ] as const) {
    const given = readCommandLine(['streams', 'inspect', 'k', ...args], environment);
    assert.ok(given !== 'help' && given.area === 'streams');
    assert.equal(given.source, source);
  }
  const other = readCommandLine(
    ['streams', 'list', '--consumer', 'd', '--collection', 'y', '--database', 'db'],
    environment,
  );
  assert.ok(other !== 'help' && other.area === 'streams');
  assert.deepEqual([other.collection, other.consumer, other.database], ['y', 'd', 'db']);
});

test('an empty list says so, and a page names the next one', async () => {
  const clock = systemClock();
  const store = memoryStreams({ clock });
  const streams = orderedDelivery(store);
  const whose = { consumer: CONSUMER, source: '' };
  const list = { kind: 'list', state: 'any', pageSize: 1 } as const;
  assert.deepEqual((await runStreams(streams, whose, list)).lines, ['no streams']);
  for (const key of ['a', 'b']) await made(store, { last: 7 }, [], key);
  const { lines, object } = await runStreams(streams, whose, list);
  assert.match(lines.at(-1) ?? '', /^more: --page /);
  assert.ok('nextPageToken' in object);
});
