import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { systemClock } from './clock.ts';

/** Both ends of a connection. */
async function connection(t: TestContext): Promise<Readonly<{ near: Socket; far: Socket }>> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'connection');
  const near = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [far] = (await accepted) as [Socket];
  t.after(() => {
    near.destroy();
    far.destroy();
    server.close();
  });
  return { near, far };
}

/** As a machine does that gives this process no processor. */
const keptFor = (milliseconds: number): void =>
  void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);

test('an answer that has arrived is read before a timer that fires late', async (t) => {
  const { near, far } = await connection(t);
  const order: string[] = [];
  const answered = once(far, 'data').then(() => order.push('answer'));
  const late = new Promise<void>((resolve) => {
    systemClock().after(20, () => {
      order.push('timer');
      resolve();
    });
  });
  near.write('x');
  keptFor(300);
  await Promise.all([answered, late]);
  assert.deepEqual(order, ['answer', 'timer']);
});

test('a timer that is late is cancelled in between, and one that is not fires as any other', async () => {
  const clock = systemClock();
  const cancel = clock.after(20, () => assert.fail('it was cancelled'));
  // Fires before it, in the same turn.
  setTimeout(() => setImmediate(cancel), 10);
  keptFor(300);
  await new Promise<void>((resolve) => void clock.after(5, resolve));
});
