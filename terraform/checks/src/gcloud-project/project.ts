/**
 * Runs `deploy/gcloud.sh` against a project that is a folder (`gcloud.bash`): what is there is a file each.
 */
import { spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sha256sum } from '../stand-in/sha256sum.ts';

const SCRIPT = fileURLToPath(new URL('../../../../deploy/gcloud.sh', import.meta.url));
const STAND_IN = fileURLToPath(new URL('gcloud.bash', import.meta.url));

export type Ran = Readonly<{
  code: number;
  out: string;
  err: string;
  /** The commands that change something, in order. */
  changes: readonly string[];
  /** The folder of the project, as the run left it. */
  state: string;
}>;

export type Projects = Readonly<{
  /** `state`: the project to start from; absent, a new one. `failAt`: the change that is refused. */
  run(args: readonly string[], options?: Readonly<{ state?: string; failAt?: number }>): Promise<Ran>;
  /** A project with these files. */
  project(files: readonly string[]): Promise<string>;
  close(): Promise<void>;
}>;

export async function projects(): Promise<Projects> {
  // Nothing may break at a space.
  const folder = await mkdtemp(join(tmpdir(), 'gcloud project '));
  const packages = join(folder, 'my build');
  for (const name of ['functions', 'republisher']) {
    await mkdir(join(packages, name), { recursive: true });
    await writeFile(join(packages, name, 'package.json'), '{}');
  }
  await writeFile(join(packages, 'functions/sagas.js'), 'export default [];\n');
  await writeFile(join(packages, 'republisher/app.yaml'), 'runtime: nodejs22\nservice: republisher\n');
  const programs = join(folder, 'programs');
  await mkdir(programs);
  for (const [name, text] of Object.entries(sha256sum())) {
    await writeFile(join(programs, name), text, { mode: 0o755 });
  }
  let count = 0;
  const project = async (files: readonly string[]): Promise<string> => {
    const state = join(folder, `project ${(count += 1)}`);
    await mkdir(state);
    for (const name of files) await writeFile(join(state, name), '0');
    return state;
  };
  return {
    project,
    async run(args, { state: before, failAt } = {}) {
      const state = await project([]);
      if (before !== undefined) await cp(before, state, { recursive: true });
      const changed = `${state} changes`;
      await writeFile(changed, '');
      const given = ['--project=demo-project', '--region=europe-west1', '--packages', packages];
      const ran = await bash([SCRIPT, ...given, ...args], {
        PATH: `${programs}:${process.env['PATH']}`,
        BASH_ENV: STAND_IN,
        STATE: state,
        CHANGED: changed,
        ...(failAt !== undefined && { FAIL_AT: String(failAt) }),
      });
      const changes = (await readFile(changed, 'utf8')).split('\n').slice(0, -1);
      return { ...ran, changes, state };
    },
    close: async () => rm(folder, { recursive: true }),
  };
}

/** What a project has: each thing, and how it is set. */
export async function contents(state: string): Promise<Readonly<Record<string, string>>> {
  // Not for how long an API goes on refusing.
  const names = (await readdir(state)).filter((name) => !name.startsWith('api ')).toSorted();
  const texts = await Promise.all(names.map(async (name) => readFile(join(state, name), 'utf8')));
  return Object.fromEntries(names.map((name, index) => [name, texts[index] ?? '']));
}

async function bash(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<Pick<Ran, 'code' | 'out' | 'err'>> {
  const child = spawn('bash', args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const read = async (from: AsyncIterable<Buffer>): Promise<string> => {
    const parts: Buffer[] = [];
    for await (const part of from) parts.push(part);
    return Buffer.concat(parts).toString();
  };
  const [out, err, code] = await Promise.all([
    read(child.stdout),
    read(child.stderr),
    new Promise<number>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (status) => {
        resolve(status ?? 1);
      });
    }),
  ]);
  return { code, out, err };
}
