/**
 * How long a developer waits: from starting the processes until every server has answered a call over its socket.
 * The local stack's three servers against the two that Google ships, in turn, several times.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createServer, type AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { answers, FIRESTORE, PUBSUB, TASKS, type Probe } from './probe.ts';
import { officialEmulators } from './java.ts';

const ROUNDS = 5;
const LIMIT_MS = 30_000;
const POLL_MS = 10;
const SERVERS = fileURLToPath(new URL('./servers.ts', import.meta.url));

export async function ready(print: (line: string) => void): Promise<object> {
  const official = officialEmulators(print);
  const embedded: number[] = [];
  const java: number[] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    embedded.push(
      await timeToReady([PUBSUB, FIRESTORE, TASKS], (ports) => [
        [process.execPath, ['--conditions=source', SERVERS, ...ports.map(String)]],
      ]),
    );
    if (official !== undefined) {
      java.push(
        await timeToReady([PUBSUB, FIRESTORE], ([pubsub = 0, firestore = 0]) => [
          ['java', official.pubsub.args(pubsub)],
          ['java', official.firestore.args(firestore)],
        ]),
      );
    }
    print(`round ${round}: embedded ${embedded.at(-1)} ms${official ? `, official ${java.at(-1)} ms` : ''}`);
  }
  const ours = median(embedded);
  if (official === undefined) return { embeddedMs: ours };
  const theirs = median(java);
  print('');
  print('                       median ms to the first answer of every server');
  print(`embedded (3 servers)   ${ours}`);
  print(`official (2 servers)   ${theirs}`);
  return { embeddedMs: ours, officialMs: theirs, ratio: Number((ours / theirs).toFixed(3)) };
}

type Command = readonly [file: string, args: readonly string[]];

async function timeToReady(
  probes: readonly Probe[],
  commands: (ports: readonly number[]) => readonly Command[],
): Promise<number> {
  const ports = await freePorts(probes.length);
  const start = performance.now();
  const children = commands(ports).map(([file, args]) =>
    spawn(file, args, { stdio: ['pipe', 'ignore', 'ignore'] }),
  );
  try {
    await Promise.all(probes.map((probe, index) => untilAnswer(probe, ports[index] ?? 0, children)));
    return Math.round(performance.now() - start);
  } finally {
    await Promise.all(children.map(end));
  }
}

async function untilAnswer(probe: Probe, port: number, children: readonly ChildProcess[]): Promise<void> {
  for (const limit = performance.now() + LIMIT_MS; performance.now() < limit; await wait(POLL_MS)) {
    if (children.some((child) => child.exitCode !== null))
      throw new Error(`a server ended before it answered: ${probe.method}`);
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

async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  await Promise.all(
    servers.map((server) => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))),
  );
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
