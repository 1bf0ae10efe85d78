/**
 * Starts one of Google's emulators and knows when it is ready: it has said so itself, and a call over its port was
 * answered. The answer alone proves nothing, because Pub/Sub's emulator goes on running without its port when another
 * process has it, and that process answers. Its output is read to the end, or it would stop at a full pipe.
 *
 * Nothing is left after a start that failed, nor after this process (see tied.ts).
 */
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { spawnTied } from './tied.ts';

export type LaunchOptions = Readonly<{
  title: string;
  command: string;
  args: readonly string[];
  port: number;
  /** The line with which it says that it listens. */
  readyLine: RegExp;
  /** Whether a call over its port is answered. */
  answers: () => Promise<boolean>;
  log: (line: string) => void;
  /** Real time, until ready. */
  limitMs?: number;
  /** Calls `over` once when the limit is reached; what it answers cancels that. Default: by Node's timers. */
  timer?: (milliseconds: number, over: () => void) => () => void;
  /** Whether Linux itself ends it with this process; default: where Linux can. */
  kernel?: boolean;
}>;

export type Launched = Readonly<{
  pid: number | undefined;
  /** Of the process that ends it when this one is gone; none on Windows. */
  guardPid: number | undefined;
  /** SIGTERM, and SIGKILL after three seconds. Resolves when it is gone. May be called again. */
  close(): Promise<void>;
}>;

/** Another process has the port. */
export class PortInUseError extends Error {
  override readonly name = 'PortInUseError';
  readonly code = 'EADDRINUSE';

  constructor(title: string, port: number) {
    super(`${title} cannot listen on 127.0.0.1:${port}: the port is in use by another process`);
  }
}

/** Ten times what a cold start took on a slow two-core machine under load, rounded up. */
const LIMIT_MS = 180_000;
const GRACE_MS = 3_000;
const POLL_MS = 10;
const KEPT_LINES = 20;
const IN_USE = /BindException|Address already in use/;
const TOO_NEW = /UnsupportedClassVersionError/;

/** Rejects with PortInUseError, or with an error of one line that ends with the last lines it wrote. */
export async function launch(options: LaunchOptions): Promise<Launched> {
  const { title, command, args, port, readyLine, answers, log } = options;
  const { limitMs = LIMIT_MS, timer = nodeTimer } = options;
  const { child, guard } = spawnTied(command, args, options.kernel);
  const said = Promise.withResolvers<void>();
  const failure = Promise.withResolvers<never>();
  // The caller that awaits it gets the error; later no code awaits it.
  failure.promise.catch(() => undefined);
  let lines: readonly string[] = [];
  let state: 'starting' | 'running' | 'ended' = 'starting';
  const fail = (what: string): void =>
    failure.reject(new Error(`${title} ${what}: ${lines.slice(-6).join(' | ') || 'it wrote nothing'}`));

  const read = (line: string): void => {
    if (line.trim() === '') return;
    lines = [...lines.slice(1 - KEPT_LINES), line.trim()];
    log(line);
    if (state !== 'starting') return;
    if (readyLine.test(line)) said.resolve();
    if (IN_USE.test(line)) failure.reject(new PortInUseError(title, port));
    if (TOO_NEW.test(line)) fail('needs a newer Java');
  };
  for (const input of [child.stdout, child.stderr]) createInterface({ input }).on('line', read);

  const gone = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      failure.reject(new Error(`${title} cannot be started with ${command}: ${error.message}`));
      resolve();
    });
    // Not `exit`: what it wrote last is read before `close`.
    child.once('close', (code, signal) => {
      const how = signal ?? `exit code ${code}`;
      fail(`ended before it was ready (${how})`);
      if (state === 'running') log(`${title} ended by itself (${how})`);
      state = 'ended';
      resolve();
    });
  });
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    state = 'ended';
    child.kill(signal);
    const late = setTimeout(() => child.kill('SIGKILL'), GRACE_MS);
    await Promise.all([gone, guard?.gone]);
    clearTimeout(late);
  };
  const cancelLimit = timer(limitMs, () => fail(`was not ready within ${limitMs / 1_000} s`));
  try {
    const ready = said.promise.then(() => untilAnswered(answers, () => state === 'ended'));
    await Promise.race([ready, failure.promise]);
  } catch (error) {
    await end('SIGKILL');
    throw error;
  } finally {
    cancelLimit();
  }
  state = 'running';
  return { pid: child.pid, guardPid: guard?.pid, close: () => end('SIGTERM') };
}

function nodeTimer(milliseconds: number, over: () => void): () => void {
  const timer = setTimeout(over, milliseconds);
  return () => clearTimeout(timer);
}

async function untilAnswered(answers: () => Promise<boolean>, over: () => boolean): Promise<void> {
  while (!over() && !(await answers())) await wait(POLL_MS);
}
