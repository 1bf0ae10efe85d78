/**
 * Servers to measure: started, timed until each has answered a call over its socket, and ended.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePorts } from 'pubsub-guarantees-emulator';
import { startOfficialFirestore, startOfficialPubsub } from 'pubsub-guarantees-emulator/official';
import type { JavaEmulators } from './java.ts';
import { answers, FIRESTORE, type Probe, PUBSUB, TASKS } from './probe.ts';

export type RunningServers = Readonly<{
  /** From the start of the first process until every server had answered. */
  readyMs: number;
  pubsub: string;
  firestorePort: number;
  /** Resident memory of all processes, in megabytes; undefined where /proc does not say. */
  residentMb(): Promise<number | undefined>;
  close(): Promise<void>;
}>;

const LIMIT_MS = 60_000;
const POLL_MS = 10;
const EMBEDDED = fileURLToPath(new URL('./embedded.ts', import.meta.url));
/** As the stack's own command starts it. */
const FLAGS = ['--conditions=source', '--max-semi-space-size=16'];

type EmbeddedOptions = Readonly<{
  /** How much longer each call to Firestore takes (default 0). */
  storeDelayMs?: number;
}>;

/** Pub/Sub, Firestore and Cloud Tasks of the local stack, in one process. */
export async function startEmbedded({ storeDelayMs = 0 }: EmbeddedOptions = {}): Promise<RunningServers> {
  const probes = [PUBSUB, FIRESTORE, TASKS];
  const ports = await freePorts(probes.length);
  const begun = performance.now();
  const child = spawn(process.execPath, [...FLAGS, EMBEDDED, ...[...ports, storeDelayMs].map(String)], {
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  try {
    await Promise.all(probes.map((probe, index) => untilAnswer(probe, ports[index] ?? 0, child)));
  } catch (error) {
    await end(child);
    throw error;
  }
  const [pubsub, firestorePort = 0] = ports;
  return {
    readyMs: Math.round(performance.now() - begun),
    pubsub: `127.0.0.1:${pubsub}`,
    firestorePort,
    residentMb: () => residentMb([child.pid]),
    close: () => end(child),
  };
}

/**
 * Google's Pub/Sub and Firestore emulators, a process each. What starts them also waits for an answered call, so that
 * both sides are measured by the same rule.
 */
export async function startOfficial(found: JavaEmulators): Promise<RunningServers> {
  const begun = performance.now();
  const [pubsub, firestore] = await Promise.allSettled([
    startOfficialPubsub({ found }),
    startOfficialFirestore({ found }),
  ]);
  if (pubsub.status === 'rejected' || firestore.status === 'rejected') {
    for (const each of [pubsub, firestore]) if (each.status === 'fulfilled') await each.value.close();
    throw pubsub.status === 'rejected' ? pubsub.reason : (firestore as PromiseRejectedResult).reason;
  }
  return {
    readyMs: Math.round(performance.now() - begun),
    pubsub: pubsub.value.address,
    firestorePort: firestore.value.port,
    residentMb: () => residentMb([pubsub.value.pid, firestore.value.pid]),
    close: async () => void (await Promise.all([pubsub.value.close(), firestore.value.close()])),
  };
}

async function untilAnswer(probe: Probe, port: number, child: ChildProcess): Promise<void> {
  for (const limit = performance.now() + LIMIT_MS; performance.now() < limit; await wait(POLL_MS)) {
    if (child.exitCode !== null) throw new Error(`the servers ended before they answered ${probe.method}`);
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

async function residentMb(pids: readonly (number | undefined)[]): Promise<number | undefined> {
  try {
    const texts = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/status`, 'utf8')));
    const kilobytes = texts.map((text) => Number(/^VmRSS:\s+(\d+) kB$/m.exec(text)?.[1]));
    return Math.round(kilobytes.reduce((sum, value) => sum + value, 0) / 1_024);
  } catch {
    return undefined;
  }
}
