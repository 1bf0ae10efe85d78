/**
 * The command line of `npm start`, and what it prints when everything is ready.
 */
import { parseArgs } from 'node:util';
import type { StackAddresses, StackOptions } from './stack.ts';
import { DEAD_LETTERS, DEFAULT_PORT_BASE, FUNCTIONS, HIGHEST_PORT_BASE } from './topology.ts';

const HELP = `Starts Pub/Sub, Firestore, Cloud Tasks, the four functions and the republisher on 127.0.0.1.

  --port-base N        first of nine ports (default ${DEFAULT_PORT_BASE})
  --json               one line of JSON when ready, logs on standard error
  --store NAME         where claims are kept: firestore (default) or redis
  --redis-url URL      with --store redis: redis://host:port
  --help               this text`;

export type StartOptions = Readonly<{ stack: StackOptions; json: boolean; help: string | undefined }>;

export class OptionError extends Error {}

/** Throws an OptionError of one line for anything that is not understood. */
export function readOptions(args: readonly string[]): StartOptions {
  const values = parse(args);
  const { store, 'redis-url': redisUrl } = values;
  if (store !== 'firestore' && store !== 'redis') {
    throw new OptionError(`--store is ${JSON.stringify(store)}; accepted: firestore, redis`);
  }
  if (redisUrl !== undefined && store !== 'redis')
    throw new OptionError('--redis-url is only for --store redis');
  return {
    stack: { portBase: portBase(values['port-base']), store, ...(redisUrl !== undefined && { redisUrl }) },
    json: values.json,
    help: values.help ? HELP : undefined,
  };
}

function parse(args: readonly string[]) {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        'port-base': { type: 'string' },
        json: { type: 'boolean', default: false },
        store: { type: 'string', default: 'firestore' },
        'redis-url': { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    });
    return values;
  } catch (error) {
    const [text = ''] = (error instanceof Error ? error.message : String(error)).split(/\. |\n/);
    throw new OptionError(`${text}; options go behind two hyphens: npm start -- --help`);
  }
}

function portBase(text: string | undefined): number {
  if (text === undefined) return DEFAULT_PORT_BASE;
  const base = Number(text);
  if (!/^\d{1,5}$/.test(text) || base < 1_024 || base > HIGHEST_PORT_BASE) {
    throw new OptionError(
      `--port-base is ${JSON.stringify(text)}; accepted: a whole number from 1024 to ${HIGHEST_PORT_BASE}`,
    );
  }
  return base;
}

export function summary(addresses: StackAddresses): string {
  const { pubsub, firestore, tasks, control, functions, republisher, project } = addresses;
  return [
    'ready',
    '',
    `  export PUBSUB_EMULATOR_HOST=${pubsub}`,
    `  export FIRESTORE_EMULATOR_HOST=${firestore}`,
    `  export CLOUD_TASKS_EMULATOR_HOST=${tasks}`,
    `  export GOOGLE_CLOUD_PROJECT=${project} METADATA_SERVER_DETECTION=none`,
    `  export CLOUDSDK_API_ENDPOINT_OVERRIDES_PUBSUB=${control}/ CLOUDSDK_AUTH_DISABLE_CREDENTIALS=true CLOUDSDK_CORE_PROJECT=${project}`,
    '',
    ...FUNCTIONS.map(
      (name) => `  ${name.padEnd(9)} ${name}-in → ${functions[name]} → ${name}-out (${name}-out-sub)`,
    ),
    `  republisher ${republisher}`,
    `  control     ${control}/state`,
    `  what can never be delivered: ${DEAD_LETTERS} (${DEAD_LETTERS}-sub)`,
    '',
    'Ctrl-C stops everything.',
  ].join('\n');
}
