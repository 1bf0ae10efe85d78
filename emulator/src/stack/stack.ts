/**
 * The whole toolkit on one machine: three servers in this process, the four functions and the republisher as
 * processes of their own, topics and queue created, the sweep driven.
 *
 * Starting either ends with everything ready or with nothing left running. `close()` may be called at any time and
 * more than once.
 */
import { randomUUID } from 'node:crypto';
import { startCloudTasks } from '../cloud-tasks/index.ts';
import { startFirestore } from '../firestore/index.ts';
import { freePorts } from '../free-ports.ts';
import { assertFree } from '../grpc-server.ts';
import { identity } from '../identity.ts';
import { movableClock } from '../movable-clock.ts';
import { startPubsub } from '../pubsub/index.ts';
import { quiet } from '../quiet.ts';
import { functionChild, republisherChild } from './children.ts';
import { startControl } from './control.ts';
import { provision } from './provision.ts';
import { pubsubRest } from './rest.ts';
import { assertRedis } from './redis-check.ts';
import { type StackClock, stackClock } from './stack-clock.ts';
import { type Sweeping, startSweeping } from './sweeping.ts';
import {
  type FunctionName,
  FUNCTIONS,
  PORT_COUNT,
  type Ports,
  portsFrom,
  portsOf,
  PROJECT,
} from './topology.ts';

export type StackOptions = Readonly<{
  /** Nine ports from here on; absent: any that are free. */
  portBase?: number;
  /** Where the claims of `once` live. Default: firestore. */
  store?: 'firestore' | 'redis';
  /** Required with `store: 'redis'`. */
  redisUrl?: string;
  /** What the servers and processes say, a line at a time. Default: nothing. */
  log?: (line: string) => void;
}>;

export type StackAddresses = Readonly<{
  pubsub: string;
  firestore: string;
  tasks: string;
  control: string;
  functions: Readonly<Record<FunctionName, string>>;
  republisher: string;
  project: string;
}>;

export type Stack = Readonly<{
  addresses: StackAddresses;
  clock: StackClock;
  functions: Readonly<{
    /** SIGKILL to all of them, as if their instances had crashed. Resolves when they are gone. */
    kill(): Promise<void>;
    /** Starts them again where they were. Resolves when they are ready. */
    start(): Promise<void>;
  }>;
  close(): Promise<void>;
}>;

export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const { store = 'firestore', redisUrl, log = () => {} } = options;
  if (store === 'redis') await assertRedis(redisUrl);
  const ports =
    options.portBase === undefined ? portsOf(await freePorts(PORT_COUNT)) : portsFrom(options.portBase);
  await Promise.all(Object.values(ports).map(assertFree));

  const closers: (() => Promise<void>)[] = [];
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closing ??= closeInReverse(closers);
    return closing;
  };
  try {
    return await startAll(ports, store === 'redis' ? redisUrl : undefined, log, closers, close);
  } catch (error) {
    await close();
    throw error;
  }
}

async function startAll(
  ports: Ports,
  redisUrl: string | undefined,
  log: (line: string) => void,
  closers: (() => Promise<void>)[],
  close: () => Promise<void>,
): Promise<Stack> {
  let sweeping: Sweeping | undefined;
  let underWay = (): number => 0;
  const clock = movableClock(() => quiet(() => underWay()));
  const control = stackClock(clock, async () => sweeping?.once());
  closers.push(async () => clock.close());
  const addresses = addressesOf(ports);
  const signer = identity(clock);
  const started = async <Part extends { close(): Promise<void> }>(part: Promise<Part>): Promise<Part> => {
    const ready = await part;
    closers.push(() => ready.close());
    return ready;
  };
  const [pubsub, firestore, tasks] = await Promise.all([
    started(
      startPubsub({ port: ports.pubsub, clock, identity: signer, log: (line) => log(`[pubsub] ${line}`) }),
    ),
    started(startFirestore({ port: ports.firestore, clock, log: (line) => log(`[firestore] ${line}`) })),
    started(
      startCloudTasks({
        port: ports.tasks,
        clock,
        appEngine: () => addresses.republisher,
        identity: signer,
        log: (line) => log(`[tasks] ${line}`),
      }),
    ),
  ]);
  const state = () => ({
    addresses,
    pubsub: pubsub.stats(),
    firestore: firestore.stats(),
    tasks: tasks.stats(),
  });
  await started(
    startControl(ports.control, {
      state,
      clock: control,
      pubsub: pubsubRest(ports.pubsub),
      tasks: tasks.rest,
      jwks: signer.jwks,
    }),
  );

  const settings = { ports, redisUrl, runName: `local-${randomUUID()}`, log };
  const functions = FUNCTIONS.map((name) => functionChild(name, settings));
  const republisher = republisherChild(settings);
  const children = [...functions, republisher];
  closers.push(async () => void (await Promise.all(children.map((part) => part.stop()))));
  await Promise.all(children.map((part) => part.start()));
  await provision(ports);
  const sweeps = startSweeping(addresses, log);
  closers.push(() => sweeps.close());
  sweeping = sweeps;
  underWay = () => pubsub.stats().pushing + tasks.stats().inFlight + sweeps.running();

  return {
    addresses,
    clock: control,
    functions: {
      kill: async () => void (await Promise.all(functions.map((part) => part.kill()))),
      start: async () => void (await Promise.all(functions.map((part) => part.start()))),
    },
    close,
  };
}

function addressesOf(ports: Ports): StackAddresses {
  const urls = FUNCTIONS.map((name) => [name, `http://127.0.0.1:${ports[name]}`]);
  return {
    pubsub: `127.0.0.1:${ports.pubsub}`,
    firestore: `127.0.0.1:${ports.firestore}`,
    tasks: `127.0.0.1:${ports.tasks}`,
    control: `http://127.0.0.1:${ports.control}`,
    functions: Object.fromEntries(urls) as Record<FunctionName, string>,
    republisher: `http://127.0.0.1:${ports.republisher}`,
    project: PROJECT,
  };
}

/** What started last stops first, so that nothing is called that is already gone. */
async function closeInReverse(closers: (() => Promise<void>)[]): Promise<void> {
  for (const closer of closers.splice(0).toReversed()) await closer();
}
