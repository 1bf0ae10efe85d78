/**
 * Process start to first answered push: each packaged function, beside a hello-world on the same framework, and beside
 * a program that only imports the same clients and answers. They run in turn; the medians are compared.
 *
 * The packages are those of `npm run package`; they find the third-party packages in the repository's node_modules,
 * the same versions as in their lock files.
 */
import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { PubSub } from '@google-cloud/pubsub';
import { cloudTasksClient } from 'pubsub-guarantees/tasks/cloud-tasks';
import { startCloudTasks, startFirestore, startPubsub, systemClock } from 'pubsub-guarantees-emulator';
import { median } from '../median.ts';
import { startRedis } from '../servers/redis.ts';
import { type Case, cases, LOCATION, pushBody, QUEUE, taskBody, TOPICS } from './cases.ts';
import { firstAnswer, type Server, type Start } from './first-answer.ts';

const ROUNDS = 7;
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const DIST = join(ROOT, 'build');
const FRAMEWORK = join(
  dirname(createRequire(join(ROOT, 'functions/src/main.ts')).resolve('@google-cloud/functions-framework')),
  'main.js',
);

type Environment = Readonly<Record<string, string>>;
type Sides = Readonly<{ ours: Start[]; hello: Start[]; clients: Start[] }>;

export async function coldStart(print: (line: string) => void): Promise<object> {
  // Google's clients would look for credentials that the local servers do not ask for.
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  await promisify(execFile)(process.execPath, ['--conditions=source', join(ROOT, 'packaging/src/cli.ts')]);
  const clock = systemClock();
  const pubsub = await startPubsub({ clock });
  const firestore = await startFirestore({ clock });
  const tasks = await startCloudTasks({ clock, appEngine: () => 'http://127.0.0.1:9' });
  const redis = await startRedis(print);
  const bare = join(DIST, 'cold-start');
  try {
    await provision(pubsub.address, tasks.address);
    const env = {
      GOOGLE_CLOUD_PROJECT: 'demo-project',
      TARGET_TOPIC: 'out',
      DEAD_LETTER_TOPIC: 'dead-letters',
      METADATA_SERVER_DETECTION: 'none',
      PUBSUB_EMULATOR_HOST: pubsub.address,
      FIRESTORE_EMULATOR_HOST: firestore.address,
      CLOUD_TASKS_EMULATOR_HOST: tasks.address,
    };
    const figures: Record<string, object> = {};
    for (const each of cases(redis?.port)) figures[each.name] = await compared(each, env, bare, print);
    return { rounds: ROUNDS, ...figures };
  } finally {
    await rm(bare, { recursive: true, force: true });
    await redis?.close();
    await Promise.all([tasks.close(), firestore.close(), pubsub.close()]);
  }
}

async function provision(pubsubAddress: string, tasksAddress: string): Promise<void> {
  const pubsub = new PubSub({ projectId: 'demo-project', apiEndpoint: pubsubAddress });
  const tasks = cloudTasksClient({ projectId: 'demo-project', emulatorHost: tasksAddress });
  for (const topic of TOPICS) await pubsub.createTopic(topic);
  await pubsub.topic('incoming').createSubscription('incoming-sub');
  await tasks.createQueue({ parent: LOCATION, queue: { name: QUEUE } });
  await pubsub.close();
  await tasks.close();
}

async function compared(
  each: Case,
  env: Environment,
  bare: string,
  print: (line: string) => void,
): Promise<object> {
  const hello = await bareProgram(join(bare, 'hello'), each, []);
  const clients = await bareProgram(join(bare, 'clients'), each, each.clients);
  const ours = join(DIST, each.target === undefined ? 'republisher' : 'functions');
  const sides: Sides = { ours: [], hello: [], clients: [] };
  // The first round is not counted: files get into the page cache.
  for (let round = 0; round <= ROUNDS; round += 1) {
    const unique = `${each.name.replaceAll(' ', '-')}-${round}`;
    for (const [side, folder] of Object.entries({ ours, clients, hello }) as [keyof Sides, string][]) {
      const start = await firstAnswer(await server(each, folder, env, unique));
      if (round > 0) sides[side].push(start);
    }
  }
  return summary(each, sides, print);
}

async function server(each: Case, folder: string, env: Environment, unique: string): Promise<Server> {
  const json = { 'content-type': 'application/json' };
  if (each.target === undefined) {
    return {
      args: [join(folder, 'index.js')],
      env: { ...env, ...each.env },
      first: {
        path: '/republish',
        headers: { 'X-AppEngine-QueueName': 'delay-queue' },
        body: await taskBody(unique),
      },
    };
  }
  return {
    args: [FRAMEWORK, `--target=${each.target}`, `--source=${folder}`, '--signature-type=http'],
    env: { ...env, ...each.env },
    first: { path: '/', headers: json, body: pushBody(each, unique) },
  };
}

/** On what the deployable stands on: the framework, or Node's own server. Imports, and answers 204. */
async function bareProgram(folder: string, each: Case, clients: readonly string[]): Promise<string> {
  const imports = clients.map((name) => `import ${JSON.stringify(name)};\n`).join('');
  const program =
    each.target === undefined
      ? `import { createServer } from 'node:http';\n${imports}createServer((request, response) => request.resume().once('end', () => response.writeHead(204).end())).listen(Number(process.env.PORT));\n`
      : `import { http } from '@google-cloud/functions-framework';\n${imports}http(${JSON.stringify(each.target)}, (_, response) => response.status(204).send());\n`;
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{ "type": "module", "main": "index.js" }\n');
  await writeFile(join(folder, 'index.js'), program);
  return folder;
}

function summary({ name, clients }: Case, sides: Sides, print: (line: string) => void): object {
  const of = (side: keyof Sides, key: keyof Start): number =>
    Math.round(median(sides[side].map((start) => start[key])));
  const [ours, hello, imports] = [of('ours', 'wallMs'), of('hello', 'wallMs'), of('clients', 'wallMs')];
  const cpu = { ours: of('ours', 'cpuMs'), hello: of('hello', 'cpuMs'), clients: of('clients', 'cpuMs') };
  const ratio = Number((ours / imports).toFixed(2));
  const cpuRatio = Number((cpu.ours / cpu.clients).toFixed(2));
  print(
    `${name.padEnd(15)} ${ours} ms; hello ${hello} ms (+${ours - hello} ms); clients alone ${imports} ms, ratio ${ratio}; CPU ${cpu.ours}/${cpu.hello}/${cpu.clients} ms, ratio ${cpuRatio} (${clients.join(', ')})`,
  );
  return { ms: ours, helloMs: hello, overHelloMs: ours - hello, clientsMs: imports, ratio, cpu, cpuRatio };
}
