/**
 * The environment and command of each process: what a deployed instance would be given, with the local addresses.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { type Child, child } from './child.ts';
import {
  DEAD_LETTERS,
  type FunctionName,
  inputOf,
  LOCATION,
  PACKAGES,
  PROJECT,
  type ProgramPorts,
  QUEUE,
  subscriptionName,
  topicName,
  urlOf,
  WAKE_QUEUE,
} from './topology.ts';

export type ChildSettings = Readonly<{
  ports: ProgramPorts;
  /** Of the servers and the control API. */
  addresses: Readonly<Record<'pubsub' | 'firestore' | 'tasks' | 'control', string>>;
  /** Redis for the claims; absent: Firestore. */
  redisUrl: string | undefined;
  /** The file with the sagas that the function `saga` runs. */
  sagas: string;
  /** Distinguishes this run of the stack from others: letters, digits and hyphens. */
  runName: string;
  log: (line: string) => void;
}>;

export function functionChild(name: FunctionName, settings: ChildSettings): Child {
  const { ports, addresses, redisUrl, runName, log, sagas } = settings;
  const framework = createRequire(join(PACKAGES.functions, 'package.json')).resolve(
    '@google-cloud/functions-framework',
  );
  return child({
    name,
    port: ports[name],
    log,
    args: [
      join(dirname(framework), 'main.js'),
      `--target=${name}`,
      `--source=${PACKAGES.functions}`,
      `--port=${ports[name]}`,
      '--signature-type=http',
    ],
    env: {
      ...common(addresses),
      NODE_ENV: 'production',
      FUNCTION_TARGET: name,
      SOURCE_SUBSCRIPTION: subscriptionName(`${inputOf(name)}-sub`),
      ...(name === 'saga'
        ? { SAGA_TOPIC: topicName(inputOf(name)), SAGA_MODULE: sagas }
        : { SOURCE_TOPIC: topicName(inputOf(name)), TARGET_TOPIC: topicName(`${name}-out`) }),
      // Short leases: what a killed process held is free again soon. A stream's is the shortest that `pipeline` takes:
      // half of it is kept for the handler, and the rest is enough for stores that take ten times as long as usual.
      DEDUP_LEASE: '5s',
      ORDER_LEASE: '10s',
      ...(ORDERED.includes(name) && {
        WAKE_QUEUE,
        WAKE_URL: urlOf(ports[name]),
        WAKE_SERVICE_ACCOUNT: `${name}@${PROJECT}.iam.gserviceaccount.com`,
        OUTBOX: 'on',
      }),
      ...(redisUrl !== undefined &&
        CLAIMING.includes(name) && {
          DEDUP_STORE: 'redis',
          REDIS_URL: redisUrl,
          // It outlives the stack, whose topics and messages are new each time: what was seen before is not ours.
          REDIS_PREFIX: `${runName}:`,
        }),
    },
  });
}

export function republisherChild(settings: ChildSettings): Child {
  const { ports, addresses, log } = settings;
  return child({
    name: 'republisher',
    port: ports.republisher,
    log,
    args: [join(PACKAGES.appengine, 'src/main.ts')],
    env: {
      ...common(addresses),
      PORT: String(ports.republisher),
      // What App Engine sets, so that its headers are trusted as they are there. Not GAE_INSTANCE, nor K_SERVICE for the
      // functions: what has one is a deployed instance, which refuses the addresses of emulators.
      GAE_ENV: 'standard',
      GAE_SERVICE: 'default',
      GAE_APPLICATION: PROJECT,
      ALLOWED_TOPICS: ['delay-out', 'pipeline-in', 'saga'].map(topicName).join(','),
    },
  });
}

/** Those that deliver in order: they wake streams, and publish what is left in the outbox. */
const ORDERED: readonly FunctionName[] = ['fifo', 'pipeline'];
/** Those that keep claims. */
const CLAIMING: readonly FunctionName[] = ['dedup', 'pipeline'];

function common(addresses: ChildSettings['addresses']): Record<string, string> {
  return {
    GOOGLE_CLOUD_PROJECT: PROJECT,
    PUBSUB_EMULATOR_HOST: addresses.pubsub,
    FIRESTORE_EMULATOR_HOST: addresses.firestore,
    CLOUD_TASKS_EMULATOR_HOST: addresses.tasks,
    LOCAL_STACK_CONTROL: addresses.control,
    // Otherwise Google's clients first look for a metadata server that a laptop does not have.
    METADATA_SERVER_DETECTION: 'none',
    DEAD_LETTER_TOPIC: topicName(DEAD_LETTERS),
    DELAY_QUEUE: QUEUE,
    TASKS_LOCATION: LOCATION,
  };
}
