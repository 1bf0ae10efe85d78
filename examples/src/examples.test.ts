import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Toolkit, startToolkit } from 'pubsub-guarantees-emulator';

let stack: Toolkit;

before(async () => {
  stack = await startToolkit();
});
after(() => stack.close());

type Ended = Readonly<{ code: number | undefined; stdout: string; stderr: string }>;

/** As a user would run it, with the variables that `npm start` prints. */
function example(name: string, change: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const { pubsub, firestore, control } = stack.addresses;
  const env = {
    ...process.env,
    PUBSUB_EMULATOR_HOST: pubsub,
    FIRESTORE_EMULATOR_HOST: firestore,
    LOCAL_STACK_CONTROL: control,
    ...change,
  };
  const file = fileURLToPath(new URL(`${name}.ts`, import.meta.url));
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ['--conditions=source', file],
      { timeout: 240_000, env },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : Number(error.code);
        resolve({ code, stdout, stderr });
      },
    );
  });
}

test('once: three publishes, one charge', async () => {
  const { code, stdout, stderr } = await example('once');
  assert.deepEqual([code, stderr], [0, '']);
  assert.equal(stdout.match(/charging: order 42/g)?.length, 1);
  assert.match(stdout, /published 3 times; deliveries: handled, duplicate, duplicate/);
});

test('inbox: three publishes, one booking, one receipt', async () => {
  const { code, stdout, stderr } = await example('inbox');
  assert.deepEqual([code, stderr], [0, '']);
  assert.match(stdout, /deliveries: handled, duplicate, duplicate/);
  assert.match(stdout, /payments booked: 1, balance: 10 EUR/);
  assert.match(stdout, /receipts: received: 10 EUR\n/);
  assert.match(stdout, /left in the outbox: 0/);
});

test('outbox: two orders, two events, none of the one that was aborted', async () => {
  const { code, stdout, stderr } = await example('outbox');
  assert.deepEqual([code, stderr], [0, '']);
  assert.match(stdout, /^a yacht: the payment was refused$/m);
  assert.match(stdout, /^left behind, and published by a pass:\n1 ordered: a book\n2 ordered: a pen$/m);
});

test('schedule: one reminder is moved, one is called off', async () => {
  const { code, stdout, stderr } = await example('schedule');
  assert.deepEqual([code, stderr], [0, '']);
  // Two deliveries that are due within two seconds may change places.
  assert.match(stdout, /^arrived: (?:dinner at nine, the end|the end, dinner at nine)$/m);
});

test('later: two reminders, neither early', async () => {
  const { code, stdout, stderr } = await example('later');
  assert.deepEqual([code, stderr], [0, '']);
  assert.match(stdout, /in two seconds: not early/);
  assert.match(stdout, /at a time: not early/);
});

test('in order: three publishers, one order', async () => {
  const { code, stdout, stderr } = await example('in-order');
  assert.deepEqual([code, stderr], [0, '']);
  const numbers = [...stdout.matchAll(/^(\d+): step/gm)].map((match) => Number(match[1]));
  assert.deepEqual(numbers, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  assert.match(stdout, /published as .*; handled as 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12/);
});

/** What the four orders end as, whichever participant finds the courier. */
function assertOrders(stdout: string, courier: RegExp): void {
  assert.match(stdout, courier);
  assert.match(
    stdout,
    /^rice: completed\n  payment done, courier done, kitchen done, collect done, notify done; payment collected; told: /m,
  );
  assert.match(
    stdout,
    /^far: compensated \(courier: refused NO_COURIER\)\n.*; payment released; no notice$/m,
  );
  // What it is asked to do may come once more behind what withdraws it, and is answered so.
  assert.match(
    stdout,
    /^stew: compensated \(kitchen: (?:withdrawn|cancelled)\)\n.*; payment released; no notice$/m,
  );
  assert.match(stdout, /^pasta: completed\n.*; payment collected; told: /m);
}

test('sagas: two orders completed, two compensated, one of them with its pivot in doubt', async () => {
  const { code, stdout, stderr } = await example('sagas/food-orders');
  assert.deepEqual([code, stderr], [0, '']);
  assertOrders(stdout, /told: (?:Ada|Grace|Katherine) brings your order$/m);
});

test('sagas: a participant in Python follows the table of the wire contract', async (t) => {
  if (spawnSync('python3', ['-c', 'import sqlite3'], { stdio: 'ignore' }).status !== 0) {
    return t.skip('there is no python3 with sqlite3');
  }
  const { code, stdout, stderr } = await example('sagas/food-orders', { FOOD_COURIERS: 'python3' });
  assert.deepEqual([code, stderr], [0, '']);
  assertOrders(stdout, /told: Guido brings your order$/m);
});

test('choreography: three orders end without an orchestrator, and their traces say how', async () => {
  const { code, stdout, stderr } = await example('sagas/choreographed');
  assert.deepEqual([code, stderr], [0, '']);
  assert.equal(
    stdout,
    [
      'rice: completed, payment collected',
      '  food-payments → paid',
      '    food-couriers → found',
      '      food-kitchen → confirmed',
      '        food-payments',
      'far: compensated, payment released',
      '  food-payments → paid',
      '    food-couriers → failed',
      '      food-payments',
      'soup: compensated, payment released',
      '  food-payments → paid',
      '    food-couriers → found',
      '      food-kitchen → refused',
      '        food-couriers → failed',
      '          food-payments',
      'without an end: 0',
      '',
    ].join('\n'),
  );
});

test('an example without its stack ends with one line', async () => {
  const { code, stderr } = await example('once', { FIRESTORE_EMULATOR_HOST: '127.0.0.1:1' });
  assert.equal(code, 1);
  assert.match(
    stderr,
    /^no server answers at FIRESTORE_EMULATOR_HOST=127\.0\.0\.1:1: is npm start running\?\n$/,
  );
});
