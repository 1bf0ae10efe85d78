import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test, type TestContext } from 'node:test';
import { googleKeys, type KeyReader, keptKeys } from './google-keys.ts';

const HOUR_MS = 3_600_000;

/** Google's keys as a test serves them, on a time of the test's. */
function world() {
  const state = { time: 0, reads: 0, isReachable: true, served: { k1: 'one' } as Record<string, string> };
  const read: KeyReader = async () => {
    state.reads += 1;
    await new Promise((resolve) => setImmediate(resolve));
    if (!state.isReachable) throw new Error('unreachable');
    return { certificates: state.served, maxAgeMs: HOUR_MS };
  };
  return { state, keys: keptKeys(read, () => state.time) };
}

test("a stranger's token while the address is away takes no key from those that are known", async () => {
  const { state, keys } = world();
  assert.deepEqual(await keys('k1'), { k1: 'one' });
  state.isReachable = false;
  state.time = 120_000;
  await assert.rejects(keys('k9'), /unreachable/);
  for (let n = 0; n < 50; n += 1) assert.deepEqual(await keys('k1'), { k1: 'one' });
  assert.equal(state.reads, 2);
});

test('a failed reading is not repeated for each request, and the pause grows up to a minute', async () => {
  const { state, keys } = world();
  state.isReachable = false;
  const begun: number[] = [];
  for (; state.time < 10 * 60_000; state.time += 250) {
    const before = state.reads;
    await assert.rejects(keys('k1'));
    await assert.rejects(keys('k9'));
    if (state.reads > before) begun.push(state.time / 1_000);
  }
  assert.deepEqual(begun.slice(0, 9), [0, 1, 3, 7, 15, 31, 63, 123, 183]);
  assert.equal(begun.length, 15);
  state.time += 60_000;
  state.isReachable = true;
  assert.deepEqual(await keys('k1'), { k1: 'one' });
});

test('keys whose time is over count on while no others can be read, for a day', async () => {
  const { state, keys } = world();
  await keys('k1');
  state.isReachable = false;
  state.time = HOUR_MS;
  assert.deepEqual(await keys('k1'), { k1: 'one' });
  state.time = 25 * HOUR_MS - 1;
  assert.deepEqual(await keys('k1'), { k1: 'one' });
  state.time = 26 * HOUR_MS;
  await assert.rejects(keys('k1'), /unreachable/);
  state.isReachable = true;
  state.served = { k2: 'two' };
  state.time += 60_000;
  assert.deepEqual(
    await keys('k1'),
    { k2: 'two' },
    'a key that Google withdrew is gone with the next reading',
  );
});

test('tokens that need one reading share it, whether it succeeds or not', async () => {
  const { state, keys } = world();
  await Promise.all(Array.from({ length: 20 }, () => keys('k1')));
  assert.equal(state.reads, 1);
  state.isReachable = false;
  state.time = HOUR_MS;
  const answers = await Promise.allSettled([...Array(20)].map((_, n) => keys(n % 2 === 0 ? 'k1' : 'k2')));
  assert.equal(state.reads, 2);
  assert.equal(answers.filter(({ status }) => status === 'fulfilled').length, 10);
});

async function serving(t: TestContext, status: () => number): Promise<string> {
  const server = createServer({ keepAliveTimeout: 0 }, (_, response) => {
    response.writeHead(status(), { 'content-type': 'application/json', 'cache-control': 'max-age=120' });
    response.end('{"k1":"one"}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const address = server.address();
  assert.ok(typeof address === 'object' && address !== null);
  return `http://127.0.0.1:${address.port}/certs`;
}

test("the keys come over HTTP with their reply's time, and each reading is a new one", async (t) => {
  let status = 200;
  const read = googleKeys(await serving(t, () => status));
  assert.deepEqual(await read(), { certificates: { k1: 'one' }, maxAgeMs: 120_000 });
  status = 404;
  await assert.rejects(read(), /Failed to retrieve verification certificates/);
  status = 200;
  assert.deepEqual(await read(), { certificates: { k1: 'one' }, maxAgeMs: 120_000 });
});
