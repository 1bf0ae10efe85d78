/**
 * gcloud's SDK folder. Following the `gcloud` on the PATH to where it lies takes no time; asking it takes a second or
 * more and is done only where the way leads elsewhere (a wrapper script).
 */
import { spawnSync } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';

/** Undefined where gcloud is not installed. */
export function sdkRoot(env: NodeJS.ProcessEnv): string | undefined {
  const named = env['CLOUDSDK_ROOT_DIR'];
  if (named !== undefined && named !== '') return named;
  const gcloud = (env['PATH'] ?? '')
    .split(delimiter)
    .map((folder) => join(folder, process.platform === 'win32' ? 'gcloud.cmd' : 'gcloud'))
    .find((file) => existsSync(file));
  if (gcloud === undefined) return undefined;
  const root = dirname(dirname(realpathSync(gcloud)));
  return existsSync(join(root, 'platform')) ? root : asked(gcloud, env);
}

function asked(gcloud: string, env: NodeJS.ProcessEnv): string | undefined {
  const { status, stdout } = spawnSync(gcloud, ['info', '--format=value(installation.sdk_root)'], {
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: 30_000,
    // A .cmd file is no program of its own.
    shell: process.platform === 'win32',
  });
  return status === 0 && stdout.trim() !== '' ? stdout.trim() : undefined;
}
