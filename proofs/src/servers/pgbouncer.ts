/**
 * A real PgBouncer in transaction mode in front of a test's Postgres, on a free port of the loopback interface.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { answering, freePort, type RunningPostgres, unprivileged } from 'pubsub-guarantees-emulator';
import { kill } from './kill.ts';

export type RunningPgbouncer = Readonly<{ config: RunningPostgres['config']; close(): Promise<void> }>;

/** Debian puts it where only root's PATH looks. */
const PROGRAMS = ['pgbouncer', '/usr/sbin/pgbouncer'];

export const pgbouncerProgram = (): string | undefined =>
  PROGRAMS.find((program) => spawnSync(program, ['--version'], { stdio: 'ignore' }).status === 0);

/** `size` connections to the server, whatever number of clients. */
export async function startPgbouncer(
  program: string,
  { config }: RunningPostgres,
  size: number,
): Promise<RunningPgbouncer> {
  const directory = await mkdtemp(join(tmpdir(), 'pgbouncer-'));
  chmodSync(directory, 0o755);
  const port = await freePort();
  const file = join(directory, 'pgbouncer.ini');
  await writeFile(join(directory, 'users.txt'), `"${config.user}" ""\n`);
  await writeFile(
    file,
    `[databases]
${config.database} = host=${config.host} port=${config.port} dbname=${config.database}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${join(directory, 'users.txt')}
pool_mode = transaction
default_pool_size = ${size}
max_client_conn = 200
ignore_startup_parameters = extra_float_digits
`,
  );
  const server: ChildProcess = spawn(program, ['-q', file], { stdio: 'ignore', ...unprivileged() });
  const behind = { ...config, port };
  await answering(server, behind);
  return {
    config: behind,
    async close() {
      await kill(server);
      await rm(directory, { recursive: true, force: true });
    },
  };
}
