/**
 * Large messages at once, to the packaged function and the packaged republisher, each under the memory that it is
 * deployed with: whether the process lives, whether every message arrives, and how much memory was used at most.
 *
 * What is refused for the moment (429, 503) is sent again, as Pub/Sub and Cloud Tasks do. Pub/Sub is held back until
 * every first answer or a pause is over, so that all that is taken is in memory at the same time.
 */
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { cloudTasksClient } from 'pubsub-guarantees/tasks/cloud-tasks';
import {
  freePort,
  startCloudTasks,
  startFirestore,
  startPubsub,
  systemClock,
} from 'pubsub-guarantees-emulator';
import { LOCATION, QUEUE, TOPICS } from '../cold-start/cases.ts';
import { largeTask, pushOf } from './bodies.ts';
import { limited } from './limited.ts';
import { allAnswered } from './send.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const FRAMEWORK = join(
  dirname(createRequire(join(ROOT, 'functions/src/main.ts')).resolve('@google-cloud/functions-framework')),
  'main.js',
);
const MB = 1_000_000;

type Case = Readonly<{ name: string; count: number; bytes: number; memory: number; target?: string }>;

/** Memory in MiB: what the modules deploy by default; an F1 has 384 MB. */
const CASES: readonly Case[] = [
  { name: 'dedup, 80 x 1 MB', target: 'dedup', count: 80, bytes: MB, memory: 512 },
  { name: 'dedup, 20 x 7 MB', target: 'dedup', count: 20, bytes: 7 * MB, memory: 512 },
  { name: 'dedup, 20 x 9.9 MB', target: 'dedup', count: 20, bytes: 9.9 * MB, memory: 512 },
  { name: 'dedup, 200 x 0.25 MB', target: 'dedup', count: 200, bytes: 0.25 * MB, memory: 512 },
  { name: 'republisher, 16 x 5 MB', count: 16, bytes: 5 * MB, memory: 366 },
  { name: 'republisher, 8 x 9.9 MB', count: 8, bytes: 9.9 * MB, memory: 366 },
];

export async function memory(print: (line: string) => void): Promise<object> {
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  await promisify(execFile)(process.execPath, ['--conditions=source', join(ROOT, 'packaging/src/cli.ts')]);
  const figures: Record<string, object> = {};
  for (const each of CASES) figures[each.name] = await measured(each, print);
  return figures;
}

async function measured(each: Case, print: (line: string) => void): Promise<object> {
  const clock = systemClock();
  const pubsub = await startPubsub({ clock });
  const firestore = await startFirestore({ clock });
  const tasks = await startCloudTasks({ clock, appEngine: () => 'http://127.0.0.1:9' });
  const client = new PubSub({ projectId: 'demo-project', apiEndpoint: pubsub.address });
  const queues = cloudTasksClient({ projectId: 'demo-project', emulatorHost: tasks.address });
  process.env['FIRESTORE_EMULATOR_HOST'] = firestore.address;
  const store = new Firestore({ projectId: 'demo-project' });
  for (const topic of TOPICS) await client.createTopic(topic);
  const [subscription] = await client.topic('out').createSubscription('out-sub', { ackDeadlineSeconds: 600 });
  const arrived = new Set<string>();
  subscription.on('message', (message) => {
    arrived.add(message.attributes['origin'] ?? message.id);
    message.ack();
  });
  await queues.createQueue({ parent: LOCATION, queue: { name: QUEUE } });
  const port = await freePort();
  const env = {
    GOOGLE_CLOUD_PROJECT: 'demo-project',
    TARGET_TOPIC: 'out',
    ALLOWED_TOPICS: 'out',
    DEAD_LETTER_TOPIC: 'dead-letters',
    DELAY_QUEUE: QUEUE,
    CHECK_WINDOWS: 'off',
    GAE_ENV: 'standard',
    METADATA_SERVER_DETECTION: 'none',
    PUBSUB_EMULATOR_HOST: pubsub.address,
    FIRESTORE_EMULATOR_HOST: firestore.address,
    CLOUD_TASKS_EMULATOR_HOST: tasks.address,
    PORT: String(port),
  };
  const folder = join(ROOT, 'build', each.target === undefined ? 'republisher' : 'functions');
  const args =
    each.target === undefined
      ? [join(folder, 'index.js')]
      : [FRAMEWORK, `--target=${each.target}`, `--source=${folder}`, '--signature-type=http'];
  const running = await limited(args, env, each.memory);
  try {
    const bodies =
      each.target === undefined
        ? await Promise.all(
            Array.from({ length: each.count }, async (_, index) => largeTask(store, `${index}`, each.bytes)),
          )
        : Array.from({ length: each.count }, (_, index) => pushOf(`${index}`, each.bytes));
    const path = each.target === undefined ? '/republish' : '/';
    const { statuses, rounds } = await allAnswered(`http://127.0.0.1:${port}${path}`, bodies, running.child);
    for (let left = 200; arrived.size < each.count && left > 0; left -= 1) await wait(50);
    const highest = await running.highest();
    const died = running.child.exitCode ?? running.child.signalCode;
    const figure = {
      limitMiB: each.memory,
      isHard: running.isHard,
      highestMiB: highest === undefined ? 'gone' : Math.round(highest),
      died: died ?? 'no',
      statuses,
      rounds,
      arrived: arrived.size,
      lost: each.count - arrived.size,
    };
    print(`${each.name.padEnd(26)} ${JSON.stringify(figure)}`);
    if (died !== null) print(running.written().slice(-600));
    return figure;
  } finally {
    await running.close();
    await subscription.close();
    await Promise.all([client.close(), queues.close(), store.terminate()]);
    await Promise.all([tasks.close(), firestore.close(), pubsub.close()]);
  }
}
