/**
 * The commands of `outbox` as a process, on the local stack's Firestore.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Firestore } from '@google-cloud/firestore';
import { startFirestore, systemClock } from 'pubsub-guarantees-emulator';
import { PermanentError } from '../../../shared/src/errors.ts';
import { silent } from '../../../shared/src/log.ts';
import { firestoreOutbox } from '../../../shared/src/outbox/firestore.ts';
import { outbox } from '../../../shared/src/outbox/outbox.ts';
import { relay } from '../../../shared/src/outbox/relay.ts';
import { message } from '../outbox/world.ts';
import { readCommandLine } from '../../../shared/src/cli/command-line.ts';
import type { OutboxCommand } from '../../../shared/src/cli/outbox-command.ts';
import { runOutbox } from '../../../shared/src/cli/run-outbox.ts';
import { CommandLineError } from '../../../shared/src/cli/usage.ts';

const BIN = fileURLToPath(new URL('../../../shared/bin/pubsub-guarantees.js', import.meta.url));
const PROJECT = 'demo-project';
const { signal } = new AbortController();

suite('outbox commands', () => {
  let server: Awaited<ReturnType<typeof startFirestore>>;
  let firestore: Firestore;
  let env: NodeJS.ProcessEnv;
  before(async () => {
    server = await startFirestore({ clock: systemClock() });
    const [host = '', port] = server.address.split(':');
    firestore = new Firestore({ projectId: PROJECT, host, port: Number(port), ssl: false });
    env = {
      PATH: process.env['PATH'],
      METADATA_SERVER_DETECTION: 'none',
      FIRESTORE_EMULATOR_HOST: server.address,
      GOOGLE_CLOUD_PROJECT: PROJECT,
      COLLECTION_PREFIX: 'mine',
      COUNTER_SCOPE: 'shop',
    };
  });
  after(async () => {
    await firestore.terminate();
    await server.close();
  });

  const run = (...args: string[]): Promise<{ code: number; out: string; err: string }> =>
    new Promise((resolve) => {
      execFile(process.execPath, [BIN, 'outbox', ...args], { env, timeout: 240_000 }, (error, out, err) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1, out, err });
      });
    });

  test('shows, resumes, skips and puts back what is blocked or failed', async () => {
    const places = { rows: 'mine-outbox-rows', streams: 'mine-outbox-streams', counters: 'mine-counters' };
    const store = firestoreOutbox(firestore, { ...places, scope: 'shop' });
    const published: string[] = [];
    const publisher = {
      async publish({ data }: Readonly<{ data: Uint8Array }>): Promise<string> {
        const text = Buffer.from(data).toString();
        if (text.startsWith('bad')) throw new PermanentError('BAD', 'never\u001b[2J');
        published.push(text);
        return text;
      },
    };
    const { sweep: pass } = relay(store, publisher, { log: silent });
    const box = outbox(store);
    for (const [text, sequenceKey] of [['bad 1', 'k'], ['2', 'k'], ['bad unordered']] as const) {
      await firestore.runTransaction(async (transaction) =>
        (await box.reserve(transaction, sequenceKey === undefined ? {} : { sequenceKey })).add(message(text)),
      );
    }
    /** What the process would print, without starting one: each start takes a second. */
    const printed = async (command: OutboxCommand): Promise<string> =>
      (await runOutbox(store, command)).lines.join('\n');
    const look = { kind: 'list', limit: 5 } as const;
    assert.equal(await printed(look), 'no stream is blocked, and no row has failed');
    await pass({ signal });
    const listed = await run('list');
    assert.match(
      listed.out,
      /^KEY +NUMBER +SENT +EPOCH\nk +1 +0 +[0-9a-f-]{36} +BAD: never\\u001b\[2J\nROW\n/,
    );
    const { streams, rows }: { streams: object[]; rows: [{ id: string }] } = JSON.parse(
      JSON.stringify((await runOutbox(store, look)).object),
    );
    const epoch = (await store.streamOf('k'))?.epoch;
    assert.deepEqual(streams, [{ key: 'k', epoch, sent: 0, number: 1, code: 'BAD', text: 'never\u001b[2J' }]);
    assert.deepEqual(rows, [{ id: rows[0].id, code: 'BAD', text: 'never\u001b[2J' }]);

    const resume = { kind: 'resume', key: 'k' } as const;
    assert.equal(await printed(resume), 'resumed: the next pass of a relay goes on with it');
    await pass({ signal });
    const wrong = await run('skip', 'k', '2');
    assert.deepEqual([wrong.code, wrong.out], [1, '']);
    assert.match(wrong.err, /^error: .* is not blocked at 2; accepted: 1 \(STREAM_NOT_BLOCKED\)\n$/);
    const skipped = await run('skip', 'k', '1', '--json', '--epoch', `${epoch}`);
    assert.deepEqual(JSON.parse(skipped.out), { key: 'k', epoch, number: 1, skipped: true });
    assert.match(
      await printed({ kind: 'skip', key: 'k', number: 1 }),
      /^nothing to do: the stream has passed 1/,
    );
    assert.match((await run('reopen', rows[0].id)).out, /^put back: .*\n$/);
    assert.match(await printed({ kind: 'reopen', row: rows[0].id }), /^nothing to do: no row of this name/);
    await pass({ signal });
    assert.deepEqual(published, ['2']);
    assert.match(await printed(resume), /^nothing to do: it is not blocked$/);
    const unknown = await run('resume', 'unknown');
    assert.deepEqual([unknown.code, unknown.out], [1, '']);
    assert.match(unknown.err, /^error: .*\(STREAM_UNKNOWN\)\n$/);
  });

  test('the ID of a row may begin with a hyphen, also before options', () => {
    for (const row of [`-${'a'.repeat(42)}`, `--${'b'.repeat(41)}`]) {
      const line = readCommandLine(['outbox', 'reopen', row, '--json'], { GOOGLE_CLOUD_PROJECT: PROJECT });
      assert.ok(line !== 'help' && line.area === 'outbox' && line.json, row);
      assert.deepEqual(line.command, { kind: 'reopen', row });
    }
  });

  test('a wrong command line is one line with exit code 2, and --help has every command', async () => {
    const wrong = await run('skip', 'k');
    assert.deepEqual([wrong.code, wrong.out, wrong.err.split('\n').length], [2, '', 2]);
    const { code, out } = await run('--help');
    assert.equal(code, 0);
    for (const command of ['list', 'resume', 'skip', 'reopen'])
      assert.match(out, new RegExp(`outbox ${command}`));
  });
});

test('a command line is refused by the name of what is wrong', () => {
  const refused: [readonly string[], RegExp][] = [
    [['outbox'], /accepted: list, resume, skip, reopen/],
    [['outbox', 'list', 'k'], /accepted: outbox list/],
    [['outbox', 'list', '--page-size', '0'], /--page-size is "0"/],
    [['outbox', 'resume'], /accepted: outbox resume KEY/],
    [['outbox', 'skip', 'k', 'x'], /NUMBER is "x"/],
    [['outbox', 'reopen', ''], /accepted: outbox reopen ROW/],
    [['outbox', 'resume', 'k', '--consumer', 'c'], /--consumer is no option of outbox/],
    [['streams', 'resume', 'k', '--epoch', 'e', '--consumer', 'c'], /--epoch is no option of streams/],
    [['outbox', 'list', '--counters', 'a/b'], /--counters/],
    [['outbox', 'list', '--collection', 'a/b'], /--collection/],
  ];
  for (const [args, pattern] of refused) {
    assert.throws(
      () => readCommandLine(args, { GOOGLE_CLOUD_PROJECT: 'p' }),
      (error) => error instanceof CommandLineError && pattern.test(error.message),
      args.join(' '),
    );
  }
});

test('the environment names the collections, and options come before it', () => {
  const environment = { GOOGLE_CLOUD_PROJECT: 'p', COLLECTION_PREFIX: 'x', COUNTER_SCOPE: 's' };
  const line = readCommandLine(['outbox', 'list'], environment);
  assert.ok(line !== 'help' && line.area === 'outbox');
  const { rows, streams, counters, scope } = line;
  assert.deepEqual(
    [rows, streams, counters, scope],
    ['x-outbox-rows', 'x-outbox-streams', 'x-counters', 's'],
  );
  const options = ['--collection', 'y', '--counters', 'z', '--counter-scope', 't', '--database', 'db'];
  const other = readCommandLine(['outbox', 'list', ...options], environment);
  assert.ok(other !== 'help' && other.area === 'outbox');
  assert.deepEqual(
    [other.rows, other.streams, other.counters, other.scope, other.database],
    ['y-rows', 'y-streams', 'z', 't', 'db'],
  );
});
