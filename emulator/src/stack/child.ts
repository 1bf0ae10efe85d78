/**
 * A process of the stack: started, known to be ready, restarted when it dies by itself, ended when asked.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { connect } from 'node:net';
import { extname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export type ChildOptions = Readonly<{
  name: string;
  /** After the flags of Node itself. */
  args: readonly string[];
  env: Readonly<Record<string, string>>;
  port: number;
  log: (line: string) => void;
  /** Default: 60 s, and ten minutes. */
  limits?: Readonly<{
    /** How long it may load nothing and write nothing before it listens. */
    silenceMs: number;
    /** How long it may take to listen, whatever it says. */
    totalMs: number;
  }>;
  /** What the limits are measured by, milliseconds. Default: the machine's monotonic clock. */
  clock?: Readonly<{ now(): number; pause(milliseconds: number): Promise<unknown> }>;
}>;

export type Child = Readonly<{
  /**
   * Resolves when it listens, and waits as long as it makes progress: a busy machine takes minutes for what takes a
   * second otherwise. Rejects with the last lines it wrote if it ends before, or makes no progress.
   */
  start(): Promise<void>;
  /** SIGKILL, as a crash would be. Resolves when it is gone; it is not restarted. */
  kill(): Promise<void>;
  /** SIGTERM, and SIGKILL after three seconds. */
  stop(): Promise<void>;
  /** Whether it works on no request, whether its sender is still there or not. True when it does not run. */
  isIdle(): Promise<boolean>;
}>;

/** Loaded first (`node --import`) by a program that is to run as those of the stack do. */
export const PROGRAM_PRELOAD = fileURLToPath(
  new URL(`./child-preload${extname(fileURLToPath(import.meta.url))}`, import.meta.url),
);
const LIMITS: Required<ChildOptions>['limits'] = { silenceMs: 60_000, totalMs: 600_000 };
const CLOCK: Required<ChildOptions>['clock'] = { now: () => performance.now(), pause: (ms) => wait(ms) };
const LOOK_EVERY_MS = 25;
const GRACE_MS = 3_000;
const RESTART_MS = 500;
/**
 * A child leaves the group of the terminal between its fork and its exec. A Ctrl-C in this moment ends it although it
 * is for the stack, so a program that SIGINT ends while it starts is launched again this many times.
 */
const RELAUNCHES = 3;
/** Of a program that has ended, for what it wrote last: another process may hold its output open. */
const LAST_WORDS_MS = 5_000;
/** A process that does not answer within this is taken to be busy. */
const ANSWER_MS = 1_000;
/**
 * What of the user's environment a child sees: nothing that could point it at a real project. What is compiled already
 * it need not compile again: a quarter of the time of its start.
 */
const INHERITED = ['PATH', 'HOME', 'TZ', 'LANG', 'TMPDIR', 'NODE_COMPILE_CACHE'];

export function child({ name, args, env, port, log, limits = LIMITS, clock = CLOCK }: ChildOptions): Child {
  let running: ChildProcess | undefined;
  /** Everything that the process started last has written was read. */
  let silent: Promise<unknown> = Promise.resolve();
  let wanted = false;
  let lines: string[] = [];
  /** Modules it has loaded and lines it has written. */
  let steps = 0;

  const launch = (): ChildProcess => {
    const inherited = INHERITED.flatMap((key) =>
      process.env[key] === undefined ? [] : [[key, process.env[key]]],
    );
    const started = spawn(process.execPath, ['--conditions=source', '--import', PROGRAM_PRELOAD, ...args], {
      env: { ...Object.fromEntries(inherited), ...env },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      // A Ctrl-C is for the stack, which ends its programs itself: they would be gone before it knew why.
      detached: true,
    });
    lines = [];
    const keep = (line: string): void => {
      lines = [...lines.slice(-19), line];
      steps += 1;
      log(`[${name}] ${line}`);
    };
    started.on('message', (message) => {
      if (message === 'loading') steps += 1;
    });
    for (const stream of [started.stdout, started.stderr]) readLines(stream, keep);
    silent = new Promise((resolve) => started.once('close', resolve));
    started.once('exit', (code, signal) => {
      if (running === started) running = undefined;
      if (!wanted) return;
      log(`[${name}] ended by itself (${signal ?? `exit code ${code}`}); starting it again`);
      setTimeout(() => {
        if (wanted && running === undefined) running = launch();
      }, RESTART_MS);
    });
    return started;
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    wanted = false;
    const ending = running;
    if (ending === undefined || ending.exitCode !== null || ending.signalCode !== null) return;
    const gone = new Promise((resolve) => ending.once('exit', resolve));
    ending.kill(signal);
    const late = setTimeout(() => ending.kill('SIGKILL'), GRACE_MS);
    await gone;
    clearTimeout(late);
  };

  return {
    async start() {
      let started = launch();
      running = started;
      let relaunches = 0;
      let [seen, silentMs, totalMs] = [steps, 0, 0];
      for (let last = clock.now(); silentMs < limits.silenceMs && totalMs < limits.totalMs; ) {
        if (started.signalCode === 'SIGINT' && relaunches < RELAUNCHES) {
          relaunches += 1;
          started = launch();
          running = started;
        }
        if (started.exitCode !== null || started.signalCode !== null) {
          await Promise.race([silent, wait(LAST_WORDS_MS, undefined, { ref: false })]);
          const how =
            started.signalCode === null ? `exit code ${started.exitCode}` : `ended by ${started.signalCode}`;
          throw new Error(`${name} did not start (${how}): ${lastWords(lines)}`);
        }
        if (await listens(port)) {
          wanted = true;
          return;
        }
        await clock.pause(LOOK_EVERY_MS);
        const now = clock.now();
        // Time in which this process did not look either (a machine that was suspended) is not the program's.
        const passedMs = Math.min(now - last, 10 * LOOK_EVERY_MS);
        last = now;
        totalMs += passedMs;
        silentMs = steps === seen ? silentMs + passedMs : 0;
        seen = steps;
      }
      await end('SIGKILL');
      const why =
        silentMs < limits.silenceMs
          ? ` within ${limits.totalMs / 1_000} s`
          : `: it reported nothing for ${limits.silenceMs / 1_000} s`;
      throw new Error(`${name} did not listen on port ${port}${why}: ${lastWords(lines)}`);
    },
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    isIdle: async () => running === undefined || (await inFlight(running)) === 0,
  };
}

/** The requests that it works on, as child-preload.ts counts them. */
function inFlight(asked: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    const answer = (count: number): void => {
      clearTimeout(late);
      asked.off('message', counted).off('exit', gone);
      resolve(count);
    };
    const counted = (message: unknown): void => {
      if (typeof message === 'number') answer(message);
    };
    const gone = (): void => answer(0);
    const late = setTimeout(() => answer(Number.NaN), ANSWER_MS);
    asked.on('message', counted).once('exit', gone);
    // The message is lost when the process has just ended: then its exit is the answer.
    asked.send('inFlight', () => undefined);
  });
}

const lastWords = (lines: readonly string[]): string => lines.slice(-6).join(' | ') || 'it wrote nothing';

function readLines(stream: NodeJS.ReadableStream | null, onLine: (line: string) => void): void {
  let rest = '';
  stream?.setEncoding('utf8').on('data', (chunk: string) => {
    const parts = (rest + chunk).split('\n');
    rest = parts.pop() ?? '';
    for (const part of parts) if (part.trim() !== '') onLine(part);
  });
}

/** Whether something accepts connections on a local port. What neither accepts nor refuses for two seconds does not. */
export function listens(port: number, host = '127.0.0.1', timeoutMs = 2_000): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host, timeout: timeoutMs });
    const answer = (yes: boolean) => (): void => {
      socket.destroy();
      resolve(yes);
    };
    socket.once('connect', answer(true)).once('error', answer(false));
    // A process that was kept from work finds the time over before it looks at the socket: that comes in this turn.
    socket.once('timeout', () => setImmediate(answer(false)));
  });
}
