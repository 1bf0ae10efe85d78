/**
 * Two worker processes on one subscription, killed again and again while messages come in, and the report afterwards.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { PubSub } from '@google-cloud/pubsub';
import { startPubsub, systemClock } from 'pubsub-guarantees-emulator';
import { end, heard } from '../servers/child-processes.ts';
import { fastClock } from '../servers/fast-clock.ts';
import type { WorkerLine, WorkerTask } from './pubsub-worker.ts';

/** `begun`: its first run. */
type Worker = Readonly<{ child: ChildProcess; name: string; begun: Promise<unknown> }>;

export type KillReport = Readonly<{
  kills: number;
  messages: number;
  lines: readonly WorkerLine[];
  killed: ReadonlySet<string>;
  /** Nothing was left in the subscription. */
  isDrained: boolean;
}>;

/**
 * Ack deadlines pass this much faster, so that what a killed process had comes back soon: the client asks for 10 s at first,
 * which are 2.5 s here, a little more than the lease.
 */
const SPEED = 4;
const WORKERS = 2;
/** Started in advance: a process takes a second to load its clients. */
const SPARES = 2;
const BACKLOG = 16;
const DRAIN_MS = 120_000;
/** A process that has received nothing by then is killed anyway. */
const BEGIN_MS = 60_000;

/** Loopback alone; every process that was started is ended. `compiled`: where processes keep what they compiled. */
export async function killWorkers(
  store: WorkerTask['store'],
  kills: number,
  compiled: string,
): Promise<KillReport> {
  const directory = await mkdtemp(join(tmpdir(), 'kills-'));
  const file = join(directory, 'lines');
  const server = await startPubsub({ clock: fastClock(systemClock(), SPEED) });
  const client = new PubSub({ apiEndpoint: server.address, projectId: 'demo-project' });
  const children = new Set<ChildProcess>();
  const killed = new Set<string>();
  try {
    const [topic] = await client.createTopic('work');
    await topic.createSubscription('work', { ackDeadlineSeconds: 10 });
    let made = 0;
    const spares: Promise<Worker>[] = [];
    const spare = (): void => {
      const name = `worker-${(made += 1)}`;
      const task: WorkerTask = { name, pubsub: server.address, subscription: 'work', store, file };
      const child = fork(new URL('./pubsub-worker.ts', import.meta.url), [JSON.stringify(task)], {
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
        env: { NODE_COMPILE_CACHE: compiled, ...process.env },
      });
      children.add(child);
      const ready = heard(child).then(() => ({ child, name, begun: Promise.resolve() }));
      // A spare may be ended before the test waits for it.
      ready.catch(() => {});
      spares.push(ready);
    };
    const employ = async (): Promise<Worker> => {
      if (made < WORKERS + kills) spare();
      const worker = await spares.shift();
      if (worker === undefined) throw new Error('no process was started');
      const begun = heard(worker.child);
      begun.catch(() => {});
      worker.child.send('work');
      return { ...worker, begun };
    };
    for (let index = 0; index < SPARES; index += 1) spare();

    const stop = new AbortController();
    let messages = 0;
    const publish = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        // Publishes no faster than the workers work, however slow the machine is: a backlog would only lengthen the
        // test.
        if (server.stats().backlog < BACKLOG) {
          const text = `message ${(messages += 1)}`;
          const message = { data: Buffer.from(text), attributes: { dedupId: text } };
          // Every third is published twice.
          const copies = messages % 3 === 0 ? [message, message] : [message];
          await Promise.all(copies.map((copy) => topic.publishMessage(copy)));
        }
        await pause(30);
      }
    };
    const kill = async (): Promise<void> => {
      const workers = await Promise.all(Array.from({ length: WORKERS }, employ));
      for (let count = 0; count < kills; count += 1) {
        const index = Math.floor(Math.random() * WORKERS);
        const { child, name, begun } = workers[index] ?? (await employ());
        await Promise.race([begun, pause(BEGIN_MS)]);
        // The first one at once, so that at least one kill interrupts a run.
        if (count > 0) await pause(Math.random() * 400);
        child.kill('SIGKILL');
        await once(child, 'exit');
        children.delete(child);
        killed.add(name);
        workers[index] = await employ();
      }
    };
    await Promise.all([publish(), kill().finally(() => stop.abort())]);
    const until = performance.now() + DRAIN_MS;
    const isEmpty = (): boolean => server.stats().outstanding + server.stats().backlog === 0;
    while (!isEmpty() && performance.now() < until) await pause(50);
    const isDrained = isEmpty();

    const text = await readFile(file, 'utf8');
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as WorkerLine);
    return { kills, messages, lines, killed, isDrained };
  } finally {
    await Promise.all([...children].map(end));
    await client.close();
    await server.close();
    await rm(directory, { recursive: true, force: true });
  }
}
