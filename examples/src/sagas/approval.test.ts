/** The example that waits for a person, on a stack of its own: it moves the clock by days. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startToolkit } from 'pubsub-guarantees-emulator';

const FILE = fileURLToPath(new URL('./approval.ts', import.meta.url));

test('approval: one is completed by a person, one refused by a person, one cancelled by its deadline', async (t) => {
  const stack = await startToolkit();
  t.after(() => stack.close());
  const { pubsub, firestore, control } = stack.addresses;
  const env = {
    ...process.env,
    PUBSUB_EMULATOR_HOST: pubsub,
    FIRESTORE_EMULATOR_HOST: firestore,
    LOCAL_STACK_CONTROL: control,
  };
  const ended = await new Promise<Readonly<{ code: number; out: string; err: string }>>((resolve) => {
    execFile(
      process.execPath,
      ['--conditions=source', FILE],
      { env, timeout: 280_000 },
      (error, out, err) => {
        resolve({ code: error === null ? 0 : Number(error.code ?? -1), out, err });
      },
    );
  });
  assert.deepEqual([ended.code, ended.err], [0, '']);
  assert.equal(
    ended.out,
    [
      'a book: completed after 3 days; budget transferred',
      'a yacht: compensated after 5 days (approval: refused NOT_APPROVED); budget released',
      'a lamp: compensated after 10 days (approval: withdrawn); budget released',
      '',
    ].join('\n'),
  );
});
