/**
 * Google's own Pub/Sub and Firestore emulators, each a `java` of its own on the loopback interface. They hold
 * everything in memory: what ends one ends its topics, messages and documents.
 */
import { freePorts } from '../free-ports.ts';
import { caller } from '../stack/grpc-call.ts';
import { type FoundOfficial, findOfficial, type MissingOfficial } from './find.ts';
import type { OfficialService } from './jars.ts';
import { type Launched, launch, PortInUseError } from './launch.ts';

export type OfficialOptions<S extends OfficialService> = Readonly<{
  /** Default: a free one. */
  port?: number;
  /** Every line that the emulator writes; Firestore's writes a stack trace for each lock timeout. */
  log?: (line: string) => void;
  /** What `findOfficial` found; default: it is called. */
  found?: FoundOfficial<S> | MissingOfficial;
}>;

export type RunningOfficial = Readonly<{
  /** For PUBSUB_EMULATOR_HOST or FIRESTORE_EMULATOR_HOST. */
  address: string;
  port: number;
  pid: number | undefined;
  guardPid: number | undefined;
  /** Resolves when no process and no port of it is left. May be called again. */
  close(): Promise<void>;
}>;

export type OfficialPubsub = RunningOfficial & Readonly<{ reset(): Promise<void> }>;

export type OfficialFirestore = RunningOfficial &
  Readonly<{
    /** Deletes every document of one database; it knows no way to delete those of all. */
    reset(projectId: string, databaseId?: string): Promise<void>;
  }>;

const FIRESTORE_MAIN = 'com.google.cloud.datastore.emulator.firestore.CloudFirestore';
/** A port that was free may be taken before java has it; only for ports that we chose. */
const ATTEMPTS = 3;

/** Rejects with one line: what is missing, a port in use, or the last lines of a start that failed (60 s at most). */
export async function startOfficialPubsub(options: OfficialOptions<'pubsub'> = {}): Promise<OfficialPubsub> {
  const { java, jars } = present(options.found ?? findOfficial({ services: ['pubsub'] }));
  const running = await onPort(options.port, ([port = 0]) =>
    launch({
      title: "Google's Pub/Sub emulator",
      command: java,
      args: [...QUIET_JVM, '-jar', jars.pubsub, '--host=127.0.0.1', `--port=${port}`],
      port,
      readyLine: /Server started, listening on \d+/,
      answers: () => answers(port, '/google.pubsub.v1.Publisher/ListTopics', 'projects/p'),
      log: options.log ?? ignore,
    }),
  );
  return { ...running, reset: () => ask('POST', `http://${running.address}/reset`) };
}

/** As `startOfficialPubsub`. It always opens a second port, for the web console that does not exist here. */
export async function startOfficialFirestore(
  options: OfficialOptions<'firestore'> = {},
): Promise<OfficialFirestore> {
  const { java, jars } = present(options.found ?? findOfficial({ services: ['firestore'] }));
  const running = await onPort(options.port, ([port = 0, websocketPort]) =>
    launch({
      title: "Google's Firestore emulator",
      command: java,
      // Its messages are English in any case, and gcloud's jar names no main class.
      args: [
        ...QUIET_JVM,
        '-Duser.language=en',
        '-cp',
        jars.firestore,
        FIRESTORE_MAIN,
        '--host=127.0.0.1',
        `--port=${port}`,
        `--websocket_port=${websocketPort}`,
      ],
      port,
      readyLine: /Dev App Server is now running/,
      answers: () => answers(port, '/google.firestore.v1.Firestore/BeginTransaction', DATABASE),
      log: options.log ?? ignore,
    }),
  );
  const documents = (projectId: string, databaseId: string): string =>
    `http://${running.address}/emulator/v1/projects/${projectId}/databases/${databaseId}/documents`;
  return {
    ...running,
    reset: (projectId, databaseId = '(default)') => ask('DELETE', documents(projectId, databaseId)),
  };
}

/** Otherwise each JVM keeps a file in the temporary folder, and leaves it there when it is killed. */
const QUIET_JVM = ['-XX:-UsePerfData'] as const;
/** The transaction reads nothing, so it locks nothing; calls about what is not there fill its log with stack traces. */
const DATABASE = 'projects/p/databases/(default)';
const ignore = (): void => undefined;

function present<S extends OfficialService>(found: FoundOfficial<S> | MissingOfficial): FoundOfficial<S> {
  if (!found.ok) throw new Error(found.missing);
  return found;
}

async function onPort(
  wanted: number | undefined,
  start: (ports: readonly number[]) => Promise<Launched>,
): Promise<RunningOfficial> {
  for (let attempt = 1; ; attempt++) {
    const [free = 0, second = 0] = await freePorts(2);
    const port = wanted ?? free;
    try {
      const launched = await start([port, second]);
      return { address: `127.0.0.1:${port}`, port, ...launched };
    } catch (error) {
      if (!(error instanceof PortInUseError) || wanted !== undefined || attempt === ATTEMPTS) throw error;
    }
  }
}

/** Whether the server gives any status of its own to a request whose first field is a resource's name. */
async function answers(port: number, path: string, resource: string): Promise<boolean> {
  const bytes = Buffer.from(resource);
  const probe = caller(port, {
    probe: {
      path,
      requestStream: false,
      responseStream: false,
      // Protobuf: tag 1, length, bytes.
      requestSerialize: () => Buffer.concat([Buffer.from([0x0a, bytes.length]), bytes]),
      requestDeserialize: (reply: Buffer) => reply,
      responseSerialize: (reply: Buffer) => reply,
      responseDeserialize: (reply: Buffer) => reply,
    },
  });
  try {
    await probe.call('probe', {});
    return true;
  } catch (error) {
    const { code } = error as { code?: unknown };
    return code !== UNAVAILABLE && code !== DEADLINE_EXCEEDED;
  } finally {
    probe.close();
  }
}

const DEADLINE_EXCEEDED = 4;
const UNAVAILABLE = 14;

async function ask(method: 'POST' | 'DELETE', url: string): Promise<void> {
  const reply = await fetch(url, { method });
  const text = await reply.text();
  if (!reply.ok) throw new Error(`${method} ${url} was answered ${reply.status}: ${text.trim()}`);
}
