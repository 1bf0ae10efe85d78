/**
 * A process under a hard limit of memory, as a platform sets one: with a control group of Linux, version 2 or 1, where
 * one can be made. Where none can, the process runs without, and its highest resident memory is compared alone.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';

export type Limited = Readonly<{
  child: ChildProcess;
  /** Whether the kernel holds the limit. */
  isHard: boolean;
  /** In MiB, until now. Undefined once the process has gone. */
  highest(): Promise<number | undefined>;
  /** What it wrote. */
  written(): string;
  close(): Promise<void>;
}>;

const MIB = 1_048_576;
const ROOTS = [
  { folder: '/sys/fs/cgroup', limit: 'memory.max', sign: '/sys/fs/cgroup/cgroup.controllers' },
  { folder: '/sys/fs/cgroup/memory', limit: 'memory.limit_in_bytes', sign: '/sys/fs/cgroup/memory/tasks' },
];

let count = 0;

/** A control group with this limit; undefined where this user may not make one. */
async function group(mebibytes: number): Promise<string | undefined> {
  for (const { folder, limit, sign } of ROOTS) {
    const own = `${folder}/pubsub-guarantees-${process.pid}-${(count += 1)}`;
    try {
      await access(sign);
      await mkdir(own);
      await writeFile(`${own}/${limit}`, String(mebibytes * MIB));
      return own;
    } catch {
      await rmdir(own).catch(() => undefined);
    }
  }
  return undefined;
}

export async function limited(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  mebibytes: number,
): Promise<Limited> {
  const own = await group(mebibytes);
  const command = ['exec', process.execPath, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`);
  // The shell joins the group before it becomes the process.
  const script = `${own === undefined ? '' : `echo $$ > '${own}/cgroup.procs' && `}${command.join(' ').replace("'exec'", 'exec')}`;
  const child = spawn('sh', ['-c', script], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (part: string) => (text = `${text}${part}`.slice(-20_000)));
  }
  return {
    child,
    isHard: own !== undefined,
    written: () => text,
    async highest() {
      const status = await readFile(`/proc/${child.pid}/status`, 'utf8').catch(() => '');
      const kibibytes = /^VmHWM:\s+(\d+)/m.exec(status)?.[1];
      return kibibytes === undefined ? undefined : Number(kibibytes) / 1_024;
    },
    async close() {
      if (child.exitCode === null && child.signalCode === null) {
        const gone = once(child, 'exit');
        child.kill('SIGKILL');
        await gone;
      }
      for (let left = 50; own !== undefined && left > 0; left -= 1) {
        const isGone = await rmdir(own).then(
          () => true,
          () => false,
        );
        if (isGone) break;
        await wait(20);
      }
    },
  };
}
