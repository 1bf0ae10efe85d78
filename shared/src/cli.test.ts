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
import { systemClock } from './clock.ts';
import { readCommandLine } from './cli/command-line.ts';
import { runOrders } from './cli/run-orders.ts';
import { CommandLineError } from './cli/usage.ts';
import { PermanentError } from './errors.ts';
import { compose } from './handler.ts';
import { silent } from './log.ts';
import { firestoreOrder } from './order/firestore.ts';
import { inOrder } from './order/in-order.ts';
import { orders } from './order/orders.ts';
import { memoryOrder } from './order/memory.ts';
import { freshKey } from './order/key-state.ts';
import { messageOf } from './order/testing/bench.ts';
import { deadLetter } from './outcome.ts';

const BIN = fileURLToPath(new URL('../bin/pubsub-guarantees.js', import.meta.url));
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
      execFile(process.execPath, [BIN, ...args], { env, timeout: 30_000 }, (error, out, err) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1, out, err });
      });
    });

  test('shows, resumes and skips a stream that stands still, with its dead letter', async () => {
    const firestore = new Firestore({ projectId: PROJECT });
    const pubsub = new PubSub({ projectId: PROJECT });
    const [topic] = await pubsub.createTopic('dead-letters');
    const [subscription] = await topic.createSubscription('dead');
    const store = firestoreOrder(firestore);
    const chain = compose(
      async () => deadLetter(new PermanentError('BAD', 'never\u001b[2J')),
      [inOrder(store, { clock: systemClock() })],
    );
    const context = {
      consumer: 'fifo',
      source: 'projects/demo-project/subscriptions/s',
      now: Date.now,
      deadline: performance.now() + 60_000,
      signal: new AbortController().signal,
      log: silent,
    };
    for (const number of [1, 2, 3]) await chain(messageOf(number), context);

    const list = await run('orders', 'list', '--state', 'halted');
    assert.match(list.out, /^KEY .*\nk +halted +0 +1 +poison 1: BAD since 2/, list.err);
    const seen = orders(store, { consumer: 'fifo' });
    const { lines } = await runOrders(seen, { kind: 'inspect', key: 'k' });
    assert.match(lines.join('\n'), /\nheld {10}3, the first is 1\npoison {8}1: BAD: never\\u001b\[2J \(/);
    assert.deepEqual(await run('orders', 'resume', 'k'), {
      code: 0,
      out: 'resumed: the next sweep goes on with it\n',
      err: '',
    });
    await assert.rejects(seen.skip('k', 1), { code: 'NUMBER_HELD' });

    const ref = { consumer: 'fifo', key: 'k' };
    const halted = { code: 'BAD', text: 'again', atMs: Date.now() };
    const { version } = await store.read(ref);
    await store.write(ref, { version, base: freshKey(1) }, { halted, readyAt: null });
    const skipped = await run('orders', 'skip', 'k', '1', '--dead-letter-topic', 'dead-letters', '--json');
    assert.deepEqual([skipped.out, skipped.err], ['{"key":"k","number":1,"skipped":true}\n', '']);
    const { state } = await store.read(ref);
    assert.deepEqual([state?.last, state?.halted, await store.countHeld(ref)], [1, null, 2]);
    const letter = await new Promise<{ attributes: Record<string, string> }>((resolve) => {
      subscription.once('message', resolve);
    });
    assert.deepEqual([letter.attributes['sequence'], letter.attributes['deadLetterReason']], ['1', 'BAD']);
    await subscription.close();
    await pubsub.close();
    await firestore.terminate();
  });

  test('what is wrong is one line, with the exit code that says whose fault it is', async () => {
    const unknown = await run('orders', 'inspect', 'nobody');
    assert.deepEqual([unknown.code, unknown.out], [1, '']);
    assert.match(unknown.err, /^error: .*\(STREAM_UNKNOWN\)\n$/);
    const wrong = await run('orders', 'skip', 'k');
    assert.deepEqual([wrong.code, wrong.out, wrong.err.split('\n').length], [2, '', 2]);
  });
});

test('a Firestore that does not answer is one line as well, without what its client says when it is closed', async () => {
  const env = {
    PATH: process.env['PATH'],
    METADATA_SERVER_DETECTION: 'none',
    FIRESTORE_EMULATOR_HOST: '127.0.0.1:1',
    GOOGLE_CLOUD_PROJECT: PROJECT,
    CONSUMER: 'fifo',
  };
  const [code, err] = await new Promise<[unknown, string]>((resolve) => {
    execFile(process.execPath, [BIN, 'orders', 'list'], { env, timeout: 30_000 }, (error, _, text) => {
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
    [['orders'], /accepted: list, inspect, resume, skip/],
    [['orders', 'list', '--state', 'sad'], /--state is "sad"/],
    [['orders', 'list', 'k'], /accepted: orders list/],
    [['orders', 'inspect'], /accepted: orders inspect KEY/],
    [['orders', 'inspect', ''], /accepted: orders inspect KEY/],
    [['orders', 'skip', 'k', '0'], /NUMBER is "0"/],
    [['orders', 'list', '--page-size', '501'], /--page-size is "501"/],
    [['orders', 'list', '--colour'], /--colour/],
    [['orders', 'list', '--collection', 'a/b'], /--collection/],
    [['orders', 'list', '--project', 'a/b'], /GOOGLE_CLOUD_PROJECT/],
    [['orders', 'skip', 'k', '1', '--dead-letter-topic', 'a/b'], /--dead-letter-topic/],
  ];
  for (const [args, pattern] of refused) {
    assert.throws(
      () => readCommandLine(args, environment),
      (error) => error instanceof CommandLineError && pattern.test(error.message),
      args.join(' '),
    );
  }
  assert.throws(() => readCommandLine(['orders', 'list'], { GOOGLE_CLOUD_PROJECT: 'p' }), /--consumer/);
  assert.throws(() => readCommandLine(['orders', 'list'], { CONSUMER: 'p' }), /GOOGLE_CLOUD_PROJECT/);
});

test('the environment names the streams, and options come before it', () => {
  const environment = {
    GOOGLE_CLOUD_PROJECT: 'p',
    CONSUMER: 'c',
    COLLECTION_PREFIX: 'x',
    DEAD_LETTER_TOPIC: 'dead',
  };
  const line = readCommandLine(['orders', 'resume', '--json', '--', '-42'], environment);
  assert.ok(line !== 'help' && line.area === 'orders');
  assert.deepEqual(
    [line.collection, line.payloadCollection, line.deadLetterTopic, line.consumer],
    ['x-order', 'x-payload', 'projects/p/topics/dead', 'c'],
  );
  const other = readCommandLine(
    ['orders', 'list', '--consumer', 'd', '--collection', 'y', '--database', 'db'],
    environment,
  );
  assert.ok(other !== 'help' && other.area === 'orders');
  assert.deepEqual([other.collection, other.consumer, other.database], ['y', 'd', 'db']);
});

test('an empty list says so, and a page names the next one', async () => {
  const clock = systemClock();
  const store = memoryOrder({ clock });
  const seen = orders(store, { consumer: 'c' });
  const list = { kind: 'list', state: 'any', pageSize: 1 } as const;
  assert.deepEqual((await runOrders(seen, list)).lines, ['no streams']);
  for (const key of ['a', 'b']) {
    await store.write({ consumer: 'c', key }, { version: undefined, base: freshKey(1) }, { last: 7 });
  }
  const { lines, object } = await runOrders(seen, list);
  assert.match(lines.at(-1) ?? '', /^more: --page /);
  assert.ok('nextPageToken' in object);
});
