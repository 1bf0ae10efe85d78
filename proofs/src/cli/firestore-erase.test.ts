/** The command `erase` as a process, on the local stack's Firestore, for a record that the middleware itself made. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Firestore } from '@google-cloud/firestore';
import { startFirestore, systemClock as serverClock } from 'pubsub-guarantees-emulator';
import { systemClock } from '../../../shared/src/clock.ts';
import { dedup } from '../../../shared/src/dedup/dedup.ts';
import { firestoreClaims } from '../../../shared/src/dedup/firestore.ts';
import { compose, type Context } from '../../../shared/src/handler.ts';
import { silent } from '../../../shared/src/log.ts';
import { ack } from '../../../shared/src/outcome.ts';
import { readCommandLine } from '../../../shared/src/cli/command-line.ts';
import { CommandLineError } from '../../../shared/src/cli/usage.ts';

const BIN = fileURLToPath(new URL('../../../shared/bin/pubsub-guarantees.js', import.meta.url));
const PROJECT = 'demo-project';
const SOURCE = `projects/${PROJECT}/subscriptions/orders-once-push`;

suite('erase', () => {
  let server: Awaited<ReturnType<typeof startFirestore>>;
  let firestore: Firestore;
  before(async () => {
    server = await startFirestore({ clock: serverClock() });
    const [host = '', port] = server.address.split(':');
    firestore = new Firestore({ projectId: PROJECT, host, port: Number(port), ssl: false });
  });
  after(async () => {
    await firestore.terminate();
    await server.close();
  });

  const run = (...args: string[]): Promise<{ code: number; out: string; err: string }> =>
    new Promise((resolve) => {
      const env = {
        PATH: process.env['PATH'],
        METADATA_SERVER_DETECTION: 'none',
        FIRESTORE_EMULATOR_HOST: server.address,
        GOOGLE_CLOUD_PROJECT: PROJECT,
        CONSUMER: 'orders-once',
        SOURCE_SUBSCRIPTION: 'orders-once-push',
      };
      execFile(process.execPath, [BIN, 'erase', ...args], { env, timeout: 240_000 }, (error, out, err) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1, out, err });
      });
    });

  /** How often the handler has run after this delivery. */
  let runs = 0;
  const deliver = async (attributes: Readonly<Record<string, string>>, id = '7'): Promise<number> => {
    const clock = systemClock();
    const handler = compose(async () => {
      runs += 1;
      return ack();
    }, [dedup(firestoreClaims(firestore), { clock })]);
    const context: Context = {
      consumer: 'orders-once',
      source: SOURCE,
      now: () => clock.now(),
      deadline: clock.monotonic() + 60_000,
      signal: new AbortController().signal,
      log: silent,
    };
    const message = { id, data: Buffer.from('x'), attributes, publishTime: new Date(0) };
    assert.equal((await handler(message, context)).kind, 'ack');
    return runs;
  };

  for (const [title, attributes, id, option] of [
    ['a dedupId', { dedupId: 'anna@example.com' }, '1', ['--dedup-id', 'anna@example.com']],
    ['a message ID', {}, '77', ['--message-id', '77']],
  ] as const) {
    test(`the record of ${title} is shown, erased, and then gone`, async () => {
      const first = await deliver(attributes, id);
      assert.equal(await deliver(attributes, id), first, 'a duplicate ran');
      const dry = await run(...option, '--dry-run');
      assert.match(dry.out, /^would erase pubsub-guarantees-claims\/[\w-]{43}, done at 20/);
      assert.doesNotMatch(dry.out, /anna/);
      assert.equal(await deliver(attributes, id), first, 'the dry run erased');
      const erased = await run(...option, '--json');
      assert.deepEqual([erased.code, JSON.parse(erased.out).erased], [0, true], erased.err);
      assert.match((await run(...option)).out, /^there is no record/);
      assert.equal(await deliver(attributes, id), first + 1);
    });
  }

  test('a record that a handler may be working on is left alone', async () => {
    const claims = firestoreClaims(firestore);
    const line = readCommandLine(
      ['erase', '--dedup-id', 'busy', '--consumer', 'orders-once', '--subscription', SOURCE],
      { GOOGLE_CLOUD_PROJECT: PROJECT },
    );
    assert.ok(line !== 'help' && line.area === 'erase');
    await claims.claim({
      key: line.command.key,
      owner: 'o',
      fingerprint: 'f'.repeat(43),
      messageId: '9',
      leaseMs: 60_000,
      retentionMs: 600_000,
      mayTakeOver: true,
    });
    const { code, err } = await run('--dedup-id', 'busy');
    assert.equal(code, 1);
    assert.match(err, /is claimed; accepted: done.*\(IN_PROGRESS\)/);
  });

  test('a line that names no identity is refused', () => {
    const read = (...args: string[]) => readCommandLine(['erase', ...args], { GOOGLE_CLOUD_PROJECT: 'p' });
    const whose = ['--consumer', 'c', '--subscription', 'some-sub'];
    for (const [args, says] of [
      [whose, /accepted: --dedup-id TEXT, or --message-id ID/],
      [[...whose, '--dedup-id', 'a', '--message-id', '1'], /accepted: --dedup-id TEXT, or --message-id ID/],
      [[...whose, '--dedup-id', ''], /the identity is empty/],
      [['--dedup-id', 'a', '--subscription', 'some-sub'], /--consumer is not given/],
      [['--dedup-id', 'a', '--consumer', 'c'], /--subscription is not given/],
      [[...whose, '--dedup-id', 'a', '--epoch', '1'], /--epoch is no option of erase/],
    ] as const) {
      assert.throws(
        () => read(...args),
        (error: Error) => error instanceof CommandLineError && says.test(error.message),
      );
    }
  });
});
