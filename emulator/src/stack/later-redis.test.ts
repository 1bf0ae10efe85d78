/** Later where Redis keeps the claims: schedules and payloads are in Firestore all the same, under the run's own prefix. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { freePort } from '../free-ports.ts';
import { until } from '../until.ts';
import { listens } from './child.ts';
import { laterFixture } from './later-fixture.ts';
import { startToolkit, type Toolkit } from './toolkit.ts';

const found = spawnSync('redis-server', ['--version'], { stdio: 'ignore' }).status === 0;
const options = found ? {} : { skip: 'redis-server is not on the PATH' };

let redis: ChildProcess | undefined;
let stack: Toolkit | undefined;
const { publish, pulled } = laterFixture(() => {
  assert.ok(stack !== undefined);
  return stack;
});

before(async () => {
  if (!found) return;
  const port = await freePort();
  redis = spawn(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
    { stdio: 'ignore' },
  );
  await until(() => listens(port), 'Redis listens');
  stack = await startToolkit({ store: 'redis', redisUrl: `redis://127.0.0.1:${port}` });
  stack.clock.freeze();
});
after(async () => {
  await stack?.close();
  if (redis === undefined || redis.exitCode !== null) return;
  const gone = once(redis, 'exit');
  redis.kill('SIGKILL');
  await gone;
});

for (const route of ['delay', 'pipeline']) {
  test(
    `${route}: a large message of a key replaces a small one, and the republisher finds both entry and payload`,
    options,
    async () => {
      const data = Buffer.alloc(300_000, 0xfe);
      await publish(`${route}-in`, { attributes: { scheduleKey: 'k', delay: '60' } });
      await publish(`${route}-in`, { data, attributes: { scheduleKey: 'k', delay: '60' } });
      await stack?.clock.advance(120_000);
      const arrived = await pulled(`${route}-out-sub`);
      assert.deepEqual(
        arrived.map((each) => each.data.equals(data)),
        [true],
      );
    },
  );
}
