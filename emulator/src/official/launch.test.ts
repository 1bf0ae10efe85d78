import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { freePort } from '../free-ports.ts';
import { turnsDuring } from '../spent.ts';
import { launch, type LaunchOptions, PortInUseError } from './launch.ts';
import { LISTENS, standIn, untilGone } from './testing.ts';

/** What it rejects with; its process is gone by then. */
async function failure(options: LaunchOptions): Promise<Error> {
  let error: unknown;
  const turns = await turnsDuring(async () => {
    error = await launch(options).then(
      () => assert.fail('it started'),
      (reason: unknown) => reason,
    );
  });
  assert.ok(error instanceof Error);
  assert.ok(!error.message.includes('\n'), 'one line');
  // Much less than the three minutes after which it would stop waiting anyway; the process that it starts may be slow.
  assert.ok(turns < 60_000, `${turns} turns`);
  return error;
}

test('is ready when it has said so and a call is answered, and close() leaves nothing', async () => {
  const port = await freePort();
  const { pid = 0, guardPid = 0, close } = await launch(standIn(port, LISTENS));
  await Promise.all([close(), close()]);
  await untilGone([pid, guardPid], [port]);
  await close();
});

test('reads a ready line that comes in pieces, after more output than a pipe holds', async () => {
  const port = await freePort();
  const program = `
    for (let line = 0; line < 50_000; line++) console.error('a line of log output, and another one');
    process.stdout.write('listen');
    require('node:net').createServer().listen(port, '127.0.0.1', () => console.log('ing on ' + port));`;
  const { close } = await launch(standIn(port, program));
  await close();
});

test('does not take the answer of another process for its own', async () => {
  const other = createServer();
  const port = await freePort();
  await new Promise<void>((resolve) => other.listen(port, '127.0.0.1', resolve));
  try {
    const stuck = `console.error('Exception in thread "main" java.net.BindException: Address already in use');
      setInterval(() => undefined, 1_000);`;
    const error = await failure(standIn(port, stuck));
    assert.ok(error instanceof PortInUseError);
    assert.equal(
      error.message,
      `the stand-in cannot listen on 127.0.0.1:${port}: the port is in use by another process`,
    );
    const options = { ...standIn(port, 'setInterval(() => undefined, 1_000);'), limitMs: 400 };
    const silent = await failure(options);
    assert.equal(silent.message, 'the stand-in was not ready within 0.4 s: it wrote nothing');
  } finally {
    other.close();
  }
});

test('says the last lines of one that ends early', async () => {
  const error = await failure(
    standIn(await freePort(), `console.error('no main\\nmanifest'); process.exit(1);`),
  );
  assert.equal(error.message, 'the stand-in ended before it was ready (exit code 1): no main | manifest');
});

test('says that a jar needs a newer Java', async () => {
  const program = `console.error('java.lang.UnsupportedClassVersionError: compiled by a more recent version');`;
  const error = await failure(standIn(await freePort(), program));
  assert.match(error.message, /^the stand-in needs a newer Java: .*UnsupportedClassVersionError/);
});

test('rejects when no server answers although the emulator said that it listens', async () => {
  const options = standIn(await freePort(), LISTENS);
  let over = (): void => undefined;
  const error = await failure({
    ...options,
    answers: () => Promise.resolve(false),
    limitMs: 600,
    // The time is over once it has said so: how long its start takes depends on what else the machine does.
    log: () => over(),
    timer(_milliseconds, reached) {
      over = reached;
      return () => undefined;
    },
  });
  assert.match(error.message, /^the stand-in was not ready within 0.6 s: listening on/);
});

test('says when it ends between its ready line and the first answer', async () => {
  const options = standIn(await freePort(), `${LISTENS} setTimeout(() => process.exit(3), 200);`);
  const error = await failure({ ...options, answers: () => Promise.resolve(false) });
  assert.match(error.message, /^the stand-in ended before it was ready \(exit code 3\): listening on/);
});

test('says that the command is not there', async () => {
  for (const kernel of [true, false]) {
    const error = await failure({ ...standIn(await freePort(), ''), command: '/nowhere/java', kernel });
    assert.match(error.message, /\/nowhere\/java/);
  }
});

test('ends one that does not heed SIGTERM', async () => {
  const port = await freePort();
  const { pid = 0, close } = await launch(
    standIn(port, `process.on('SIGTERM', () => undefined); ${LISTENS}`),
  );
  await close();
  await untilGone([pid], [port]);
});

test('logs that it ended by itself', async () => {
  const port = await freePort();
  const logged = Promise.withResolvers<string>();
  const log = (line: string): void => {
    if (line.startsWith('the stand-in')) logged.resolve(line);
  };
  const { pid = 0, close } = await launch({ ...standIn(port, LISTENS), log });
  process.kill(pid, 'SIGKILL');
  assert.equal(await logged.promise, 'the stand-in ended by itself (SIGKILL)');
  await close();
});
