/**
 * Packaged processes for tests, started as the platforms start them, with an environment of their own. The test
 * that starts one closes it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { freePort, until } from 'pubsub-guarantees-emulator';

export type Started = Readonly<{
  url: string;
  /** Posts to the process: the status and the text of the answer. */
  post(
    path: string,
    body: string,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Readonly<{ status: number; text: string }>>;
  /** Sends the signal, once for each call; how the process ends. */
  signal(name: NodeJS.Signals): Promise<Readonly<{ code: number | null; written: string }>>;
  pid: number;
  close(): Promise<void>;
}>;

export type StartOptions = Readonly<{
  folder: string;
  env: Readonly<Record<string, string>>;
  /** Of a function; absent: the republisher. */
  target?: string;
  /** Before everything else that Node is given. */
  nodeOptions?: readonly string[];
}>;

/** Rejects, with what the process wrote, when it does not listen. */
export async function started({ folder, env, target, nodeOptions = [] }: StartOptions): Promise<Started> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const program =
    target === undefined
      ? [join(folder, 'index.js')]
      : [frameworkOf(folder), `--target=${target}`, `--source=${folder}`, '--signature-type=http'];
  const child = spawn(process.execPath, [...nodeOptions, ...program], {
    env: { METADATA_SERVER_DETECTION: 'none', ...env, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let written = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (written += text));
  }
  const close = (): Promise<void> => ended(child);
  const exited = once(child, 'close') as Promise<[code: number | null]>;
  // A connection of its own: one that was idle on a busy machine might be closed when the test uses it.
  const isUp = (): Promise<boolean> =>
    fetch(`${url}/health`, { headers: { connection: 'close' } }).then(
      (response) => response.arrayBuffer().then(() => true),
      () => false,
    );
  try {
    await until(async () => {
      if (child.exitCode === null && child.signalCode === null) return await isUp();
      throw new Error(`it ended with ${child.exitCode ?? child.signalCode}`);
    }, 'it listens');
  } catch (cause) {
    await close();
    throw new Error(`${target ?? 'the republisher'} does not listen: ${written}`, { cause });
  }
  return {
    url,
    async post(path, body, headers = { 'content-type': 'application/json' }) {
      const response = await fetch(`${url}${path}`, { method: 'POST', body, headers });
      return { status: response.status, text: await response.text() };
    },
    async signal(name) {
      child.kill(name);
      const [code] = await exited;
      return { code, written };
    },
    pid: child.pid ?? 0,
    close,
  };
}

/** The one that is installed for the folder. */
function frameworkOf(folder: string): string {
  const require = createRequire(join(folder, 'index.js'));
  return join(dirname(require.resolve('@google-cloud/functions-framework')), 'main.js');
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}
