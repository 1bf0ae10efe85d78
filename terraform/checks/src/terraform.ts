/**
 * Running Terraform, where it is there. Everything happens in a copy of the `terraform` folder, so that nothing is left
 * behind and a test can change a file of its own copy.
 */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { loadSchema } from './schema.ts';
import { type Outputs, startStandIn } from './stand-in/provider.ts';

export const TERRAFORM_FOLDER = fileURLToPath(new URL('../../', import.meta.url));

export type Run = Readonly<{ code: number; output: string }>;

export type Terraform = Readonly<{
  /** The copy: `modules` and `examples`, and `build` with two empty packages beside them. */
  folder: string;
  run: (directory: string, ...args: readonly string[]) => Promise<Run>;
  close: () => Promise<void>;
}>;

/**
 * Undefined: there is no `terraform` on the path. The caller closes it. `real`: nothing stands in for the provider, and
 * `init` fetches it.
 */
export async function terraform(outputs: Outputs | 'real' = 'made up'): Promise<Terraform | undefined> {
  const version = await call('terraform', ['version'], {});
  if (version.code !== 0) return undefined;
  const root = await mkdtemp(join(tmpdir(), 'terraform-checks-'));
  const folder = join(root, 'terraform');
  for (const part of ['modules', 'examples']) {
    await cp(join(TERRAFORM_FOLDER, part), join(folder, part), {
      recursive: true,
      filter: (path) => !path.includes('.terraform'),
    });
  }
  await cp(new URL('../schema/overlay.json', import.meta.url), join(root, 'build', 'functions.zip'));
  await cp(new URL('../schema/overlay.json', import.meta.url), join(root, 'build', 'republisher.zip'));
  await writeFile(join(root, 'terraformrc'), '');
  const standIn = outputs === 'real' ? undefined : await startStandIn(loadSchema(), outputs);
  const environment = {
    PATH: process.env['PATH'],
    HOME: root,
    TF_CLI_CONFIG_FILE: join(root, 'terraformrc'),
    CHECKPOINT_DISABLE: '1',
    TF_IN_AUTOMATION: '1',
    ...(standIn !== undefined && { TF_REATTACH_PROVIDERS: standIn.reattach }),
  };
  return {
    folder,
    run: (directory, ...args) =>
      call('terraform', [`-chdir=${join(folder, directory)}`, ...args], environment),
    close: async () => {
      await standIn?.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}

async function call(command: string, args: readonly string[], environment: NodeJS.ProcessEnv): Promise<Run> {
  try {
    const env = { PATH: process.env['PATH'], ...environment };
    const { stdout, stderr } = await promisify(execFile)(command, args, { env, maxBuffer: 1 << 27 });
    return { code: 0, output: stdout + stderr };
  } catch (error) {
    const { code, stdout = '', stderr = '' } = error as { code?: unknown; stdout?: string; stderr?: string };
    return { code: typeof code === 'number' ? code : 127, output: stdout + stderr };
  }
}
