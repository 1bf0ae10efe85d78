/**
 * Servers to measure: started, timed until each has answered a call over its socket, and ended.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { freePorts } from 'pubsub-guarantees-emulator';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type JavaEmulators } from './java.ts';
import { answers, FIRESTORE, type Probe, PUBSUB, TASKS } from './probe.ts';

export type RunningServers = Readonly<{
  /** From the start of the first process until every server had answered. */
  readyMs: number;
  pubsub: string;
  firestorePort: number;
  /** Resident memory of all processes, in megabytes; undefined where /proc does not tell. */
  residentMb(): Promise<number | undefined>;
  close(): Promise<void>;
}>;

type Command = readonly [file: string, args: readonly string[]];

const LIMIT_MS = 60_000;
const POLL_MS = 10;
const EMBEDDED = fileURLToPath(new URL('./embedded.ts', import.meta.url));

/** Pub/Sub, Firestore and Cloud Tasks of the local stack, in one process. */
export async function startEmbedded(): Promise<RunningServers> {
  return start([PUBSUB, FIRESTORE, TASKS], (ports) => [
    [process.execPath, ['--conditions=source', EMBEDDED, ...ports.map(String)]],
  ]);
}

/** Google's Pub/Sub and Firestore emulators, a process each. */
export async function startOfficial(official: JavaEmulators): Promise<RunningServers> {
  return start([PUBSUB, FIRESTORE], ([pubsub = 0, firestore = 0]) => [
    ['java', official.pubsub(pubsub)],
    ['java', official.firestore(firestore)],
  ]);
}

async function start(
  probes: readonly Probe[],
  commands: (ports: readonly number[]) => readonly Command[],
): Promise<RunningServers> {
  const ports = await freePorts(probes.length);
  const begun = performance.now();
  const children = commands(ports).map(([file, args]) =>
    spawn(file, args, { stdio: ['pipe', 'ignore', 'ignore'] }),
  );
  const close = async (): Promise<void> => void (await Promise.all(children.map(end)));
  try {
    await Promise.all(probes.map((probe, index) => untilAnswer(probe, ports[index] ?? 0, children)));
  } catch (error) {
    await close();
    throw error;
  }
  const [pubsub, firestorePort = 0] = ports;
  return {
    readyMs: Math.round(performance.now() - begun),
    pubsub: `127.0.0.1:${pubsub}`,
    firestorePort,
    residentMb: () => residentMb(children),
    close,
  };
}

async function untilAnswer(probe: Probe, port: number, children: readonly ChildProcess[]): Promise<void> {
  for (const limit = performance.now() + LIMIT_MS; performance.now() < limit; await wait(POLL_MS)) {
    if (children.some((child) => child.exitCode !== null)) {
      throw new Error(`a server ended before it answered: ${probe.method}`);
    }
    if (await answers(probe, port)) return;
  }
  throw new Error(`no answer to ${probe.method} within ${LIMIT_MS} ms`);
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await gone;
}

async function residentMb(children: readonly ChildProcess[]): Promise<number | undefined> {
  try {
    const texts = await Promise.all(children.map(({ pid }) => readFile(`/proc/${pid}/status`, 'utf8')));
    const kilobytes = texts.map((text) => Number(/^VmRSS:\s+(\d+) kB$/m.exec(text)?.[1]));
    return Math.round(kilobytes.reduce((sum, value) => sum + value, 0) / 1_024);
  } catch {
    return undefined;
  }
}
