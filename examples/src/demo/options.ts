/**
 * The demo's command line. Anything that is not understood is refused: a misspelled option must not start a run that
 * does something else.
 */
import { parseArgs } from 'node:util';

/** The command was called wrongly: one line for people, exit code 2. */
export class UsageError extends Error {}

export type DemoOptions = Readonly<{
  /** Absent: the file that is shipped. */
  file?: string;
  json: boolean;
  store: 'firestore' | 'redis';
  redisUrl?: string;
  /** On Google's own Pub/Sub and Firestore emulators. */
  official: boolean;
  help: boolean;
}>;

export const USAGE = `Usage: npm run demo -- [options]

  --file FILE         events to publish, one JSON object a line (default: the shipped examples/events.ndjson)
  --json              end with one line of JSON on standard output
  --store STORE       where the claims of "once" are kept: firestore (default) or redis
  --redis-url URL     with --store redis: redis://host:port
  --official          on Google's own Pub/Sub and Firestore emulators, where they are installed
  --help              this text

Exit code 0: every guarantee held. 1: one did not, or the run failed. 2: wrong options or a bad events file.`;

/** Throws UsageError. */
export function parseOptions(args: readonly string[]): DemoOptions {
  const { file, json, store, 'redis-url': redisUrl, official, help } = parse(args);
  if (store !== 'firestore' && store !== 'redis') {
    throw new UsageError(`--store is ${JSON.stringify(store)}; accepted: firestore, redis`);
  }
  if (store === 'redis' && redisUrl === undefined && !help) {
    throw new UsageError('--redis-url is missing; accepted: redis://host:port (required with --store redis)');
  }
  if (store !== 'redis' && redisUrl !== undefined) {
    throw new UsageError('--redis-url is given; accepted: only with --store redis');
  }
  if (redisUrl !== undefined && !isRedisUrl(redisUrl)) {
    throw new UsageError(`--redis-url is ${JSON.stringify(redisUrl)}; accepted: redis://host:port`);
  }
  if (file === '') throw new UsageError('--file is empty; accepted: the path of an events file');
  return {
    ...(file !== undefined && { file }),
    json,
    store,
    ...(redisUrl !== undefined && { redisUrl }),
    official,
    help,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        file: { type: 'string' },
        json: { type: 'boolean', default: false },
        store: { type: 'string', default: 'firestore' },
        'redis-url': { type: 'string' },
        official: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }).values;
  } catch (error) {
    const text = error instanceof Error ? error.message.replaceAll(/\s+/g, ' ') : String(error);
    throw new UsageError(`${text}; see npm run demo -- --help`);
  }
}

function isRedisUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return (protocol === 'redis:' || protocol === 'rediss:') && hostname !== '';
}
