/**
 * The whole toolkit on one machine: a stack, its topics and queue, the five functions and the republisher as processes
 * of their own, and the sweep driven. It starts programs of this repository, and so runs inside it alone.
 *
 * Starting it ends with everything ready or with nothing left running.
 */
import { existsSync } from 'node:fs';
import type { Trigger } from '../firestore/index.ts';
import { freePorts } from '../free-ports.ts';
import { assertFree } from '../grpc-server.ts';
import { type JobsDatabase, startJobsDatabase } from '../postgres/jobs-database.ts';
import { openStack } from './open.ts';
import { type FunctionUrls, type Programs, startPrograms } from './programs.ts';
import { NEVER_EXPIRES, pushEndpoint } from './provision.ts';
import { assertRedis } from './redis-check.ts';
import type { SavedStack } from './saved-stack.ts';
import { LISTENERS } from './services.ts';
import type { Stack, StackAddresses } from './stack.ts';
import type { StackOptions } from './stack-options.ts';
import {
  EXAMPLE_SAGAS,
  FUNCTIONS,
  OUTBOX_ROWS,
  PACKAGES,
  PROGRAMS,
  type ProgramPorts,
  programPorts,
  SUBSCRIPTIONS,
  urlOf,
} from './topology.ts';

export type ToolkitOptions = Omit<StackOptions, 'services' | 'project' | 'appEngine' | 'seed'> &
  Readonly<{
    /** Where the claims of `once` live. Default: firestore. */
    store?: 'firestore' | 'redis';
    /** Required with `store: 'redis'`. Then nothing can be saved, loaded or reset: the claims are not the stack's. */
    redisUrl?: string;
    /** A file whose default export is the list of the sagas that the function `saga` runs. Default: the example's. */
    sagas?: string;
    /** Whether a trigger on the outbox's default collection tells the function `saga` of each row. Default: false. */
    outboxTrigger?: boolean;
    /** Also a Postgres with the tables of jobs. Then nothing can be saved, loaded or reset. Default: false. */
    jobs?: boolean;
  }>;

/** `postgres`: a URL for clients, with `jobs`. */
export type ToolkitAddresses = StackAddresses &
  Readonly<{ functions: FunctionUrls; republisher: string; postgres?: string }>;

/** Ten ports in a row from `portBase`: those of the stack, the republisher, `dedup`, `delay`, `fifo`, `pipeline`, `saga`. */
export type Toolkit = Omit<Stack, 'addresses'> &
  Readonly<{
    addresses: ToolkitAddresses;
    functions: Programs['functions'];
  }>;

/** Rejects as `startStack` does, and when a program does not start or Redis does not answer. */
export async function startToolkit(options: ToolkitOptions = {}): Promise<Toolkit> {
  const { jobs = false, ...without } = options;
  if (!jobs) return started(without);
  const database = await startJobsDatabase();
  try {
    const toolkit = await started(without, database);
    const close = async (): Promise<void> => {
      try {
        await toolkit.close();
      } finally {
        await database.close();
      }
    };
    return { ...toolkit, close };
  } catch (error) {
    await database.close();
    throw error;
  }
}

async function started(options: Omit<ToolkitOptions, 'jobs'>, database?: JobsDatabase): Promise<Toolkit> {
  const { store = 'firestore', redisUrl, sagas = EXAMPLE_SAGAS, log = () => undefined, ...others } = options;
  const { outboxTrigger = false, triggers = [], ...rest } = others;
  for (const folder of Object.values(PACKAGES)) {
    if (!existsSync(folder)) throw new Error(`the toolkit's programs are not here: there is no ${folder}`);
  }
  const withRedis = store === 'redis';
  if (withRedis) await assertRedis(redisUrl);
  const ports = await choosePorts(options.portBase);
  const urls = Object.fromEntries(FUNCTIONS.map((name) => [name, urlOf(ports[name])])) as FunctionUrls;
  let programs: Programs | undefined;
  const stack = await openStack(
    {
      ...rest,
      log,
      appEngine: urlOf(ports.republisher),
      triggers: outboxTrigger ? [...triggers, outboxTriggerTo(urls.saga)] : triggers,
    },
    {
      addresses: {
        functions: urls,
        republisher: urlOf(ports.republisher),
        ...(database !== undefined && { postgres: database.url }),
      },
      saved: { functions: urls },
      adopt: (saved) => lasting(repointed(saved, urls)),
      ...(withRedis && { unsavable: 'the claims are in Redis, which is not the stack’s' }),
      ...(database !== undefined && { unsavable: 'the jobs are in Postgres, which is not the stack’s' }),
      async start(addresses, closers) {
        const pushRetryPolicy = options.official !== true && options.external?.pubsub === undefined;
        const settings = {
          ports,
          addresses,
          sagas,
          redisUrl: withRedis ? redisUrl : undefined,
          log,
          pushRetryPolicy,
        };
        programs = await startPrograms(settings, urls, closers);
        return programs.extended;
      },
    },
  );
  const { functions } = programs ?? neverStarted();
  return { ...stack, addresses: stack.addresses as ToolkitAddresses, functions };
}

/** What Terraform makes with `outbox_trigger`: to a function that has the relay. */
const outboxTriggerTo = (functionUrl: string): Trigger => ({
  collection: OUTBOX_ROWS,
  url: `${functionUrl}/outbox`,
});

/** The ports of the programs: after those of the stack, or any that are free. */
async function choosePorts(base: number | undefined): Promise<ProgramPorts> {
  if (base === undefined) return programPorts(await freePorts(PROGRAMS.length));
  const ports = PROGRAMS.map((_, index) => base + LISTENERS.length + index);
  await Promise.all(ports.map(assertFree));
  return programPorts(ports);
}

/**
 * The pushes of a saved toolkit went to its own functions, which are somewhere else now: those of another toolkit, if
 * one runs there.
 */
function repointed(saved: SavedStack, urls: FunctionUrls): SavedStack {
  const moved = new Map(
    FUNCTIONS.flatMap((name) => {
      const before = saved.functions?.[name];
      return before === undefined ? [] : [[pushEndpoint(before), pushEndpoint(urls[name])] as const];
    }),
  );
  const text = JSON.stringify(saved.pubsub, (key, value: unknown) =>
    key === 'pushEndpoint' && typeof value === 'string' ? (moved.get(value) ?? value) : value,
  );
  return text === undefined ? saved : { ...saved, pubsub: JSON.parse(text) as object };
}

/** The topology's subscriptions never expire, also those of a state that was saved when they still did. */
function lasting(saved: SavedStack): SavedStack {
  const { pubsub } = saved;
  if (pubsub === undefined) return saved;
  const subscriptions: unknown = Reflect.get(pubsub, 'subscriptions');
  // Whatever else it is, the server refuses it and says where.
  if (!Array.isArray(subscriptions)) return saved;
  const isOurs = (each: unknown): each is Readonly<{ name: string }> =>
    typeof each === 'object' && each !== null && SUBSCRIPTIONS.has(String(Reflect.get(each, 'name')));
  const changed = subscriptions.map((each: unknown) => (isOurs(each) ? { ...each, ...NEVER_EXPIRES } : each));
  return { ...saved, pubsub: { ...pubsub, subscriptions: changed } };
}

function neverStarted(): never {
  throw new Error('the programs of the toolkit were not started');
}
