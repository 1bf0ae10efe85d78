/**
 * Messages whose handler kills its process each time, on the local stack's servers and with real processes. A redelivery
 * comes only after the lease has expired and a sweep has passed, so that no delivery ever meets the lease of the process
 * that died. The attempts are counted all the same: the stream is blocked at its limit, and the others stay whole.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { startFirestore, startPubsub, systemClock as serverClock } from 'pubsub-guarantees-emulator';
import { systemClock } from '../../../shared/src/clock.ts';
import { end } from '../servers/child-processes.ts';
import { fastClock } from '../servers/fast-clock.ts';
import { firestoreStreams } from '../../../shared/src/order/firestore.ts';
import { orderedDelivery } from '../../../shared/src/order/in-order.ts';
import type { StreamDetails } from '../../../shared/src/order/admin.ts';
import { CONSUMER, type KilledTask, KILLER, type StartedLine } from './killed-task.ts';

process.env['METADATA_SERVER_DETECTION'] ??= 'none';

/** One stream of each kind by default, since each death costs the start of a process; `npm run test:kills` takes 8. */
const STREAMS = process.env['TEST_KILLS'] === undefined ? 1 : 8;
const MESSAGES = 20;
const NUMBER = 7;
const MAX_ATTEMPTS = 3;
const SWEEP_EVERY_MS = 2_000;
/** The acknowledgement deadline of 10 s is 5 s here: longer than the lease of 2 s and the sweep behind it. */
const SPEED = 2;
/** A process starts its killers one at a time, and each death costs a lease, a sweep and the start of a process. */
const LIMIT_MS = Math.max(240_000, STREAMS * 150_000);
const SUBSCRIPTION = 'projects/demo-project/subscriptions/orders';
const MODULE = new URL('./pubsub-killer.ts', import.meta.url);

for (const native of [false, true]) {
  const policy = native ? 'with a dead-letter policy of the subscription' : 'without a dead-letter policy';
  test(`P16: ${STREAMS} messages that kill their process are blocked at the limit, ${policy}`, async (t) => {
    const { starts, streams, deaths } = await runKillers(native);
    t.diagnostic(`${deaths} processes killed themselves`);
    assert.equal(streams.size, 2 * STREAMS);
    for (const [key, stream] of streams) {
      const numbers = starts.filter((line) => line.key === key).map(({ number }) => number);
      const firsts = [...new Set(numbers)];
      if (key.startsWith(KILLER)) {
        assert.deepEqual([stream?.status, stream?.last], ['blocked', NUMBER - 1], key);
        assert.equal(stream?.held, MESSAGES - NUMBER + 1, `${key} holds its poison and what follows it`);
        // One that died while it was about to block the stream is counted, too.
        const attempts = stream?.attempts ?? 0;
        const isCounted = STREAMS === 1 ? attempts === MAX_ATTEMPTS : attempts >= MAX_ATTEMPTS;
        assert.ok(isCounted, `${attempts} attempts of ${key}`);
        // The death of a process counts for each stream whose lease it held, also where another killer was faster.
        const started = numbers.filter((number) => number === NUMBER).length;
        const fewest = STREAMS === 1 ? MAX_ATTEMPTS : 1;
        assert.ok(started >= fewest && started <= MAX_ATTEMPTS, `${started} starts of ${key}`);
        assert.deepEqual(firsts, upTo(NUMBER), `${key} ran in order`);
      } else {
        assert.deepEqual([stream?.status, stream?.last, stream?.held], ['idle', MESSAGES, 0], key);
        assert.deepEqual(firsts, upTo(MESSAGES), `${key} ran whole and in order`);
      }
    }
    // A death is counted for the numbers that were running; only the killers were.
    assert.ok(deaths <= MAX_ATTEMPTS * STREAMS, `${deaths} deaths`);
  });
}

const upTo = (last: number): readonly number[] => Array.from({ length: last }, (_, index) => index + 1);

async function runKillers(native: boolean): Promise<
  Readonly<{
    starts: readonly StartedLine[];
    streams: ReadonlyMap<string, StreamDetails | undefined>;
    deaths: number;
  }>
> {
  const directory = await mkdtemp(join(tmpdir(), 'killers-'));
  const file = join(directory, 'starts');
  const clock = serverClock();
  const [firestoreServer, pubsubServer] = await Promise.all([
    startFirestore({ clock }),
    startPubsub({ clock: fastClock(clock, SPEED) }),
  ]);
  const [host = '', port] = firestoreServer.address.split(':');
  const firestore = new Firestore({ projectId: 'demo-project', host, port: Number(port), ssl: false });
  const pubsub = new PubSub({ projectId: 'demo-project', apiEndpoint: pubsubServer.address });
  const task: KilledTask = {
    firestore: firestoreServer.address,
    pubsub: pubsubServer.address,
    subscription: SUBSCRIPTION,
    file,
    number: NUMBER,
    maxAttempts: MAX_ATTEMPTS,
    sweepEveryMs: SWEEP_EVERY_MS,
  };
  let deaths = 0;
  let isOver = false;
  const children = new Set<ChildProcess>();
  const start = (): void => {
    if (isOver) return;
    const child = fork(MODULE, [JSON.stringify(task)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: { ...process.env, NODE_COMPILE_CACHE: join(directory, 'compiled') },
    });
    children.add(child);
    child.once('exit', () => {
      children.delete(child);
      if (!isOver) deaths += 1;
      start();
    });
  };
  try {
    const [topic] = await pubsub.createTopic('orders');
    const [letters] = await pubsub.createTopic('native-dead-letters');
    const [lost] = await letters.createSubscription('native-dead-letters');
    await topic.createSubscription('orders', {
      ackDeadlineSeconds: 10,
      ...(native && { deadLetterPolicy: { deadLetterTopic: letters.name, maxDeliveryAttempts: 20 } }),
    });
    const keys = upTo(STREAMS).flatMap((each) => [`${KILLER}-${each}`, `other-${each}`]);
    for (const number of upTo(MESSAGES)) {
      const data = Buffer.from(`{"number":${number}}`);
      await Promise.all(
        keys.map((sequenceKey) =>
          topic.publishMessage({ data, attributes: { sequenceKey, sequence: String(number) } }),
        ),
      );
    }
    start();
    start();
    const inspector = orderedDelivery(firestoreStreams(firestore), { clock: systemClock() });
    const look = async (): Promise<ReadonlyMap<string, StreamDetails | undefined>> => {
      const name = { consumer: CONSUMER, source: SUBSCRIPTION };
      const found = keys.map(async (key) => [key, await inspector.inspect({ ...name, key })] as const);
      return new Map(await Promise.all(found));
    };
    const isAtEnd = (key: string, stream: StreamDetails | undefined): boolean =>
      key.startsWith(KILLER)
        ? stream?.status === 'blocked' && stream.held === MESSAGES - NUMBER + 1
        : stream?.status === 'idle' && stream.last === MESSAGES;
    let streams = await look();
    for (const until = performance.now() + LIMIT_MS; performance.now() < until; await pause(500)) {
      streams = await look();
      const isEnd = [...streams].every(([key, stream]) => isAtEnd(key, stream));
      const { outstanding, backlog } = pubsubServer.stats();
      // The last acknowledgements come after the last commit; what a process had when it died comes once more.
      if (isEnd && outstanding + backlog === 0) break;
    }
    isOver = true;
    await Promise.all([...children].map(end));
    assert.equal(pubsubServer.stats().backlog, 0, 'nothing waits, here or among the native dead letters');
    await lost.delete();
    const lines = (await readFile(file, 'utf8')).trim().split('\n');
    return { starts: lines.map((line) => JSON.parse(line) as StartedLine), streams, deaths };
  } finally {
    isOver = true;
    await Promise.all([...children].map(end));
    await pubsub.close();
    await firestore.terminate();
    await Promise.all([firestoreServer.close(), pubsubServer.close()]);
    await rm(directory, { recursive: true, force: true });
  }
}
