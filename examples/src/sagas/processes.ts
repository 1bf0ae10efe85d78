/**
 * The participants as processes: started, killed as a crash would, started again, ended. A participant that is killed
 * loses nothing: what it had committed stands, and what it had not is asked again.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { PARTICIPANTS, type ParticipantName } from './topology.ts';

export type ProcessesOptions = Readonly<{
  /** Of all of them. */
  env: Readonly<Record<string, string | undefined>>;
  /** Of a participant's first process alone. */
  first?: Readonly<Partial<Record<ParticipantName, Readonly<Record<string, string>>>>>;
  /** In the place of a participant's own file. */
  commands?: Readonly<Partial<Record<ParticipantName, readonly string[]>>>;
}>;

export type Processes = Readonly<{
  /** SIGKILL, and a new process once the old one is gone. Resolves when the new one serves. */
  crash(name: ParticipantName): Promise<void>;
  /** How often each participant has ended by itself, and was started again. */
  died: Readonly<Record<ParticipantName, number>>;
  /** SIGTERM to all of them; resolves when they are gone. */
  close(): Promise<void>;
}>;

const END_MS = 3_000;

/** Resolves when all of them serve. What goes wrong in one of them is on standard error. */
export async function startParticipants({
  env,
  first = {},
  commands = {},
}: ProcessesOptions): Promise<Processes> {
  const running = new Map<ParticipantName, ChildProcess>();
  const died: Record<ParticipantName, number> = { payments: 0, couriers: 0, kitchen: 0, notices: 0 };
  let isOver = false;

  const launch = async (
    name: ParticipantName,
    more: Readonly<Record<string, string>> = {},
  ): Promise<void> => {
    const file = fileURLToPath(new URL(`./${name}.ts`, import.meta.url));
    const [command = '', ...args] = commands[name] ?? [process.execPath, '--conditions=source', file];
    const child = spawn(command, args, {
      env: { ...env, ...more },
      // Python has no such channel: it says that it serves in its first line.
      stdio: ['ignore', 'pipe', 'inherit', ...(commands[name] === undefined ? (['ipc'] as const) : [])],
    });
    running.set(name, child);
    const serves = new Promise<void>((resolve) => {
      child.once('message', () => resolve());
      child.stdout?.once('data', () => resolve());
    });
    child.once('exit', () => {
      if (isOver || running.get(name) !== child) return;
      died[name] += 1;
      void launch(name);
    });
    await Promise.race([serves, once(child, 'exit')]);
  };
  const end = async (child: ChildProcess, signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill(signal);
    const late = setTimeout(() => child.kill('SIGKILL'), END_MS);
    await gone;
    clearTimeout(late);
  };

  await Promise.all(PARTICIPANTS.map((name) => launch(name, first[name])));
  return {
    died,
    async crash(name) {
      const child = running.get(name);
      running.delete(name);
      if (child !== undefined) await end(child, 'SIGKILL');
      await launch(name);
    },
    async close() {
      isOver = true;
      await Promise.all([...running.values()].map((child) => end(child, 'SIGTERM')));
    },
  };
}
