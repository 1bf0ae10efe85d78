/**
 * Starts the services that were chosen: this package's own servers, Google's emulators, or none where one is running
 * already. The caller that starts them closes them.
 */
import { type RunningCloudTasks, startCloudTasks } from '../cloud-tasks/index.ts';
import type { Faults } from '../faults/index.ts';
import { type FirestoreOptions, startFirestore } from '../firestore/index.ts';
import { assertFree } from '../grpc-server.ts';
import type { CallerNow } from '../iam/methods.ts';
import type { Identity } from '../identity.ts';
import type { MovableClock } from '../movable-clock.ts';
import { startPubsub } from '../pubsub/index.ts';
import { listens } from './child.ts';
import type { Closers } from './closers.ts';
import type { Holder } from './saved-stack.ts';
import { type Ports, type Service, SERVICES, TITLE } from './services.ts';

/** A server of this package. */
type Own = Holder &
  Readonly<{
    stats(): object;
    unimplemented(): Readonly<Record<string, number>>;
    /** Requests that it has sent and that are not answered. */
    inFlight(): number;
  }>;

type Served = Readonly<{
  /** `host:port`. */
  address: string;
  /** Absent: a server that is not this package's, whose clock and state are out of reach. */
  own?: Own;
  /** The REST form of its methods. */
  rest?: RunningCloudTasks['rest'];
}>;

export type Servers = Readonly<Partial<Record<Service, Served>>>;

/** Those of Google that can take the place of this package's. */
export type Replaceable = 'pubsub' | 'firestore';

export type ServerSettings = Readonly<{
  services: ReadonlySet<Service>;
  ports: Ports;
  clock: MovableClock;
  identity: Identity;
  faults: Faults;
  log: (line: string) => void;
  firestore: Pick<FirestoreOptions, 'ttl' | 'indexes' | 'triggers'>;
  maxTaskBytes: number | undefined;
  /** The base URL of the App Engine service. */
  appEngine: string | undefined;
  /** By whose rights calls are judged now; absent where policies are not enforced at all. */
  caller: CallerNow | undefined;
  /** Whether pushes, tasks and events may go to other machines. */
  remoteTargets: boolean;
  /** Google's emulators instead of this package's. */
  official: boolean;
  /** `host:port` of emulators that run already. */
  external: Readonly<Partial<Record<Replaceable, string>>>;
}>;

export async function startServers(settings: ServerSettings, closers: Closers): Promise<Servers> {
  const chosen = SERVICES.filter((service) => settings.services.has(service));
  // All or none: a port that is taken is reported before anything has started.
  await Promise.all(
    chosen
      .map((service) => settings.ports[service])
      .filter(Boolean)
      .map(assertFree),
  );
  // When one fails, the others are waited for all the same, so that they are closed.
  const started = await Promise.allSettled(
    chosen.map(async (service) => [service, await start(service, settings, closers)] as const),
  );
  return Object.fromEntries(
    started.map((each) => {
      if (each.status === 'rejected') throw each.reason;
      return each.value;
    }),
  );
}

async function start(service: Service, settings: ServerSettings, closers: Closers): Promise<Served> {
  if (service === 'tasks') return startTasks(settings, closers);
  const address = settings.external[service];
  if (address !== undefined) return external(service, address);
  if (settings.official) return official(service, settings, closers);
  return service === 'pubsub' ? startOwnPubsub(settings, closers) : startOwnFirestore(settings, closers);
}

async function startOwnPubsub(settings: ServerSettings, closers: Closers): Promise<Served> {
  const { ports, clock, identity, faults, caller, remoteTargets, log } = settings;
  const server = await closers.started(
    startPubsub({
      ...(caller && { caller }),
      port: ports.pubsub,
      clock,
      identity,
      faults,
      remoteTargets,
      log: (line) => log(`[pubsub] ${line}`),
    }),
  );
  return { address: server.address, own: server };
}

async function startOwnFirestore(settings: ServerSettings, closers: Closers): Promise<Served> {
  const { ports, clock, faults, log, firestore, remoteTargets } = settings;
  const server = await closers.started(
    startFirestore({
      port: ports.firestore,
      clock,
      faults,
      ...firestore,
      remoteTargets,
      log: (line) => log(`[firestore] ${line}`),
    }),
  );
  return { address: server.address, own: server };
}

async function startTasks(settings: ServerSettings, closers: Closers): Promise<Served> {
  const { ports, clock, identity, faults, caller, remoteTargets, log, maxTaskBytes, appEngine } = settings;
  const server = await closers.started(
    startCloudTasks({
      ...(caller && { caller }),
      port: ports.tasks,
      clock,
      identity,
      faults,
      remoteTargets,
      ...(appEngine !== undefined && { appEngine: () => appEngine }),
      ...(maxTaskBytes !== undefined && { maxTaskBytes }),
      log: (line) => log(`[tasks] ${line}`),
    }),
  );
  return { address: server.address, own: server, rest: server.rest };
}

async function official(
  service: Replaceable,
  { ports, log }: ServerSettings,
  closers: Closers,
): Promise<Served> {
  const { startOfficialFirestore, startOfficialPubsub } = await import('../official/index.ts');
  const startIt = service === 'pubsub' ? startOfficialPubsub : startOfficialFirestore;
  const port = ports[service];
  const { address } = await closers.started(
    startIt({ ...(port !== 0 && { port }), log: (line) => log(`[${service}] ${line}`) }),
  );
  return { address };
}

async function external(service: Replaceable, address: string): Promise<Served> {
  const url = URL.canParse(`http://${address}`) ? new URL(`http://${address}`) : undefined;
  if (url === undefined || url.port === '' || url.host !== address.toLowerCase()) {
    throw new Error(`the address of ${TITLE[service]} is ${JSON.stringify(address)}; accepted: host:port`);
  }
  // A literal address of version 6 is in brackets in a URL, and without them for a socket.
  if (!(await listens(Number(url.port), url.hostname.replace(/^\[|\]$/g, '')))) {
    throw new Error(`no ${TITLE[service]} emulator answers on ${address}`);
  }
  return { address };
}
